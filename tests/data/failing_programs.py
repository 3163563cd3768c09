"""The programs of record_programs.py in processes that come to harm: a compile fails, or the process is ended.

    python failing_programs.py WHAT WHERE program of record_programs.py and its arguments

WHAT happens (`raise`, `interrupt`: SIGINT, as Ctrl-C sends it, `kill`, `exit`, or `suppress`: raise, and let Dynamo go on
without compiling) and WHERE: in the code generation of the forward or the backward graph, or of the `second` graph, where the AOTAutograd entry
would be stored, or after the first call. `compiler nowhere`: a C++ compiler that fails comes first on the path.
Nothing else in torch is changed. What torch had counted by then is written beforehand.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import record_programs
import torch
import torch._dynamo.config
import torch._inductor.graph
from record_programs import Calls, write_report


def harm(what: str, report: Path) -> None:
    """End the process, or the compile it is in."""
    write_report(report)
    if what in ("raise", "suppress"):
        raise ValueError("no code for this graph")
    if what == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
    elif what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        os._exit(3)


def lay_in_wait(what: str, where: str, report: Path) -> None:
    """Put the harm where the compile comes by."""
    if where in ("forward", "backward", "second"):
        graph_lowering = torch._inductor.graph.GraphLowering
        codegen = graph_lowering.codegen
        graphs = itertools.count(1)

        def harmed_codegen(self: Any, *args: Any, **kwargs: Any) -> Any:
            if next(graphs) == 2 if where == "second" else self.is_backward == (where == "backward"):
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


def put_failing_compiler(folder: Path) -> None:
    """A g++ that says its version, as torch asks for it, and compiles nothing."""
    folder.mkdir()
    compiler = folder / "g++"
    compiler.write_text(
        "#!/bin/sh\n"
        f'case "$1" in --version|-dumpversion|-v) exec {shutil.which("g++")} "$@";; esac\n'
        'echo "g++: fatal error: Killed signal terminated program cc1plus" >&2\n'
        "exit 1\n"
    )
    compiler.chmod(0o755)
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"


def main() -> None:
    what, where = sys.argv[1:3]
    del sys.argv[1:3]
    report = Path(sys.argv[sys.argv.index("--report") + 1])
    torch._dynamo.config.suppress_errors = what == "suppress"
    # A process that was started in the background does not listen to it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if what == "compiler":
        put_failing_compiler(Path.cwd() / "failing_compiler")
    if where != "nowhere":
        lay_in_wait(what, where, report)
    try:
        record_programs.main()
    except BaseException:
        write_report(report)
        raise


if __name__ == "__main__":
    main()
