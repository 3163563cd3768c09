"""Records values of one process in keys: ``python tests/data/record_values.py PYTHON`` for an interpreter with torch.

Writes ``tests/data/values/VERSION.tar.xz``: for each case of `value_programs.py` the text logs of two processes on one cache directory, and
what the value was in each. The name of a host is another one in a namespace of its own, which only root can make.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from packing import pack_each
from value_programs import CASES, free_port

_PROGRAM = Path(__file__).with_name("value_programs.py")
_OTHERWISE = ("option", "low_rank", "uuid_of_pass", "version")


def record_into(folder: Path, python: str = sys.executable) -> Path:
    """Run every case in two processes: two ranks of one group at once, or one process after the other."""
    for case in CASES:
        own = folder / case
        own.mkdir()
        with tempfile.TemporaryDirectory() as cache:
            group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
            started = []
            for number in range(2):
                changed = group | {"RANK": f"{number}"} if case == "rank" else _changed(case, number, cache)
                started.append(
                    _start(python, case, number, own, {"TORCHINDUCTOR_CACHE_DIR": cache} | changed)
                )
                if case != "rank":
                    started[-1].wait(600)
            assert [process.wait(600) for process in started] == [0, 0]
        truths = [json.loads((own / f"truth_{number}.json").read_text()) for number in range(2)]
        assert all(one["counters"].get("fxgraph_cache_miss") == 1 for one in truths), (case, truths)
    return folder


def _changed(case: str, number: int, cache: str) -> dict[str, str]:
    scratch = f"{cache}/scratch-{'ab'[number]}"
    os.mkdir(scratch)
    changed = {"RANK": "31"[number]} if case.startswith("variable_rank") else {}
    changed |= {"TMPDIR": scratch} if case == "path" else {}
    return changed | ({"VALUE": f"{number + 1}"} if case in _OTHERWISE else {})


def _start(
    python: str, case: str, number: int, own: Path, variables: dict[str, str]
) -> subprocess.Popen[bytes]:
    environment = os.environ | {
        # Graphs that differ are compared where their function is named.
        "TORCH_LOGS": "+torch._inductor.codecache" + (",dynamo" if case.endswith("_in_graph") else ""),
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    command = [python, str(_PROGRAM), case, str(own / f"truth_{number}.json")]
    if case == "host":
        shell = f"hostname trainer-{number} && exec {shlex.join(command)}"
        command = ["unshare", "--uts", "sh", "-c", shell]
    with (own / f"{number}.log").open("wb") as log:
        return subprocess.Popen(command, env=environment | variables, stderr=log)


if __name__ == "__main__":
    pack_each("values", record_into)
