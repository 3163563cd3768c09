"""The entries of cache directories for the terminal: totals by cache and status, damage, then the newest."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from cachescope.analysis.differences import short
from cachescope.columns import records
from cachescope.report.facts import Row
from cachescope.report.layout import Line
from cachescope.report.terminal import problem_lines
from cachescope.report.text import duration, harmless, plural
from cachescope.terms import CACHES

if TYPE_CHECKING:
    from cachescope.scope import Scope

_KEY: Final = 16
_DAMAGED_SHOWN: Final = 5


def entry_lines(scope: Scope, most: int = 20) -> list[Line]:
    """The answer to "what is in this directory"."""
    entries = list(scope.facts.entries.values())
    total = sum(row["size_bytes"] or 0 for row in entries)
    places = sorted({row["root"] for row in entries})
    where = (
        f" in {harmless(places[0])}"
        if len(places) == 1
        else f" in {plural(len(places), 'directory', 'directories')}"
    )
    lines = [Line(f"{plural(len(entries), 'entry', 'entries')} of {_size(total)}{where}", style="bold")]
    if not entries:
        return [Line("no entries", style="bold"), *problem_lines(scope)]
    lines += [Line(), *_totals(entries)]
    damaged = [row for row in entries if row["status"] == "damaged"]
    if damaged:
        lines += [Line(), Line(f"{len(damaged)} damaged:", style="bold")]
        lines += [
            Line(f"{harmless(row['path'])}: {harmless(short(row['damage'] or 'not said'))}", 3)
            for row in damaged[:_DAMAGED_SHOWN]
        ]
        if len(damaged) > _DAMAGED_SHOWN:
            lines.append(Line(f"and {len(damaged) - _DAMAGED_SHOWN} more", 3))
    lines += _alone(scope)
    graphs = [row for row in entries if row["cache"] in CACHES]
    lines += [Line(), *_table(graphs, most)] if graphs else []
    others = [p for p in scope.facts.problems if p["kind"] != "damaged_entry"]
    return lines + ([Line(), *problem_lines(scope)] if others else [])


def _alone(scope: Scope) -> Iterator[Line]:
    """What is left alone, and what of it can go."""
    orphans = Counter((row["cache"], _without_key(row["reason"])) for row in records(scope.orphans))
    if orphans:
        yield Line()
        yield Line(f"{sum(orphans.values())} left alone:", style="bold")
        for (cache, reason), count in orphans.most_common(_DAMAGED_SHOWN):
            yield Line(f"{count} {cache}: {harmless(reason)}", 3)
    removable = records(scope.removable)
    if removable:
        size = _size(sum(row["size_bytes"] for row in removable))
        yield Line()
        yield Line(
            f"{plural(len(removable), 'file')} of {size} can go: --prune-list prints the paths", style="bold"
        )


def _without_key(reason: str) -> str:
    return re.sub(r" [a-z2-7]{52} is gone", " is gone", reason)


def _totals(entries: list[Row]) -> Iterator[Line]:
    yield Line(
        f"{'kind':<18} {'status':<10} {'count':>7} {'size':>9}  {'oldest':<16}  {'newest':<16}",
        0,
        "dim",
        verbatim=True,
    )
    by_kind = sorted(entries, key=_kind)
    for (cache, status), group in itertools.groupby(by_kind, _kind):
        rows = list(group)
        times = [row["modified_time"] for row in rows if row["modified_time"] is not None]
        size = _size(sum(row["size_bytes"] or 0 for row in rows))
        oldest, newest = (_time(min(times)), _time(max(times))) if times else ("-", "-")
        yield Line(
            f"{cache:<18} {status:<10} {len(rows):>7} {size:>9}  {oldest:<16}  {newest:<16}", verbatim=True
        )


def _table(entries: list[Row], most: int) -> Iterator[Line]:
    yield Line(
        f"{'key':<{_KEY + 1}} {'status':<10} {'size':>9}  {'written (UTC)':<16}  {'compile':>7}  guards",
        0,
        "dim",
        verbatim=True,
    )
    newest = sorted(entries, key=lambda row: row["modified_time"] or 0, reverse=True)
    for row in newest[:most]:
        key = "(no key)" if row["cache_key"] is None else f"{row['cache_key'][:_KEY]}…"
        time = "-" if row["modified_time"] is None else _time(row["modified_time"])
        guards = harmless(short(row["guards_expr"] or ""))
        size = "-" if row["size_bytes"] is None else _size(row["size_bytes"])
        yield Line(
            f"{harmless(key):<{_KEY + 1}} {row['status']:<10} {size:>9}  {time:<16}  "
            f"{duration(row['time_taken_ns']):>7}  {guards}",
            verbatim=True,
        )
    if len(newest) > most:
        yield Line(f"and {len(newest) - most} older: --most {len(newest)} lists all", 0, "dim")


def _kind(row: Row) -> tuple[str, str]:
    return row["cache"], row["status"]


def _size(count: int) -> str:
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def _time(ns: int) -> str:
    return f"{datetime.fromtimestamp(ns // 10**9, UTC):%Y-%m-%d %H:%M}"
