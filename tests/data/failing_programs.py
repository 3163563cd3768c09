"""The programs of record_programs.py in processes that come to harm: a compile fails, or the process is ended.

    python failing_programs.py WHAT WHERE program of record_programs.py and its arguments

WHAT happens (`raise`, `kill`, `exit`, or `suppress`: raise, and let Dynamo go on without compiling) and WHERE:
in the code generation of the forward or the backward graph, where the AOTAutograd entry would be stored, or after
the first call. Nothing else in torch is changed. What torch had counted by then is written beforehand.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import record_programs
import torch
import torch._dynamo.config
import torch._inductor.graph
from record_programs import Calls, counters


def harm(what: str, report: Path) -> None:
    """End the process, or the compile it is in."""
    write_report(report, [])
    if what in ("raise", "suppress"):
        raise ValueError("no code for this graph")
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        os._exit(3)


def write_report(path: Path, calls: list[dict[str, Any]]) -> None:
    path.write_text(
        json.dumps(
            {
                "torch_version": torch.__version__,
                "python_version": platform.python_version(),
                "pid": os.getpid(),
                "argv": sys.argv,
                "environment": record_programs.ENVIRONMENT_BEFORE_TORCH,
                "counters": counters(),
                "calls": calls,
            },
            indent=1,
        )
        + "\n"
    )


def lay_in_wait(what: str, where: str, report: Path) -> None:
    """Put the harm where the compile comes by."""
    if where in ("forward", "backward"):
        graph_lowering = torch._inductor.graph.GraphLowering
        codegen = graph_lowering.codegen

        def harmed_codegen(self: Any, *args: Any, **kwargs: Any) -> Any:
            if self.is_backward == (where == "backward"):
                harm(what, report)
            return codegen(self, *args, **kwargs)

        graph_lowering.codegen = harmed_codegen  # type: ignore[method-assign]
    elif where == "save":
        from torch._functorch._aot_autograd.autograd_cache import AOTAutogradCache

        AOTAutogradCache.save = staticmethod(lambda *args, **kwargs: harm(what, report))  # type: ignore[method-assign]
    elif where == "call":
        add = Calls.add

        def harmed_add(self: Calls, label: str, call: Callable[[], Any]) -> Any:
            result = add(self, label, call)
            harm(what, report)
            return result

        Calls.add = harmed_add  # type: ignore[method-assign]


def main() -> None:
    what, where = sys.argv[1:3]
    del sys.argv[1:3]
    report = Path(sys.argv[sys.argv.index("--report") + 1])
    torch._dynamo.config.suppress_errors = what == "suppress"
    if where != "nowhere":
        lay_in_wait(what, where, report)
    try:
        record_programs.main()
    except BaseException:
        write_report(report, [])
        raise


if __name__ == "__main__":
    main()
