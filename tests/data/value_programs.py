"""Programs that let a value of one process into the key: ``value_programs.py CASE TRUTH`` runs one of `CASES`.

It writes what the value was, and what torch counted, to a JSON file.
"""

from __future__ import annotations

import datetime
import json
import os
import random
import socket
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from packing import free_port


class Pass:
    """A custom pass that changes nothing; without a name it is named as Python prints it."""

    def __init__(self, name: str | None) -> None:
        self._name = name

    def __call__(self, graph: Any) -> None:
        pass

    def uuid(self) -> str:
        return self._name or repr(self)


def metadata(**items: object) -> tuple[str, object]:
    return "aot_inductor.metadata", {name: str(item) for name, item in items.items()}


def tag(text: str) -> tuple[str, object]:
    return "cache_key_tag", text


def of_pass(name: str | None) -> tuple[str, object]:
    return "post_grad_custom_post_pass", name


RANK = "RANK"
CASES: dict[str, Callable[[], tuple[str, object]]] = {
    "rank": lambda: metadata(rank=os.environ[RANK]),
    "variable_rank": lambda: metadata(rank=os.environ[RANK]),
    "variable_rank_in_path": lambda: ("aot_inductor.output_path", f"/tmp/out/rank_{os.environ[RANK]}/model"),
    "host": lambda: metadata(host=socket.gethostname()),
    "path": lambda: metadata(scratch=tempfile.gettempdir()),
    "port": lambda: metadata(master_port=free_port()),
    "endpoint": lambda: metadata(store=f"tcp://127.0.0.1:{free_port()}"),
    "time": lambda: metadata(built=time.time()),
    "date": lambda: tag(datetime.datetime.now().isoformat()),
    "address": lambda: metadata(owner=object()),
    "address_of_pass": lambda: of_pass(None),
    "pid": lambda: tag(f"job-{os.getpid()}"),
    "random": lambda: of_pass(str(uuid.uuid4())),
    "seed": lambda: metadata(seed=random.randrange(10**8, 2**31)),
    "time_in_graph": lambda: ("graph", time.time()),
    "pid_in_graph": lambda: ("graph", os.getpid()),
    # What differs otherwise.
    "option": lambda: ("epilogue_fusion", os.environ["VALUE"] == "1"),
    "low_rank": lambda: metadata(lora_rank=8 * int(os.environ["VALUE"]), level=os.environ["VALUE"]),
    "uuid_of_pass": lambda: of_pass(f"version {os.environ['VALUE']}"),
    "version": lambda: metadata(version=f"1.{os.environ['VALUE']}.0", size=os.environ["VALUE"]),
}  # fmt: skip


def run(case: str) -> tuple[str, object]:
    """Compile a function with the value; where it stands, and what it is."""
    import torch
    from torch._inductor.custom_graph_pass import CustomGraphPass

    class OfPass(Pass, CustomGraphPass):
        pass

    where, value = CASES[case]()
    factor, options = 2.0, {}
    if where == "graph":
        factor = value
    elif where == "cache_key_tag":
        torch.compiler.config.cache_key_tag = value
    elif where == "post_grad_custom_post_pass":
        made = OfPass(value)
        options, value = {where: made}, made.uuid()
    else:
        options = {where: value}

    @torch.compile(options=options, fullgraph=True)
    def scaled(x: Any) -> Any:
        # Of what a library has, nothing is compiled in C++: it is over soon.
        return torch.addmm(x, x, x, beta=factor)

    scaled(torch.ones(4, 4))
    return where, value


def main() -> None:
    """Run one case; in a group of processes if there is one."""
    import torch
    import torch._dynamo.utils

    case, truth = sys.argv[1:]
    is_of_group = "MASTER_PORT" in os.environ
    if is_of_group:
        torch.distributed.init_process_group("gloo")
    where, value = run(case)
    told = {
        "case": case,
        "where": where,
        "value": value,
        "pid": os.getpid(),
        "rank": torch.distributed.get_rank() if is_of_group else None,
        "counters": dict(torch._dynamo.utils.counters["inductor"]),
    }
    Path(truth).write_text(json.dumps(told))
    if is_of_group:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
