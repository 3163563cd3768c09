"""What was built under equal keys, as lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from cachescope.analysis.directory.built import CHOICE, CODE, KERNELS, NOT_KNOWN, TIMES
from cachescope.frames.answer_rows import Built
from cachescope.report.layout import Line
from cachescope.terms import AUTOTUNE, BEST_CONFIG, FXGRAPH
from cachescope.wording import SHORT_KEY, and_more, harmless, plural

_SHOWN: Final = 20
_WHAT: Final = {
    FXGRAPH: ("graph", ""),
    BEST_CONFIG: ("Triton configuration", ""),
    AUTOTUNE: ("choice of max-autotune", "choices of max-autotune"),
}
_OTHER: Final = {CODE: "other generated code", KERNELS: "other kernels, from the same source"}


def built_lines(rows: Sequence[Built]) -> Iterator[Line]:
    """What differs under equal keys first; then in a line what does not."""
    differing = [row for row in rows if row.result in (CODE, KERNELS, CHOICE)]
    if differing:
        yield Line(f"under equal keys, built differently: {_counted(differing, rows)}", style="bold")
        yield Line("a process takes what lies in the directory that it looks into", 3, "dim")
    elif rows:
        yield Line(f"under equal keys, built the same way: {_counted(rows, rows)}", style="bold")
    for row in differing[:_SHOWN]:
        yield from _difference(row)
    if len(differing) > _SHOWN:
        yield Line(and_more(len(differing) - _SHOWN), 3, "dim")
    if times := sum(row.result == TIMES for row in rows):
        yield Line(f"{plural(times, *_WHAT[AUTOTUNE])} equal, and only measured times differ", 3, "dim")
    if unread := sum(row.result == NOT_KNOWN for row in rows):
        yield Line(f"not known of {plural(unread, 'graph')}: the generated code could not be read", 3, "dim")


def _counted(some: Iterable[Built], rows: Sequence[Built]) -> str:
    kinds = [row.cache for row in some]
    counts = ((kinds.count(cache), sum(row.cache == cache for row in rows), cache) for cache in _WHAT)
    return ", ".join(
        plural(count, *_WHAT[cache]) if count == among else f"{count} of {plural(among, *_WHAT[cache])}"
        for count, among, cache in counts
        if count
    )


def _difference(row: Built) -> Iterator[Line]:
    if row.cache == FXGRAPH:
        yield Line(f"fxgraph {row.cache_key[:SHORT_KEY] if row.cache_key else ''}…: {_OTHER[row.result]}", 3)
        yield Line(harmless(row.evidence), 6, "dim")
        return
    name = row.name or f"{row.cache} {(row.cache_key or '')[:SHORT_KEY]}…"
    yield Line(f"{harmless(name)}: {harmless(row.before or 'none')} → {harmless(row.after or 'none')}", 3)
