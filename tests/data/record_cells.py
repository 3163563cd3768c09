"""Records notebook cells: ``python tests/data/record_cells.py PYTHON`` for an interpreter with torch, ipykernel and nbclient.

Packages of another environment may be on PYTHONPATH. Writes ``tests/data/cells/VERSION.tar.xz``. Each of its folders is one process that ran the cells of ``notebook_cells.txt``: two kernels of
Jupyter, the second with one cell edited, and a shell of IPython. It has the trace, the text log, and the places that Python itself gives.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

from packing import pack

_PROGRAM = Path(__file__).resolve().parent / "notebook_cells.txt"
_LOGGERS = "dynamo,torch._inductor.codecache,torch._functorch._aot_autograd.autograd_cache"
_EDITED = ("(x.sin() + 1)", "(x.sin() + 2)")
_SAID = "said: "


def cells(*edit: str) -> list[str]:
    """The source of each cell, without its mark; `edit` is what to replace, and by what."""
    text = _PROGRAM.read_text()
    text = text.replace(*edit) if edit else text
    return [cell.strip("\n") + "\n" for cell in text.split("# %%\n") if cell]


def run_kernel(*edit: str) -> str:
    """Run the cells in a kernel of Jupyter; returns what the last one printed."""
    import nbformat
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    class Manager(AsyncKernelManager):
        """Starts this interpreter, whatever kernels are installed."""

        @property
        def kernel_spec(self) -> KernelSpec:
            return KernelSpec(argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"])

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells(*edit)])
    NotebookClient(notebook, kernel_manager_class=Manager, timeout=300).execute()
    printed: str = notebook.cells[-1].outputs[-1]["text"]
    return printed


def run_shell() -> str:
    """Run the cells in a shell of IPython; returns what the last one printed."""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell.instance()
    for cell in cells():
        with capture_output() as output:
            shell.run_cell(cell, store_history=True).raise_error()
    return str(output.stdout)


PROCESSES = {"kernel": run_kernel, "edited": partial(run_kernel, *_EDITED), "shell": run_shell}


def record_into(folder: Path, python: str = sys.executable) -> Path:
    """Run the cells in each process; each folder then holds ``trace``, ``torch.log`` and ``places.json``."""
    for name in PROCESSES:
        made = folder / name
        made.mkdir()
        environment = os.environ | {
            "TORCH_TRACE": str(made / "trace"),
            "TORCH_LOGS": _LOGGERS,
            "TORCH_LOGS_OUT": str(made / "torch.log"),
            "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
        }
        command = [python, __file__, "--run", name]
        printed = subprocess.run(
            command, check=True, env=environment, stdout=subprocess.PIPE, text=True, timeout=500
        )
        said = json.loads(printed.stdout.rpartition(_SAID)[2])
        (made / "places.json").write_text(json.dumps(said))
    return folder


if __name__ == "__main__":
    if sys.argv[1] == "--run":
        print(PROCESSES[sys.argv[2]]())
    else:
        for interpreter in sys.argv[1:]:
            pack("cells", interpreter, partial(record_into, python=interpreter), {"cache"})
