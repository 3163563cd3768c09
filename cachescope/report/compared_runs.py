"""Runs compared with others: the numbers of both sides, and what differs between their keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from cachescope.answers.aligned_lookups import Aligned, Change
from cachescope.answers.comparison import ComparedRuns, ComparedSide, SideTime
from cachescope.frames.answer_rows import RateRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.report.blocks import Block, Group, Head, Numbers, Table
from cachescope.report.explanation import folded_blocks
from cachescope.report.layout import Line
from cachescope.report.time_spent import machine_lines, phases_table, signed
from cachescope.terms import FXGRAPH
from cachescope.wording import duration, percent, plural

_ORDERED: Final[dict[Change, str]] = {
    "regressed": "Regressed",
    "fixed": "Fixed",
    "same": "Same",
    "only_before": "Only in A",
    "only_after": "Only in B",
    "not_known": "Not known",
}
# Of runs at the same time neither came first.
_BESIDE: Final[dict[Change, str]] = {**_ORDERED, "regressed": "A hits more", "fixed": "B hits more"}
# The same within a sentence.
_SAID: Final[dict[Change, str]] = {
    **{change: f"{name[0].lower()}{name[1:]}" for change, name in _ORDERED.items()},
    "same": "same outcome",
}
_SAID_BESIDE: Final = {**_SAID, "regressed": "where A hits more", "fixed": "where B hits more"}


def change_names(found: ComparedRuns) -> dict[Change, str]:
    """What each change is called: only what came later can have regressed."""
    return _ORDERED if found.is_ordered else _BESIDE


def went(rows: Sequence[LookupRow]) -> str | None:
    """How the lookups of one side went: the outcome of one, how many hit of several."""
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
    words = _SAID if found.is_ordered else _SAID_BESIDE
    counts = [f"{count:,} {words[change]}" for change, count in found.counts.items() if count]
    by_rank = ", rank by rank" if found.by_rank else ""
    yield Line(f"lookups, aligned by their graphs{by_rank}: {', '.join(counts)}", 3)
    yield from machine_lines(found.before.machines, found.after.machines)


def headline(found: ComparedRuns, times: tuple[SideTime, SideTime] | None = None) -> Numbers:
    """The numbers of both sides at a glance; with what events show of their times."""
    one, other = found.before.rate, found.after.rate
    runs = [len(side.runs) for side in (found.before, found.after)]
    together = "" if runs == [1, 1] else f"{plural(runs[0], 'run')} → {plural(runs[1], 'run')}, together"
    cells = [
        (
            "Hit rate by count",
            moved(percent(one.hit_rate, "–"), percent(other.hit_rate, "–")),
            f"{one.hits} of {one.lookups - one.unknown} → {other.hits} of {other.lookups - other.unknown}",
        ),
        ("Compile time after misses", moved(_lost(found.before), _lost(found.after)), together),
    ]
    if times is not None:
        totals = moved(*(duration(side.total_ns) for side in times))
        cells.append(("Time in events", totals, _mean(times)))
    return Numbers(tuple(cells))


def moved(before: str, after: str) -> str:
    """Two texts beside each other; one where they are the same."""
    return before if before == after else f"{before} → {after}"


def _lost(side: ComparedSide) -> str:
    """Compile time after misses; none where nothing missed. Times are those of FX lookups."""
    rate = side.by_cache.get(FXGRAPH, side.rate)
    return _time(side.rate.time_lost_ns, rate.hits < rate.lookups)


def _saved(side: ComparedSide) -> str:
    return _time(side.rate.time_saved_ns, side.by_cache.get(FXGRAPH, side.rate).hits > 0)


def _time(ns: int | None, is_any: bool) -> str:
    if ns is None:
        return "not recorded" if is_any else "none"
    return duration(ns)


def differences(found: ComparedRuns) -> Group:
    """The fields that differ between aligned keys, equal differences folded; and what is not known."""
    blocks = list(
        folded_blocks(
            found.differences,
            lambda members: _title(members, found.is_ordered),
            "explorer.frame()",
            ("A", "B"),
        )
    )
    blocks += map(Line, _besides(found))
    if not blocks:
        is_any = any(one.before and one.after for one in found.aligned)
        nothing = (
            "No field of an aligned key differs." if is_any else "No graph of A is known to be one of B."
        )
        blocks.append(Line(nothing))
    return Group("", "What differs", tuple(blocks))


def _besides(found: ComparedRuns) -> Iterator[str]:
    """What ended differently without a field that is known to differ."""
    aligned = [one for one in found.aligned if one.change in ("regressed", "fixed")]
    same_key = sum(one.by == "key" for one in aligned)
    if same_key:
        yield f"{plural(same_key, 'lookup')} ended differently under an equal key: no field is the reason. Why shows what is known."
    unknown = sum(one.by == "place" for one in aligned)
    if unknown:
        yield f"{plural(unknown, 'lookup')} ended differently, and what differs in the key was not recorded."


def _title(members: Sequence[Aligned], is_ordered: bool) -> str:
    words = _SAID if is_ordered else _SAID_BESIDE
    counts = Counter(words[one.change] for one in members)
    said = counts if len(counts) == 1 else [f"{count} {word}" for word, count in counts.items()]
    return f"{plural(len(members), 'lookup')}: {', '.join(said)}"


def side_by_side(found: ComparedRuns, times: tuple[SideTime, SideTime] | None) -> Iterator[Table]:
    """Hit rates, compile times and phases of both sides."""
    names, apart = _sides(found), "B\u00a0−\u00a0A"
    numbers = (Head(name, "number") for name in (*names, apart))
    yield Table("Side by side", (Head(""), *numbers), tuple(_rates(found)))
    if times is not None:
        before, after = times
        mean = _mean(times)
        yield phases_table(
            f"Self time of each phase{mean and f', {mean}'}",
            {names[0]: before.phases, names[1]: after.phases},
            apart,
        )


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
    if rate is None:
        return "–"
    known = rate.lookups - rate.unknown
    unknown = f", {rate.unknown} not known" if rate.unknown else ""
    return f"{percent(rate.hit_rate, '–')} ({rate.hits} of {known}{unknown})"


def _apart(before: int | None, after: int | None) -> str:
    return "" if before is None or after is None else _difference(after - before)


def _difference(ns: int) -> str:
    said = signed(ns).replace("-", "−")
    # 24 ms beside 25 ms may be less than a millisecond apart.
    return "<1 ms" if ns and said == duration(0) else said


def _mean(times: tuple[SideTime, SideTime]) -> str:
    return "mean of each run" if any(side.runs > 1 for side in times) else ""
