"""Whether the code that a process would find suits its CPU: no key records which CPU it was made for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from cachescope.analysis.contexts.cpu_code import VectorCode, fits_all, vector_code
from cachescope.analysis.directory.generated_code import SourceOf
from cachescope.frames.directory_rows import EntryRow
from cachescope.terms import UNREADABLE


@dataclass(frozen=True, slots=True)
class Safety:
    """Whether an entry would be wrong in a process although it is found; None if that is unknown.

    `reason` explains the answer, or why it is unknown.
    """

    is_unsafe: bool | None
    reason: str | None = None


SAFE: Final = Safety(is_unsafe=False)
NOT_CHECKED: Final = Safety(None)
"""The safety of an entry that would not be found."""
_NOT_READ: Final = Safety(
    None, "its generated code could not be read, so that nothing says for which CPU it is"
)


class CpuSafety:
    """Judges entries for one process.

    Parameters
    ----------
    source_of : callable
        Returns the generated source of an entry. Called once for each code key.
    width : int or None
        Vector width of the process's CPU in bits, 0 if it compiles without vectors; None if unknown.
    capability : str
        ATen's name for that CPU.
    """

    def __init__(self, source_of: SourceOf, width: int | None, capability: str) -> None:
        self._source_of = source_of
        self._width = width
        self._capability = capability
        self._known: dict[str, Safety] = {}

    def of_graph(self, row: EntryRow) -> Safety:
        """The safety of an entry that holds a graph."""
        if row.status == UNREADABLE:
            return _NOT_READ
        if "cpu" not in row.device_types:
            return SAFE
        key = row.code_key or f"entry {row.entry}"
        if key not in self._known:
            source = self._source_of(row)
            self._known[key] = _NOT_READ if source is None else self._of_code(vector_code(source))
        return self._known[key]

    def _of_code(self, code: tuple[VectorCode, ...]) -> Safety:
        if not code:
            return SAFE
        code_is = f"its code is written in {_vectors_of(code)}"
        if self._width is None:
            return Safety(None, f"{code_is}, and what the process's CPU has is not known")
        has = f"{self._width} bits" if self._width else "none"
        other = f"{code_is}, and the process ({self._capability}) has {has}"
        match fits_all(code, self._width):
            case True:
                return SAFE
            case None:
                return Safety(None, f"{other}: it may be right anyway, which its code does not show")
        return Safety(
            is_unsafe=True,
            reason=f"it was built for another CPU: {other}; numbers may be wrong, or the process ends",
        )


def _vectors_of(code: tuple[VectorCode, ...]) -> str:
    widths = sorted({width for kernel in code for width in kernel.widths})
    return f"vectors of {' or '.join(map(str, widths))} bits"


def worst(found: Iterable[Safety]) -> Safety:
    """The result for entries that are loaded together: the first unsafe one, else the first unknown one."""
    listed = list(found)
    for wanted in (True, None):
        for one in listed:
            if one.is_unsafe is wanted:
                return one
    return SAFE
