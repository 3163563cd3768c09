"""Answers of one module each, which every form tells: a command, Markdown, JSON, a section of the page, a pane.

The module has ``blocks(read, most, where)``: at most so many rows of each list, and where all are;
and ``rows(read)``, the rows behind them by what they are, for JSON.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Final, NamedTuple


class Subject(NamedTuple):
    """An answer; its name is that of its command, and of the frame of a Scope that its pane is of."""

    module: str
    question: str  # its heading
    about: str  # the sentence below it
    summary: str  # the help of its command


SUBJECTS: Final = {
    "compiles": Subject(
        "cachescope.report.compiled",
        "What was compiled, and why again?",
        "Every compile with the function it is of, and why it was compiled: for the first time, again because a guard failed, as the rest of a function after a graph break, or as a backward graph.",
        "List what torch compiled and why: recompiles and the guards that failed, graph breaks, sizes that became symbols.",
    )
}


def told(name: str) -> ModuleType:
    """The module of a subject."""
    return import_module(SUBJECTS[name].module)
