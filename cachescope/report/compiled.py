"""What torch compiled and why, as lines: what was compiled again, where graphs break, what became a symbol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from cachescope.analysis.compiles.frames import recompiles
from cachescope.analysis.compiles.ranges import bounds_of
from cachescope.answers.compiled import Compiled
from cachescope.answers.recording import Recording
from cachescope.frames.compile_rows import RecompileRow, SymbolRow
from cachescope.report.layout import Line, first_items, parted
from cachescope.report.why_missed import problem_lines
from cachescope.wording import duration, plural

_ROWS: Final = 3
_KINDS: Final = {
    "first": ("first compile", "first compiles"),
    "recompile": ("recompile", "recompiles"),
    "resume": ("resumed after a graph break", "resumed after a graph break"),
    "backward": ("backward", "backward"),
}


def rows(read: Recording) -> dict[str, Sequence[object]]:
    """What was read of compiles, and what follows from it."""
    compiles, symbols, problems = read.compiles_read
    return {
        "runs": read.tables.runs.rows,
        "compiles": compiles.rows,
        "recompiles": recompiles(compiles.rows),
        "symbols": symbols.rows,
        "problems": [*read.tables.problems.rows, *problems],
    }


def blocks(read: Recording, most: int = 10, where: str = "--json") -> list[Line]:
    """The counts, and below them the first of each list; `where` all are."""
    compiled = Compiled.of(read)
    if not compiled.kinds:
        text = "no trace with compiles was read: they are in the files that torch writes to the folder TORCH_TRACE names"
        return [Line(text, style="bold"), *problem_lines(compiled.problems)]
    symbols = [_symbol(compiled, row, count) for row, count in compiled.symbols]
    sections: dict[str, Sequence[Iterable[Line]]] = {
        "compiled again": [_recompile(compiled, row) for row in compiled.recompiles],
        "looked up in caches": [[line] for line in _looked_up(compiled)],
        "graph breaks": [[line] for line in _breaks(compiled)],
        "sizes and numbers that became symbols": symbols,
    }
    lists = (first_items(title, items, most, f"{where} lists all", 2) for title, items in sections.items())
    headline = Line(_headline(compiled), style="bold", hang=3)
    return [headline, *parted(lists), *problem_lines(compiled.problems)]


def _headline(compiled: Compiled) -> str:
    """How many compiles there are of each kind, and how long they took."""
    kinds = compiled.kinds
    counts = [plural(kinds[kind], *words) for kind, words in _KINDS.items() if kinds[kind]]
    limits = compiled.kinds["limit"]
    text = plural(compiled.kinds.total() - limits, "compile")
    if compiled.time_taken_ns is not None:
        text += f" in {duration(compiled.time_taken_ns)}"
    text += f": {', '.join(counts)}"
    if compiled.failed:
        text += f"; {compiled.failed} failed"
    if compiled.unended:
        text += f"; {compiled.unended} without an end in the log"
    return f"{text}; {_limits(limits)}, and torch did not compile" if limits else text


def _limits(count: int) -> str:
    return f"the recompile limit was reached {'once' if count == 1 else f'{count} times'}"


def _recompile(compiled: Compiled, row: RecompileRow) -> Iterator[Line]:
    text = f"{compiled.place(row)}: {plural(row.compiles, 'recompile')}"
    if row.limits:
        text += f"; {_limits(row.limits)}"
    yield Line(text, 1, right=duration(row.time_taken_ns), hang=3)
    if row.guard is None:
        yield Line("torch gave no reason", 3, "dim")
        return
    yield Line(f"guard: {row.guard}", 3, rows=_ROWS)
    if row.example is not None:
        yield Line(f"as in {row.example}", 3, "dim", rows=_ROWS)


def _looked_up(compiled: Compiled) -> Iterator[Line]:
    for one in compiled.looked_up:
        hits = plural(one.hits, "hit") if one.hits else ""
        misses = plural(one.full_misses, "full miss", "full misses") if one.full_misses else ""
        guards = plural(one.guard_misses, "guard miss", "guard misses") if one.guard_misses else ""
        bypasses = f"{one.bypasses} bypassed" if one.bypasses else ""
        outcomes = ", ".join(filter(None, (hits, misses, guards, bypasses))) or "no outcome is known"
        first, more = one.missed_in[:_ROWS], len(one.missed_in) - _ROWS
        missed = f"; missed in compile {', '.join(first)}" if first else ""
        missed += f" and {more} more" if more > 0 else ""
        yield Line(f"{compiled.place(one.row)}: {outcomes}{missed}", 1, hang=3, rows=_ROWS)


def _breaks(compiled: Compiled) -> Iterator[Line]:
    for row, count in compiled.broken:
        often = "" if count == 1 else f", in {count} compiles"
        for text in row.graph_breaks:
            where = _short_break(compiled, text)
            yield Line(f"{row.function or '?'}, {where}{often}", 1, hang=3, rows=_ROWS)


def _short_break(compiled: Compiled, text: str) -> str:
    """A graph break as the frame has it, its file shortened."""
    file, _, rest = text.partition(": ")
    name, _, line = file.rpartition(":")
    return f"{compiled.files[name]}:{line}: {rest}" if name in compiled.files else text


def _symbol(compiled: Compiled, row: SymbolRow, count: int) -> Iterator[Line]:
    value = "" if row.value is None else f", {row.value} when it was compiled"
    if row.changed_from is not None:
        value += f" and {row.changed_from} before"
    often = "" if count == 1 else f"; in {count} compiles"
    source = row.source or "a number that the program computes from data, or that the log does not name"
    text = f"{row.symbol} is {source}{value}, in {compiled.place(row)}{often}"
    yield Line(text, 1, hang=3, rows=_ROWS)
    bounds = bounds_of(row.range_after)
    if row.specialized is not None:
        where = "" if row.specialized_at is None else f", at {_short(compiled, row.specialized_at)}"
        yield Line(f"torch fixed it to {row.specialized}{where}", 3, rows=_ROWS)
    if row.guards and bounds is not None:
        guards = ", ".join(_guard_text(compiled, text) for text in dict.fromkeys(row.guards))
        # A guard may leave fewer values than lie within its bounds: a remainder, another symbol.
        within = "" if row.range_after == row.range else f"within {bounds.in_words}, by "
        yield Line(f"{within}its guards: {guards}", 3, rows=_ROWS)


def _guard_text(compiled: Compiled, text: str) -> str:
    """``s0 > 10 (model.py:88)`` of ``/home/me/model.py:88: s0 > 10``."""
    where, _, expr = text.rpartition(": ")
    return f"{expr} ({_short(compiled, where)})"


def _short(compiled: Compiled, where: str) -> str:
    file, _, line = where.rpartition(":")
    return f"{compiled.files.get(file, file)}:{line}"
