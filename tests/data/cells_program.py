"""Runs the cells of notebook_cells.txt in a process of its own: ``cells_program.py kernel|edited|shell CELLS``, by record_kind.py.

Prints what the last cell printed. Two kernels of Jupyter, the second with one cell edited, and a shell of IPython.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

EDITED = ("(x.sin() + 1)", "(x.sin() + 2)")


class Manager(AsyncKernelManager):
    """Starts this interpreter, whatever kernels are installed."""

    @property
    def kernel_spec(self) -> KernelSpec:
        return KernelSpec(argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"])


def run_kernel(cells: list[str]) -> str:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, kernel_manager_class=Manager, timeout=300).execute()
    printed: str = notebook.cells[-1].outputs[-1]["text"]
    return printed


def run_shell(cells: list[str]) -> str:
    shell = InteractiveShell.instance()
    for cell in cells:
        with capture_output() as output:
            shell.run_cell(cell, store_history=True).raise_error()
    return str(output.stdout)


if __name__ == "__main__":
    way, path = sys.argv[1:]
    text = Path(path).read_text()
    text = text.replace(*EDITED) if way == "edited" else text
    # Each without its mark.
    cells = [cell.strip("\n") + "\n" for cell in text.split("# %%\n") if cell]
    print((run_shell if way == "shell" else run_kernel)(cells))
