"""Whether the code that a process would find suits its CPU: no key records which CPU it was made for.

Torch writes the width of the CPU's registers into the source of a kernel as numbers (torch/_inductor/codegen/cpp.py,
``CppTilingAnalysis.select_tiling``, 2.6 to 2.15), and a process that loads the source compiles it for its own CPU. No
key holds the width.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from cachescope.analysis.directory.equal_code import SourceOf
from cachescope.frames.directory_rows import EntryRow
from cachescope.terms import UNREADABLE

_WIDTHS: Final = frozenset({128, 256, 512})
_BYTES: Final = {
    **dict.fromkeys(("float", "int32_t", "uint32_t"), 4),
    **dict.fromkeys(("double", "int64_t", "uint64_t"), 8),
    **dict.fromkeys(("at::BFloat16", "at::Half", "bfloat16", "half"), 2),
}
# Types whose loads always fill a vector. For 16-bit types half a vector may be loaded, for 8-bit types a quarter.
_WHOLE: Final = 4
_TYPE: Final = r"Vectorized(?:N<(?P<many>[\w:]+), ?(?P<n>[1-9]\d{0,5})>|<(?P<one>[\w:]+)>)"
_VECTOR: Final = re.compile(_TYPE)
_CONVERTED: Final = re.compile(r"convert<(?P<many>[\w:]+), ?(?P<n>[1-9]\d{0,5}),(?P<one> ?[\w:]+, ?\d+)>")
# Whole vectors are counted in plain numbers. The rest at the end of a loop is an expression: `5L`.
_LOAD: Final = re.compile(_TYPE + r"::loadu\(.*, static_cast<\w+>\((?P<count>\d{1,9})\)\)")
_STORED: Final = r"(?:(?!\.store\().)*"
_WHOLE_STORE: Final = re.compile(rf"\.store\((?!{_STORED}static_cast<\w++>\(\d++L\)\);){_STORED}\);")
_STEP: Final = re.compile(r"\+= ?(?:static_cast<\w+>\((\d{1,9})L?\)|(\d{1,9})L)")
_INTRINSIC: Final = re.compile(r"\b_mm(256|512)_")
_TILES: Final = re.compile(r"\b_?(?:amx|tile)_")


class VectorCode(NamedTuple):
    """One vectorized kernel."""

    widths: frozenset[int]  # how wide its vectors may be, in bits; a single width if that is certain
    # Whether it reads or writes a whole vector. Code that uses only parts of vectors may be right for other
    # widths too.
    has_whole: bool = True

    def fits(self, width: int) -> bool | None:
        """Whether it is right for vectors of this width (0: no vectors); None if that is unknown."""
        if width not in self.widths:
            return None if width and not self.has_whole else False
        return True if len(self.widths) == 1 else None


def vector_code(source: str) -> tuple[VectorCode, ...]:
    """The vectorized kernels of a generated source; empty if there are none.

    Examples
    --------
    >>> kernel = 'extern "C" void kernel(...) {{ auto a = at::vec::Vectorized<float>::loadu(p, static_cast<int64_t>({})); }}'
    >>> [code.fits(256) for width in (8, 16) for code in vector_code(kernel.format(width))]
    [True, False]
    """
    found = (_vector_code(kernel) for kernel in source.split('extern "C"'))
    return tuple(dict.fromkeys(code for code in found if code is not None))


def fits_all(code: Sequence[VectorCode], width: int) -> bool | None:
    """Whether every kernel is right for vectors of this width."""
    answers = {kernel.fits(width) for kernel in code}
    if False in answers:
        return False
    return None if None in answers else True


def _vector_code(kernel: str) -> VectorCode | None:
    if (intrinsic := _INTRINSIC.search(kernel)) is not None:
        return VectorCode(frozenset({int(intrinsic[1])}))
    if _TILES.search(kernel):
        return VectorCode(_WIDTHS)
    if "at::vec::" not in kernel:
        return None
    loads = list(_loads(kernel))
    exact = {width for size, width in loads if size >= _WHOLE}
    if exact:
        return VectorCode(frozenset({max(exact)}))
    has_whole = bool(loads) or _WHOLE_STORE.search(kernel) is not None
    if widths := _by_steps(kernel):
        return VectorCode(widths, has_whole)
    if widths := _by_bytes(kernel):
        return VectorCode(widths, has_whole=False)
    return VectorCode(_by_halves(loads) or _WIDTHS, has_whole)


def _loads(kernel: str) -> Iterator[tuple[int, int]]:
    """Bytes of an element and bits of a vector, for each load of a whole vector."""
    for load in _LOAD.finditer(kernel):
        size = _BYTES.get(load["many"] or load["one"])
        if size is not None:
            yield size, int(load["count"]) * size * 8 // int(load["n"] or 1)


def _by_steps(kernel: str) -> frozenset[int]:
    """Widths from the single step of the loops, and the number of vectors that such a step fills."""
    step = _one_step(kernel)
    whole = {(size, n) for size, n in _vectors(kernel) if size >= _WHOLE}
    found = {step * size * 8 // n for size, n in whole} if step else set()
    return frozenset(found) & _WIDTHS if len(found) == 1 else frozenset()


def _by_bytes(kernel: str) -> frozenset[int]:
    """Widths of a kernel that has only bytes: its step is the number of floats in a vector, and fills a quarter of one."""
    step = _one_step(kernel)
    is_of_bytes = all(size == 1 for size, _ in _vectors(kernel))
    return frozenset({step * 32}) & _WIDTHS if step and is_of_bytes else frozenset()


def _one_step(kernel: str) -> int | None:
    steps = {int(step) for match in _STEP.findall(kernel) for step in match if step} - {1}
    return steps.pop() if len(steps) == 1 else None


def _vectors(kernel: str) -> Iterator[tuple[int, int]]:
    """Bytes of an element and number of vectors, for each vector type."""
    for pattern in (_VECTOR, _CONVERTED):
        for vector in pattern.finditer(kernel):
            parts = vector.groupdict()
            yield _BYTES.get(parts["many"] or parts["one"], 1), int(parts["n"] or 1)


def _by_halves(loads: Sequence[tuple[int, int]]) -> frozenset[int]:
    """Widths from 16-bit loads, which take a whole vector or half of one."""
    widest = max((width for _, width in loads), default=0)
    return frozenset({widest, 2 * widest}) & _WIDTHS


class Safety(NamedTuple):
    """Whether an entry would be wrong in a process although it is found; None if that is unknown.

    `reason` explains the answer, or why it is unknown.
    """

    is_unsafe: bool | None
    reason: str | None = None


SAFE: Final = Safety(is_unsafe=False)
NOT_CHECKED: Final = Safety(None)
"""The answer for an entry that would not be found."""
_NOT_READ: Final = Safety(
    None, "its generated code could not be read, so that nothing says for which CPU it is"
)


class CpuSafety:
    """Judges entries for one process."""

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
        widths = sorted({width for kernel in code for width in kernel.widths})
        code_is = f"its code is written in vectors of {' or '.join(map(str, widths))} bits"
        if self._width is None:
            return Safety(None, f"{code_is}, and what the process's CPU has is not known")
        has = f"{self._width} bits" if self._width else "none"
        other = f"{code_is}, and the process ({self._capability}) has {has}"
        match fits_all(code, self._width):
            case True:
                return SAFE
            case None:
                return Safety(None, f"{other}: it may be right anyway, which its code does not show")
        reason = f"it was built for another CPU: {other}; numbers may be wrong, or the process ends"
        return Safety(is_unsafe=True, reason=reason)


def worst(found: Iterable[Safety]) -> Safety:
    """The result for entries that are loaded together: the first unsafe one, else the first unknown one."""
    listed = list(found)
    return next((one for wanted in (True, None) for one in listed if one.is_unsafe is wanted), SAFE)
