"""A comparison as lines and as an object for JSON: of two lookups, and of two sides with what they built and what mega-caches cover."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from cachescope.analysis.contexts.prediction import OWN_FIELDS
from cachescope.analysis.directory.built import CHOICE, CODE, KERNELS, NOT_KNOWN, TIMES
from cachescope.answers import comparison as answer
from cachescope.answers.difference import Difference, Pair, SeenKey
from cachescope.answers.names import lookup_name
from cachescope.answers.predictions import predictions_of_run
from cachescope.answers.recording import Recording
from cachescope.frames.compared import Built, CoverageRow
from cachescope.frames.sharing_rows import PredictionRow
from cachescope.grouping import by_key
from cachescope.json_types import JsonObject
from cachescope.report.as_json import rows_object, whole_change_object
from cachescope.report.blocks import Block, Column, Group, table
from cachescope.report.compared_runs import run_blocks
from cachescope.report.contexts import difference_blocks
from cachescope.report.explanation import folded_blocks
from cachescope.report.html import Reprs
from cachescope.report.json_text import values_of
from cachescope.report.layout import Line, parted, rest
from cachescope.terms import AUTOTUNE, BEST_CONFIG, FXGRAPH
from cachescope.wording import listed, plural, short_key

_WORST_FIRST: Final = ("no", "unknown", "never")
_FEW: Final = 3
_SHOWN: Final = 20
_WHAT: Final = {
    FXGRAPH: ("graph", ""),
    BEST_CONFIG: ("Triton configuration", ""),
    AUTOTUNE: ("choice of max-autotune", "choices of max-autotune"),
}
_OTHER: Final = {CODE: "other generated code", KERNELS: "other kernels, from the same source"}

_SIDES: Final = ("before:", "after:")


def coverage_lines(rows: Sequence[CoverageRow]) -> Iterator[Line]:
    """How much of a run, and of its cache directory, the bundle holds; then why it does not hold the rest."""
    lookups = [row for row in rows if row.entry is None]
    entries = [row for row in rows if row.entry is not None]
    yield from _covered("covers", lookups, "the run", "lookup")
    yield from _covered("holds", entries, "the cache directory", "entry")


def _covered(holds: str, rows: Sequence[CoverageRow], whole: str, one: str) -> Iterator[Line]:
    """How many there are in the bundle, then each reason with the first of its keys."""
    if not rows:
        return
    unknown = f"; of {number} it is not known" if (number := _number(rows, "unknown")) else ""
    total = f"{plural(_number(rows), one)} of {whole}{unknown}"
    yield Line(f"the bundle {holds} {_number(rows, 'yes')} of {total}", style="bold")
    groups = by_key(((row.held, row.reason), row) for row in rows if row.held in _WORST_FIRST)
    for (held, reason), members in sorted(groups.items(), key=lambda group: _WORST_FIRST.index(group[0][0])):
        yield from _reason(held, reason, plural(_number(members), one), map(_named, members))


def _reason(answer: str, reason: str, count: str, names: Iterable[str]) -> Iterator[Line]:
    """A reason with the first of what it is of."""
    yield Line(f"{answer}: {reason}", 3, right=count)
    yield Line(listed(names, _FEW), 6, "dim")


def _number(rows: Sequence[CoverageRow], held: str | None = None) -> int:
    return sum(row.lookups or 1 for row in rows if held in (None, row.held))


def _named(row: CoverageRow) -> str:
    return f"{row.cache} {'(no key)' if row.cache_key is None else short_key(row.cache_key)}"


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
    yield from rest(len(differing) - _SHOWN)
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
        yield Line(f"fxgraph {short_key(row.cache_key or '')}: {_OTHER[row.result]}", 3)
        yield Line(row.evidence, 6, "dim")
        return
    name = row.name or f"{row.cache} {short_key(row.cache_key or '')}"
    yield Line(f"{name}: {row.before or 'none'} → {row.after or 'none'}", 3)


def key_difference_blocks(found: Difference, sides: Iterable[str]) -> Iterator[Block]:
    """How many keys of two sides differ, and in what, the most frequent difference first."""
    differing = sum(len(pairs) for _, pairs in found.groups)
    counts = [f"{plural(found.equal, 'key')} equal", f"{differing + len(found.unknown)} differ"]
    counts += [f"{len(found.only_before)} only before", f"{len(found.only_after)} only after"]
    yield Line(", ".join(counts), style="bold")
    yield from (Line(side, 3, label=label, hang=8) for label, side in zip(_SIDES, sides, strict=True))
    if any(before.cache != after.cache for _, pairs in found.groups for before, after in pairs):
        yield Line("They are of two caches, whose keys are made of different fields.")
    if found.groups:
        yield Line()
    yield from folded_blocks(found.groups, _title, ".frame", ("Before", "After"))
    if found.unknown:
        yield from (Line(), Line("differ, and their hash details were not recorded:", style="bold"))
        yield from (Line(_pair_text(pair), 3, "dim") for pair in found.unknown[:_FEW])
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
        parts.append(coverage_lines(found.covered))
    if found.predicted is not None:
        parts.append(prediction_lines(found.predicted))
    if found.form_differences is not None:
        parts.append(difference_blocks(found.form_differences, ".contexts"))
    if found.graphs is not None:
        names = [found.before, found.after]
        if found.runs is not None:
            parts.append(run_blocks(found.runs))
            sides = zip(found.paths, (found.runs.before, found.runs.after), strict=True)
            names = [f"{path}: {side.name}" if path else side.name for path, side in sides]
        parts.append(key_difference_blocks(found.graphs, names))
    if found.built_alike:
        parts.append(built_lines(found.built_alike))
    return [*parted(parts)][1:] or [Line("nothing on either side that could be compared", style="bold")]


class Comparison(Reprs, answer.Comparison):
    """A comparison with its reprs."""

    __slots__ = ()

    _blocks = comparison_blocks


def comparison_object(found: answer.Comparison) -> JsonObject:
    """The comparison for ``--json``."""
    graphs = found.graphs
    sides = values_of(found, "before", "after") | ({} if graphs is None else _difference_object(graphs))
    rows = {
        "context_difference": found.form_differences,
        "predictions": found.predicted,
        "built": found.built_alike,
        "coverage": found.covered,
        "compared_lookups": None if found.runs is None else found.runs.rows,
    }
    return {**sides, **rows_object(**{name: one for name, one in rows.items() if one is not None})}


def unpredicted(read: Recording) -> str:
    """What has to be read as well to say whether a recorded run would find each entry; empty if nothing."""
    if read.asked_torch and read.facts.entries:
        return ""
    lacks = "a cache directory" if read.asked_torch else "the trace or log of a run"
    return (
        f"Read {lacks} as well, and every entry is compared with the process; cachescope diff DIR SNAPSHOT, or"
        " cachescope.will_hit, does it for one that was captured on another machine."
    )


def prediction_lines(rows: Sequence[PredictionRow]) -> Iterator[Line]:
    """What a process would find: what is unsafe, how many entries, then each reason with the first of its entries."""
    unsafe = [row for row in rows if row.is_unsafe]
    if unsafe:
        what = plural(len(unsafe), "entry")
        yield Line(f"{what} unsafe: torch would load code that was built for another CPU", style="bold")
        yield from _folded("unsafe", ((row.unsafe_reason or "", row) for row in unsafe))
    entries, counts = plural(len(rows), "entry"), Counter(row.will_hit for row in rows)
    said = f"{counts['yes']:,} would be found, {counts['no']:,} not, {counts['unknown']:,} unknown"
    yield Line(f"{entries}: {said}", style="bold")
    yield Line("by a process that compiles the graphs and inputs that they were made for", 3, "dim")
    if any(OWN_FIELDS in row.assuming for row in rows):
        yield Line(f"and has {OWN_FIELDS}", 3, "dim")
    for found in ("no", "unknown"):
        yield from _folded(found, ((row.reason, row) for row in rows if row.will_hit == found))
    doubts = ((row.unsafe_reason, row) for row in rows if row.unsafe_reason and not row.is_unsafe)
    yield from _folded("not known whether safe", doubts)


def _folded(answer: str, rows: Iterable[tuple[str, PredictionRow]]) -> Iterator[Line]:
    """Each reason with the first of its entries, the most frequent first."""
    for reason, alike in sorted(by_key(rows).items(), key=lambda item: -len(item[1])):
        names = (f"{row.cache} {short_key(row.cache_key)}" for row in alike)
        yield from _reason(answer, reason, plural(len(alike), "entry"), names)


def _safety(row: PredictionRow) -> str | None:
    if row.is_unsafe or row.unsafe_reason is None:
        return row.unsafe_reason
    return f"not known: {row.unsafe_reason}"


_PREDICTIONS: Final = (
    Column("Entry", "name", "entry"),
    Column("Cache", "word", "cache"),
    Column("Key", "word", lambda row: short_key(row.cache_key)),
    Column("Would be found", "word", "will_hit"),
    Column("Unsafe", "text", _safety, is_optional=True),
    Column("Fields in the way", "code", lambda row: listed(row.fields, 8) or None, is_optional=True),
    Column("Why", "text", "reason"),
)
_PREDICTED_FIRST: Final = ("no", "unknown", "yes")


def predictions_group(read: Recording) -> Group:
    """Whether a process like the last run would find each entry."""
    if lacks := unpredicted(read):
        return Group("predictions", "Would the last run find each entry?", (Line(lacks),))
    run = max(read.asked_torch)
    found = predictions_of_run(read, run)
    worst_first = sorted(found, key=lambda row: (not row.is_unsafe, _PREDICTED_FIRST.index(row.will_hit)))
    what = "entries, what is unsafe and what is not found first"
    listed_all = table("Predictions", _PREDICTIONS, worst_first, what, f"scope.predictions({run})")
    said = tuple(prediction_lines(found))
    return Group("predictions", f"Would a process like run {run} find each entry?", (*said, listed_all))
