"""A comparison as lines and as an object for JSON: of two lookups, and of two sides with what they built and what mega-caches cover."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from cachescope.analysis.directory.built import CHOICE, CODE, KERNELS, NOT_KNOWN, TIMES
from cachescope.analysis.verdicts.replaced_graphs import SeenKey
from cachescope.answers import comparison as answer
from cachescope.answers.aligned_lookups import Aligned, Change
from cachescope.answers.comparison import ComparedRuns, ComparedSide, SideTime
from cachescope.answers.difference import Difference, Pair
from cachescope.answers.names import lookup_name
from cachescope.frames.answer_rows import RateRow
from cachescope.frames.compared import Built, CoverageRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key
from cachescope.json_types import JsonObject
from cachescope.report.as_json import tables_object, whole_change_object
from cachescope.report.blocks import Block, Group, Head, Numbers, Table
from cachescope.report.contexts import difference_blocks, prediction_lines, reason_lines
from cachescope.report.explanation import folded_blocks
from cachescope.report.html import Reprs
from cachescope.report.json_text import values_of
from cachescope.report.layout import Line, firsts, parted
from cachescope.report.time_spent import machine_lines, phases_table, signed
from cachescope.terms import AUTOTUNE, BEST_CONFIG, FXGRAPH
from cachescope.wording import duration, listed, percent, plural, short_key

_WORST_FIRST: Final = ("no", "unknown", "never")
_FEW: Final = 3
_WHAT: Final = {
    FXGRAPH: ("graph", ""),
    BEST_CONFIG: ("Triton configuration", ""),
    AUTOTUNE: ("choice of max-autotune", "choices of max-autotune"),
}
_OTHER: Final = {CODE: "other generated code", KERNELS: "other kernels, from the same source"}
_CHANGES: Final[dict[Change, str]] = {
    "regressed": "Regressed", "fixed": "Fixed", "same": "Same",
    "only_before": "Only in A", "only_after": "Only in B", "not_known": "Not known",
}  # fmt: skip
# For runs at the same time, neither came first.
_BESIDE: Final[dict[Change, str]] = {**_CHANGES, "regressed": "A hits more", "fixed": "B hits more"}
# Words within a sentence, where a small initial letter is not enough.
_SAID: Final = {
    "Same": "same outcome", "A hits more": "where A hits more", "B hits more": "where B hits more",
}  # fmt: skip


def coverage_lines(rows: Sequence[CoverageRow]) -> Iterator[Line]:
    """How much of a run and of its cache directory the bundle holds, then why the rest is missing."""
    lookups = [row for row in rows if row.entry is None]
    entries = [row for row in rows if row.entry is not None]
    yield from _covered("covers", lookups, "the run", "lookup")
    yield from _covered("holds", entries, "the cache directory", "entry")


def _covered(holds: str, rows: Sequence[CoverageRow], whole: str, one: str) -> Iterator[Line]:
    """How many are in the bundle, then each reason with the first of its keys."""
    if not rows:
        return
    unknown = f"; of {number} it is not known" if (number := _number(rows, "unknown")) else ""
    total = f"{plural(_number(rows), one)} of {whole}{unknown}"
    yield Line(f"the bundle {holds} {_number(rows, 'yes')} of {total}", style="bold")
    groups = by_key(((row.held, row.reason), row) for row in rows if row.held in _WORST_FIRST)
    for (held, reason), members in sorted(groups.items(), key=lambda group: _WORST_FIRST.index(group[0][0])):
        yield from reason_lines(held, reason, plural(_number(members), one), map(_named, members))


def _number(rows: Sequence[CoverageRow], held: str | None = None) -> int:
    return sum(row.lookups or 1 for row in rows if held in (None, row.held))


def _named(row: CoverageRow) -> str:
    return f"{row.cache} {'(no key)' if row.cache_key is None else short_key(row.cache_key)}"


def built_lines(rows: Sequence[Built]) -> Iterator[Line]:
    """What differs under equal keys, then a line about what does not."""
    differing = [row for row in rows if row.result in (CODE, KERNELS, CHOICE)]
    if differing:
        yield Line(f"under equal keys, built differently: {_counted(differing, rows)}", style="bold")
        yield Line("a process takes what lies in the directory that it looks into", 3, "dim")
    elif rows:
        yield Line(f"under equal keys, built the same way: {_counted(rows, rows)}", style="bold")
    yield from firsts(map(_built_differently, differing), 20)
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


def _built_differently(row: Built) -> Iterator[Line]:
    if row.cache == FXGRAPH:
        yield Line(f"fxgraph {short_key(row.cache_key or '')}: {_OTHER[row.result]}", 3)
        yield Line(row.evidence, 6, "dim")
        return
    name = row.name or f"{row.cache} {short_key(row.cache_key or '')}"
    yield Line(f"{name}: {row.before or 'none'} → {row.after or 'none'}", 3)


def key_difference_blocks(found: Difference, sides: Iterable[str]) -> Iterator[Block]:
    """How many keys of two sides differ, and in which fields, the most frequent difference first."""
    differing = sum(len(pairs) for _, pairs in found.groups)
    counts = [f"{plural(found.equal, 'key')} equal", f"{differing + len(found.unknown)} differ"]
    counts += [f"{len(found.only_before)} only before", f"{len(found.only_after)} only after"]
    yield Line(", ".join(counts), style="bold")
    yield from (
        Line(side, 3, label=label, hang=8) for label, side in zip(("before:", "after:"), sides, strict=True)
    )
    if any(before.cache != after.cache for _, pairs in found.groups for before, after in pairs):
        yield Line("They are of two caches, whose keys are made of different fields.")
    if found.groups:
        yield Line()
    yield from folded_blocks(found.groups, _title, ".frame", ("Before", "After"))
    if found.unknown:
        yield from (Line(), Line("differ, and their hash details were not recorded:", style="bold"))
        yield from firsts((Line(_pair_text(pair), 3, "dim") for pair in found.unknown), _FEW, "pair")
    for title, rows in (("only before", found.only_before), ("only after", found.only_after)):
        if rows:
            yield from (Line(), Line(f"{title}: {listed(map(lookup_name, rows), 5)}"))


def _title(pairs: Sequence[Pair]) -> str:
    return f"{plural(len(pairs), 'key')}: {listed(map(_pair_text, pairs), _FEW, '; ')}"


def _difference_object(found: Difference) -> JsonObject:
    """The difference for ``--json``."""
    return {
        "equal": found.equal,
        "differences": [
            {
                "fields": [change.field for change in changes],
                "changes": list(map(whole_change_object, changes)),
                "keys": list(map(_pair_object, pairs)),
            }
            for changes, pairs in found.groups
        ],
        "not_recorded": list(map(_pair_object, found.unknown)),
        "only_before": list(map(_row_object, found.only_before)),
        "only_after": list(map(_row_object, found.only_after)),
    }


def _pair_text(pair: Pair) -> str:
    a, b = pair
    place = f", compile {b.compile_id}" if b.compile_id is not None else ""
    place += f" of {b.function}" if place and b.function is not None else ""
    return f"{lookup_name(a)} -> {short_key(b.cache_key)}{place}"


def _row_object(row: SeenKey) -> JsonObject:
    return values_of(row, "cache", "direction", "cache_key", "compile_id", "function", "lookup", "entry")


def _pair_object(pair: Pair) -> JsonObject:
    return {"before": _row_object(pair[0]), "after": _row_object(pair[1])}


def comparison_blocks(found: answer.Comparison) -> list[Block]:
    """The comparison; first what it means for a cache."""
    parts: list[Iterable[Block]] = []
    if found.covered is not None:
        parts.append(coverage_lines(found.covered.rows))
    if found.predicted is not None:
        parts.append(prediction_lines(found.predicted.rows))
    if found.form_differences is not None:
        parts.append(difference_blocks(found.form_differences.rows, ".contexts"))
    if found.graphs is not None:
        names = [found.before, found.after]
        if found.runs is not None:
            parts.append(run_blocks(found.runs))
            sides = zip(found.paths, (found.runs.before, found.runs.after), strict=True)
            names = [f"{path}: {side.name}" if path else side.name for path, side in sides]
        parts.append(key_difference_blocks(found.graphs, names))
    if found.built_alike:
        parts.append(built_lines(found.built_alike.rows))
    head = Line("nothing that both sides have could be compared", style="bold")
    return [*parted(parts)][1:] or [head, *(Line(text, hang=3) for text in found.alone)]


class Comparison(Reprs, answer.Comparison):
    """A comparison with its reprs."""

    __slots__ = ()

    _blocks = comparison_blocks


def comparison_object(found: answer.Comparison) -> JsonObject:
    """The comparison for ``--json``."""
    graphs = found.graphs
    sides = values_of(found, "before", "after") | ({} if graphs is None else _difference_object(graphs))
    compared = None if found.runs is None else found.runs.table
    tables = (found.form_differences, found.predicted, found.built_alike, found.covered, compared)
    return {**sides, **tables_object(*tables), "alone": list(found.alone)}


def change_names(found: ComparedRuns) -> dict[Change, str]:
    """The name of each change: only what came later can have regressed."""
    return _CHANGES if found.is_ordered else _BESIDE


def _said(found: ComparedRuns) -> dict[Change, str]:
    """The same within a sentence."""
    names = change_names(found).items()
    return {change: _SAID.get(name, f"{name[0].lower()}{name[1:]}") for change, name in names}


def went(rows: Sequence[LookupRow]) -> str | None:
    """How the lookups of one side went: the outcome if it is one, else how many hit."""
    if len(rows) < 2:
        return rows[0].outcome if rows else None
    outcomes = Counter(row.outcome for row in rows).most_common()
    return ", ".join(f"{outcome} ×{count}" for outcome, count in outcomes)


def side_lines(found: ComparedRuns) -> Iterator[Line]:
    """What A and B are, and how they are compared."""
    yield from map(Line, _sides(found))
    if found.by_rank:
        yield Line("Each rank is compared with the same rank.")
    yield from machine_lines(found.before.machines, found.after.machines)


def _sides(found: ComparedRuns) -> tuple[str, str]:
    return f"A: {found.before.name}", f"B: {found.after.name}"


def run_blocks(found: ComparedRuns) -> Iterator[Block]:
    """How the lookups of both sides went, in short."""
    yield headline(found)
    words = _said(found)
    counts = [f"{count:,} {words[change]}" for change, count in found.counts.items() if count]
    by_rank = ", rank by rank" if found.by_rank else ""
    yield Line(f"lookups, aligned by their graphs{by_rank}: {', '.join(counts)}", 3)
    yield from machine_lines(found.before.machines, found.after.machines)


def headline(found: ComparedRuns, times: tuple[SideTime, SideTime] | None = None) -> Numbers:
    """The numbers of both sides at a glance, with their times as far as events show them."""
    one, other = found.before.rate, found.after.rate
    runs = [len(side.runs) for side in (found.before, found.after)]
    together = "" if runs == [1, 1] else f"{plural(runs[0], 'run')} → {plural(runs[1], 'run')}, together"
    shares = moved(percent(one.hit_rate, "–"), percent(other.hit_rate, "–"))
    counts = f"{_hits(one)} → {_hits(other)}"
    cells = [
        ("Hit rate by count", shares, counts),
        ("Compile time after misses", moved(_lost(found.before), _lost(found.after)), together),
    ]
    if times is not None:
        totals = moved(*(duration(side.total_ns) for side in times))
        cells.append(("Time in events", totals, _mean(times)))
    return Numbers(tuple(cells))


def moved(before: str, after: str) -> str:
    """Two texts side by side, or one if they are equal."""
    return before if before == after else f"{before} → {after}"


def _lost(side: ComparedSide) -> str:
    """Compile time after misses, by FX lookups; None if nothing missed."""
    rate = side.by_cache.get(FXGRAPH, side.rate)
    return _time(side.rate.time_lost_ns, rate.hits < rate.lookups)


def _saved(side: ComparedSide) -> str:
    return _time(side.rate.time_saved_ns, side.by_cache.get(FXGRAPH, side.rate).hits > 0)


def _time(ns: int | None, is_any: bool) -> str:
    return duration(ns) if ns is not None else "not recorded" if is_any else "none"


def differences(found: ComparedRuns) -> Group:
    """The fields that differ between aligned keys, with equal differences as one; and what is not known."""
    words = _said(found)

    def title(members: Sequence[Aligned]) -> str:
        counts = Counter(words[one.change] for one in members)
        said = counts if len(counts) == 1 else [f"{count} {word}" for word, count in counts.items()]
        return f"{plural(len(members), 'lookup')}: {', '.join(said)}"

    folded = folded_blocks(found.differences, title, "explorer.frame()", ("A", "B"))
    blocks = (*folded, *map(Line, _besides(found)))
    is_any = any(one.before and one.after for one in found.aligned)
    nothing = "No field of an aligned key differs." if is_any else "No graph of A is known to be one of B."
    return Group("", "What differs", blocks or (Line(nothing),))


def _besides(found: ComparedRuns) -> Iterator[str]:
    """What ended differently although no field is known to differ."""
    aligned = [one for one in found.aligned if one.change in ("regressed", "fixed")]
    same_key = sum(one.by == "key" for one in aligned)
    if same_key:
        yield f"{plural(same_key, 'lookup')} ended differently under an equal key: no field is the reason. Why shows what is known."
    unknown = sum(one.by == "place" for one in aligned)
    if unknown:
        yield f"{plural(unknown, 'lookup')} ended differently, and what differs in the key was not recorded."


def side_by_side(found: ComparedRuns, times: tuple[SideTime, SideTime] | None) -> Iterator[Table]:
    """Hit rates, compile times and phases of both sides."""
    names, apart = _sides(found), "B\u00a0−\u00a0A"
    numbers = (Head(name, "number") for name in (*names, apart))
    yield Table("Side by side", (Head(""), *numbers), tuple(_rates(found)))
    if times is not None:
        before, after = times
        mean = _mean(times)
        sides = {names[0]: before.phases, names[1]: after.phases}
        yield phases_table(f"Self time of each phase{mean and f', {mean}'}", sides, apart)


def _rates(found: ComparedRuns) -> Iterator[tuple[str, ...]]:
    one, other = found.before, found.after
    yield "Hits", _rate(one.rate), _rate(other.rate), ""
    for cache in sorted({*one.by_cache, *other.by_cache}):
        yield f"Hits of {cache}", _rate(one.by_cache.get(cache)), _rate(other.by_cache.get(cache)), ""
    lost = _apart(one.rate.time_lost_ns, other.rate.time_lost_ns)
    saved = _apart(one.rate.time_saved_ns, other.rate.time_saved_ns)
    yield "Compile time after misses", _lost(one), _lost(other), lost
    yield "Compile time that hits saved", _saved(one), _saved(other), saved


def _rate(rate: RateRow | None) -> str:
    return "–" if rate is None else f"{percent(rate.hit_rate, '–')} ({_hits(rate)})"


def _hits(rate: RateRow) -> str:
    unknown = f", {rate.unknown} not known" if rate.unknown else ""
    return f"{rate.hits} of {rate.lookups - rate.unknown}{unknown}"


def _apart(before: int | None, after: int | None) -> str:
    if before is None or after is None:
        return ""
    said = signed(after - before).replace("-", "−")
    # 24 ms beside 25 ms may be less than a millisecond apart.
    return "<1 ms" if before != after and said == duration(0) else said


def _mean(times: tuple[SideTime, SideTime]) -> str:
    return "mean of each run" if any(side.runs > 1 for side in times) else ""
