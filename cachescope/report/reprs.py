"""Answers that show themselves: as text where Python prints them, as HTML in a notebook.

An answer knows no form, so what a Scope gives is the same answer with a form put to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cachescope.answers.check import Check
from cachescope.answers.comparison import Comparison
from cachescope.answers.explanation import Explanation
from cachescope.answers.one_entry import OneEntry
from cachescope.answers.what_if import WhatIf
from cachescope.report.check_forms import check_html, check_lines
from cachescope.report.comparison import comparison_lines
from cachescope.report.explanation import explanation_html, explanation_lines
from cachescope.report.html import CODE_STYLE, STYLE, safe
from cachescope.report.layout import Line, laid_out
from cachescope.report.one_entry_forms import one_entry_html, one_entry_lines
from cachescope.report.what_if import what_if_html, what_if_lines
from cachescope.wording import harmless_line

_WIDTH: Final = 100


class ShownExplanation(Explanation):
    """An explanation with its reprs."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _unwrapped(explanation_lines(self))

    def _repr_html_(self) -> str:
        return explanation_html(self)


class ShownWhatIf(WhatIf):
    """A replay with its reprs."""

    def __repr__(self) -> str:
        return _unwrapped(what_if_lines(self))

    def _repr_html_(self) -> str:
        return what_if_html(self)


class ShownComparison(Comparison):
    """A comparison with its reprs."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _wrapped(comparison_lines(self))

    def _repr_html_(self) -> str:
        return f"<div style='{STYLE}'><pre style='{CODE_STYLE}'>{safe(repr(self))}</pre></div>"


class ShownCheck(Check):
    """A check with its reprs."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _wrapped(check_lines(self))

    def _repr_html_(self) -> str:
        return check_html(self)


class ShownEntry(OneEntry):
    """One entry with its reprs."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _wrapped(one_entry_lines(self))

    def _repr_html_(self) -> str:
        return one_entry_html(self)


def _wrapped(lines: Iterable[Line]) -> str:
    return "\n".join(text for text, _ in laid_out(lines, _WIDTH))


def _unwrapped(lines: Iterable[Line]) -> str:
    """Each line in one row, however long: what is compared by eye stays in one place."""
    return "\n".join(harmless_line(" " * line.indent + line.text) for line in lines)
