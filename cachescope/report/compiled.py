"""What torch compiled and why: how much, what was compiled again, what was looked up, graph breaks, and symbols."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from cachescope.analysis.compiles.ranges import bounds_of
from cachescope.analysis.guards import in_words
from cachescope.analysis.rates import known_sum
from cachescope.answers.names import place_name, place_of
from cachescope.answers.recording import Recording
from cachescope.answers.summary import compiles_of, loaded_graphs
from cachescope.frames.compile_rows import CompileRow, RecompileRow, RecordedText, SymbolRow
from cachescope.frames.recorded_rows import ProblemRow
from cachescope.grouping import by_key
from cachescope.notebook_cells import of_any_process
from cachescope.readers.logs.trace_compiles import first_attempt
from cachescope.report.layout import Line, first_items, parted, problem_lines
from cachescope.wording import duration, listed, numbered, plural, short_names

SomeRow = TypeVar("SomeRow")
_Placed = CompileRow | SymbolRow | RecompileRow
Files = Mapping[str, str]
"""The short name of each file of the program: its name, and as much of its path as tells it from others."""

_AGAIN: Final = "compiled again"
_ROWS: Final = 3
_KINDS: Final = {
    "first": ("first compile", "first compiles"),
    "recompile": ("recompile", "recompiles"),
    "resume": ("resumed after a graph break", "resumed after a graph break"),
    "backward": ("backward", "backward"),
}
_OF_TEXT: Final = "Text logs have no times, and only what TORCH_LOGS asks for (recompiles, graph_breaks, dynamo); traces have all"
_OUTCOMES: Final = {
    "hits": ("hit",), "full_misses": ("full miss",), "guard_misses": ("guard miss",),
    "bypasses": ("bypassed or disabled", "bypassed or disabled"),
}  # fmt: skip


def rows(read: Recording) -> dict[str, Sequence[object]]:
    """The compiles that were read, and what follows from them."""
    compiles, symbols, problems = read.compiles_read
    return {
        "runs": read.tables.runs.rows,
        "compiles": compiles.rows,
        "recompiles": read.recompiles_of(compiles.rows),
        "symbols": symbols.rows,
        "problems": [*read.tables.problems.rows, *problems],
    }


def blocks(read: Recording, most: int = 10, where: str = "--json") -> list[Line]:
    """The counts, then the first of each list, and `where` all of them are."""
    compiles, symbols = read.compiles_read[0].rows, read.compiles_read[1].rows
    problems = list(problem_lines([*read.tables.problems.rows, *read.compiles_read[2]]))
    if not compiles:
        text = "no compile was read: they are in the files that torch writes to the folder TORCH_TRACE names, some in text logs with TORCH_LOGS=recompiles"
        return [Line(text, style="bold"), *problems]
    placed: list[_Placed] = [*compiles, *symbols]
    files = short_names(row.file for row in placed if row.file is not None)
    sections: dict[str, Iterable[Iterable[Line]]] = {
        _AGAIN: (_recompile(row, files) for row in read.recompiles_of(compiles)),
        "looked up in caches": ([line] for line in _looked_up(compiles, files)),
        "graph breaks": ([line] for line in _breaks(compiles, files)),
        "sizes and numbers that became symbols": _symbols(symbols, files),
    }
    lists = (first_items(title, items, most, f"{where} lists all", 2) for title, items in sections.items())
    return [Line(_headline(read, compiles), style="bold", hang=3), *parted(lists), *problems]


def again_lines(read: Recording, most: int) -> list[Line]:
    """What was compiled again, the costliest first; no line if nothing is known to have been."""
    compiles = compiles_of(read, read.facts.runs.keys())
    files = short_names(row.file for row in compiles if row.file is not None)
    items = (_recompile(row, files) for row in read.recompiles_of(compiles))
    return first_items(_AGAIN, items, most, "cachescope compiles lists all", 2)


def recorded_lines(texts: Sequence[RecordedText], problems: Sequence[ProblemRow]) -> Iterator[Line]:
    """The names of the texts of a compile, in torch's order, each with its length and the runs that have it."""
    every = {one.run for one in texts}
    title = f"what torch recorded of compile {first_attempt(texts[0].compile_id)} in {numbered('run', sorted(every))}"
    yield Line(title, style="bold")
    for name, alike in by_key((one.name, one) for one in texts).items():
        lengths = sorted(one.text.count("\n") + 1 for one in alike)
        least = "" if lengths[0] == lengths[-1] else f"{lengths[0]:,} to "
        size = least + plural(lengths[-1], "line")
        runs = {one.run for one in alike}
        count = "" if len(alike) == len(runs) else f"{len(alike)} texts of "
        where = "" if runs == every else f", in {numbered('run', sorted(runs))}"
        cut = sum(not one.is_whole for one in alike)
        yield Line(name, 3, right=f"{count}{size}{where}{f', {cut} incomplete' if cut else ''}")
    yield Line("--show NAME prints the texts of a name", 3, "dim")
    yield from problem_lines(problems)


def _headline(read: Recording, compiles: Sequence[CompileRow]) -> str:
    """How many compiles there are of each kind, and how long they took."""
    kinds = Counter(row.kind for row in compiles)
    taken = [row.time_taken_ns for row in compiles if row.time_taken_ns is not None]
    limits = kinds["limit"]
    failed = sum(row.error is not None and row.kind != "limit" for row in compiles)
    runs = len({row.run for row in compiles if row.time_taken_ns is not None})
    took = f" in {duration(known_sum(taken))}{f' of {runs} runs' if runs > 1 else ''}" if taken else ""
    of_kind = [plural(kinds[kind], *words) for kind, words in _KINDS.items() if kinds[kind]]
    parts = [f"{plural(len(compiles) - limits, 'compile')}{took}: {', '.join(of_kind)}"] if of_kind else []
    parts += [f"{failed} failed"] if failed else []
    in_text = [row for row in compiles if row.run in read.tables.compiled]
    unended = [row for row in compiles if row.time_taken_ns is None and row.run not in read.tables.compiled]
    loaded = loaded_graphs(read, {row.run for row in unended}) if unended else ()
    from_package = sum((row.run, row.compile_id) in loaded for row in unended)
    parts += [f"{from_package} loaded from a package, not compiled"] if from_package else []
    if len(unended) > from_package:
        parts.append(f"{len(unended) - from_package} without an end in the log")
    parts += [f"{_limits(limits)}, and torch did not compile"] if limits else []
    return "; ".join(parts) + (f". {_OF_TEXT}" if in_text else "")


def _limits(count: int) -> str:
    return f"the recompile limit was reached {'once' if count == 1 else f'{count} times'}"


def _place(row: _Placed, files: Files, *others: _Placed) -> str:
    """``forward (model.py:88)``."""
    return place_name(row, files, *others) or "a function that the log does not name"


def _recompile(row: RecompileRow, files: Files) -> Iterator[Line]:
    counts = [plural(row.compiles, "recompile")] if row.compiles else []
    counts += [_limits(row.limits)] if row.limits else []
    yield Line(f"{_place(row, files)}: {'; '.join(counts)}", 1, right=duration(row.time_taken_ns), hang=3)
    if row.guard is None:
        yield Line("no reason is recorded", 3, "dim")
        return
    yield Line(f"guard: {row.guard}", 3, rows=_ROWS)
    if row.example is not None:
        yield Line(f"as in {row.example}", 3, "dim", rows=_ROWS)


def _looked_up(compiles: Sequence[CompileRow], files: Files) -> Iterator[Line]:
    """What the compiles of each function looked up, as far as known, the most misses first."""
    of_function = by_key((place_of(row), row) for row in compiles if row.lookups).values()
    for rows in sorted(of_function, key=lambda rows: -sum(map(_misses, rows))):
        counts = {name: sum(getattr(row, name) or 0 for row in rows) for name in _OUTCOMES}
        outcomes = ", ".join(plural(count, *_OUTCOMES[name]) for name, count in counts.items() if count)
        missed_in = dict.fromkeys(row.compile_id for row in rows if _misses(row))
        missed = f"; missed in compile {listed(missed_in, _ROWS)}" if missed_in else ""
        text = f"{_place(rows[0], files, *rows)}: {outcomes or 'no outcome is known'}{missed}"
        yield Line(text, 1, hang=3, rows=_ROWS)


def _misses(row: CompileRow) -> int:
    return (row.full_misses or 0) + (row.guard_misses or 0)


def _breaks(compiles: Sequence[CompileRow], files: Files) -> Iterator[Line]:
    """A line for each place at which a graph breaks."""
    breaks = ((row, (row.function, _everywhere(row.graph_breaks))) for row in compiles if row.graph_breaks)
    for row, count in _counted(breaks):
        often = "" if count == 1 else f", in {count} compiles"
        for text in row.graph_breaks:
            where = _short_break(text, files)
            yield Line(f"{row.function or '?'}, {where}{often}", 1, hang=3, rows=_ROWS)


def _short_break(text: str, files: Files) -> str:
    """A graph break as the frame has it, its file shortened."""
    file, _, rest = text.partition(": ")
    name, _, line = file.rpartition(":")
    return f"{files[name]}:{line}: {rest}" if name in files else text


def _symbols(symbols: Sequence[SymbolRow], files: Files) -> Iterator[Iterator[Line]]:
    """Each size or number that became a symbol, with its guards. Those that torch fixed to one value come first."""
    # Another branch leaves another range.
    alike = (
        (row, (row.source, place_of(row), row.range_after, _everywhere(row.guards), row.specialized))
        for row in symbols
    )
    for row, count in sorted(_counted(alike), key=lambda one: one[0].specialized is None):
        yield _symbol(row, count, files)


def _symbol(row: SymbolRow, count: int, files: Files) -> Iterator[Line]:
    value = "" if row.value is None else f", {row.value} when it was compiled"
    if row.changed_from is not None:
        value += f" and {row.changed_from} before"
    often = "" if count == 1 else f"; in {count} compiles"
    unnamed = "a number that the program computes from data, or that the log does not name"
    text = f"{row.symbol} is {in_words(row.source) if row.source else unnamed}{value}, in {_place(row, files)}{often}"
    yield Line(text, 1, hang=3, rows=_ROWS)
    bounds = bounds_of(row.range_after)
    if row.specialized is not None:
        where = "" if row.specialized_at is None else f", at {_short(row.specialized_at, files)}"
        yield Line(f"torch fixed it to {row.specialized}{where}", 3, rows=_ROWS)
    if row.guards and bounds is not None:
        guards = ", ".join(_guard_text(text, files) for text in dict.fromkeys(row.guards))
        # Guards may leave fewer values than their bounds show, as a remainder or another symbol does.
        within = "" if row.range_after == row.range else f"within {bounds.in_words}, by "
        yield Line(f"{within}its guards: {guards}", 3, rows=_ROWS)


def _guard_text(text: str, files: Files) -> str:
    """``s0 > 10 (model.py:88)`` for ``/home/me/model.py:88: s0 > 10``."""
    where, _, expr = text.rpartition(": ")
    return f"{expr} ({_short(where, files)})"


def _short(where: str, files: Files) -> str:
    file, _, line = where.rpartition(":")
    return f"{files.get(file, file)}:{line}"


def _everywhere(texts: Iterable[str]) -> tuple[str, ...]:
    """The part of a text that is the same in all processes."""
    return tuple(map(of_any_process, texts))


def _counted(rows: Iterable[tuple[SomeRow, object]]) -> list[tuple[SomeRow, int]]:
    """The first row of each kind with the count of the kind, the most frequent first."""
    groups = sorted(by_key((kind, row) for row, kind in rows).values(), key=len, reverse=True)
    return [(alike[0], len(alike)) for alike in groups]
