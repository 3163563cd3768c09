"""Where the time of compiling went: a table of phases, processes side by side, and what caches could do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from cachescope.analysis.phases.names import REST
from cachescope.answers.run_time import Besides, RunTime
from cachescope.answers.time_contrast import Contrast, phase_differences
from cachescope.answers.time_spent import TimeSpent
from cachescope.report.layout import Line
from cachescope.report.terminal import problem_lines
from cachescope.report.time_contrast import (
    apart_texts,
    contrast_text,
    path_texts,
    preflight_text,
    rank_texts,
    signed,
)
from cachescope.wording import and_more, duration, harmless_line, listed, percent, plural

_SIDE_BY_SIDE: Final = 4
_RUNS: Final = 12
_NAME: Final = 29
_TIME: Final = 9
_SHARE: Final = 6
_WITHOUT_SHOWN: Final = 3
_LEAST_BESIDES: Final = 0.05


def time_lines(spent: TimeSpent) -> list[Line]:
    """The tables, and below them what could be saved."""
    if not spent.runs:
        text = "no trace with events was read: they are in the files that torch writes to the folder TORCH_TRACE names"
        return [Line(text, style="bold"), *problem_lines(spent.problems)]
    shown = tuple(member.time for member in spent.members)
    if len(shown) > _RUNS:
        slowest = sorted(shown, key=lambda one: -one.readings.total_ns)[:_RUNS]
        shown = tuple(sorted(slowest, key=lambda one: one.run))
    lines = [Line("where the time of compiling went", style="bold")]
    for first in range(0, len(shown), _SIDE_BY_SIDE):
        lines += [Line(), *_table(shown[first : first + _SIDE_BY_SIDE], is_pair=len(spent.members) == 2)]
    lines.append(Line())
    if spent.contrast is not None:
        lines += [*_side_lines(spent, spent.contrast), Line()]
    for one in shown:
        lines += _reading_lines(one)
    if more := len(spent.runs) - len(shown):
        lines.append(Line(and_more(more, "run", "the slowest are shown, --json lists all"), style="dim"))
    if spent.without:
        names = listed(spent.without, _WITHOUT_SHOWN)
        lines.append(Line(f"no trace with events: {names}", style="dim"))
    return lines + list(problem_lines(spent.problems))


def _side_lines(spent: TimeSpent, contrast: Contrast) -> Iterator[Line]:
    yield Line(contrast_text(contrast), hang=3, style="bold")
    for text in path_texts(spent.members):
        yield Line(text, 3, "dim", hang=6)
    if spent.ranks is not None:
        for text in rank_texts(spent.ranks, spent.runs):
            yield Line(text, hang=3)
    for text in apart_texts(spent.apart):
        yield Line(text, hang=3)


def _table(runs: Sequence[RunTime], *, is_pair: bool) -> Iterator[Line]:
    longest = {name: max(one.phases.get(name, 0) for one in runs) for one in runs for name in one.phases}
    names = sorted(longest, key=lambda name: -longest[name])
    columns = [_of_run(one, names) for one in runs]
    if is_pair:
        before, after = runs
        columns.append(_difference(before, after, names))
    rows = zip(["", *names, "in all"], *columns, strict=True)
    styles = ["dim", *("" for _ in names), "bold"]
    for (name, *cells), style in zip(rows, styles, strict=True):
        yield _row(name, cells, style)


def _of_run(one: RunTime, names: Sequence[str]) -> list[str]:
    """A column: the run, the time and share of each phase, and the time of all."""
    total = one.readings.total_ns
    cells = []
    for ns in map(one.phases.get, names):
        share = "" if ns is None else percent(ns / total if total else None)
        cells.append((duration(ns), share))
    return _column(f"run {one.run}", [*cells, (duration(total), "")])


def _difference(before: RunTime, after: RunTime, names: Sequence[str]) -> list[str]:
    longer = phase_differences(before.phases, after.phases)
    times = [*(longer[name] for name in names), sum(longer.values())]
    return _column(f"{after.run} - {before.run}", [(signed(ns), "") for ns in times])


def _column(head: str, cells: Sequence[tuple[str, str]]) -> list[str]:
    """Times below each other and shares below each other."""
    width = max(_TIME, *(len(time) + 1 for time, _ in cells))
    aligned = [f"{time:>{width}}{share:>{_SHARE}}" for time, share in cells]
    return [f"{head:>{width + _SHARE}}", *aligned]


def _row(name: str, cells: Sequence[str], style: str) -> Line:
    name = harmless_line(name)
    name = name if len(name) < _NAME else f"{name[: _NAME - 2]}…"
    return Line(f"{name:<{_NAME}}" + "".join(cells), 1, style, verbatim=True)


def _reading_lines(one: RunTime) -> Iterator[Line]:
    readings = one.readings
    if one.is_preflight:
        yield Line(preflight_text(one), hang=3)
        return
    if readings.could_save_ns:
        could = f"hits in all caches could still save about {duration(readings.could_save_ns)}"
        stays = f"about {duration(readings.stays_ns)} stay even then"
    else:
        could, stays = "no hit could save more", f"{duration(readings.stays_ns)} stay"
    yield Line(f"{one.name}: {could}, {stays}; {_saved(one)}", hang=3)
    if besides := besides_text(one.besides, readings.total_ns):
        yield Line(besides, 3, "dim", hang=6)
    if readings.unended:
        text = f"{plural(readings.unended, 'event')} without an end in the log: the process ended in it, still runs, or the log lost it"
        yield Line(text, 3, "dim")
    if not one.has_tracing:
        text = f"this torch writes no event for Dynamo's tracing and guards: they are in “{REST}”"
        yield Line(text, 3, "dim")


def besides_text(besides: Besides, total_ns: int) -> str:
    """What passed besides compiling, as far as it is recorded; empty if that is next to nothing."""
    parts = []
    if besides.before_ns is not None:
        parts.append(
            f"{duration(besides.before_ns)} from the start of the command to its first record, imports among them"
        )
    if besides.between_ns is not None and besides.between_ns > _LEAST_BESIDES * total_ns:
        parts.append(f"{duration(besides.between_ns)} between the first and the last record")
    if besides.after_ns is not None:
        parts.append(f"{duration(besides.after_ns)} from the last record to the end of the command")
    return f"in no event: {'; '.join(parts)}" if parts else ""


def _saved(one: RunTime) -> str:
    readings = one.readings
    if not readings.hits:
        return "nothing hit"
    hits = plural(readings.hits, "hit")
    if readings.saved_ns is None:
        return f"what its {hits} saved is not recorded"
    least = "at least " if readings.hits_without_time else ""
    return f"its {hits} saved {least}{duration(readings.saved_ns)}"
