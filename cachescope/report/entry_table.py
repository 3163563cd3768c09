"""The entries of cache directories for the terminal: totals by kind, what stands out, then the newest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cachescope.analysis.differences import short
from cachescope.answers.facts import Row
from cachescope.answers.read import Read
from cachescope.report.entry_sections import section_lines
from cachescope.report.layout import Line
from cachescope.report.terminal import problem_lines
from cachescope.terms import CACHES, UNREADABLE
from cachescope.wording import duration, file_size, file_time, harmless, plural

if TYPE_CHECKING:
    import pandas as pd


_KEY: Final = 16


def entry_lines(scope: Read, most: int = 20, locks: pd.DataFrame | None = None) -> list[Line]:
    """The answer to "what is in this directory".

    Parameters
    ----------
    scope : Read
    most : int
        Entries listed one by one.
    locks : DataFrame, optional
        What `Scope.locks` gave, where it was asked.
    """
    entries = list(scope.facts.entries.values())
    total = _total(entries)
    places = sorted({row["root"] for row in entries})
    where = (
        f" in {harmless(places[0])}"
        if len(places) == 1
        else f" in {plural(len(places), 'directory', 'directories')}"
    )
    title = f"{plural(len(entries), 'entry', 'entries')} of {file_size(total)}{where}"
    lines = [Line(title, style="bold", whole=True)]
    if not entries:
        return [
            Line("no entries: no cache directory was read", style="bold"),
            *problem_lines(scope.facts.problems),
        ]
    lines += [Line(), *_totals(entries)]
    lines += section_lines(scope, locks)
    graphs = [row for row in entries if row["cache"] in CACHES]
    lines += [Line(), *_table(graphs, most)] if graphs else []
    listed = {row["path"] for row in entries if row["status"] == UNREADABLE}
    others = [p for p in scope.facts.problems if p["kind"] != "damaged_entry" and p["source"] not in listed]
    return lines + ([Line(), *problem_lines(scope.facts.problems)] if others else [])


def _totals(entries: list[Row]) -> Iterator[Line]:
    yield Line(
        f"{'kind':<18} {'status':<10} {'count':>6} {'size':>8} {'oldest':<16}  {'newest':<16}",
        0,
        "dim",
        verbatim=True,
    )
    by_kind: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in entries:
        by_kind[row["cache"], row["status"]].append(row)
    # What takes the most comes first.
    for (cache, status), rows in sorted(by_kind.items(), key=lambda item: (-_total(item[1]), item[0])):
        times = [row["modified_time"] for row in rows if row["modified_time"] is not None]
        size = file_size(_total(rows))
        oldest, newest = (file_time(min(times)), file_time(max(times))) if times else ("-", "-")
        yield Line(
            f"{cache:<18} {status:<10} {len(rows):>6} {size:>8} {oldest:<16}  {newest:<16}", verbatim=True
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
        time = "-" if row["modified_time"] is None else file_time(row["modified_time"])
        guards = harmless(short(row["guards_expr"] or ""))
        size = "-" if row["size_bytes"] is None else file_size(row["size_bytes"])
        yield Line(
            f"{harmless(key):<{_KEY + 1}} {row['status']:<10} {size:>9}  {time:<16}  "
            f"{duration(row['time_taken_ns']):>7}  {guards}",
            verbatim=True,
        )
    if len(newest) > most:
        yield Line(f"and {len(newest) - most} older: --most {len(newest)} lists all", 0, "dim")


def _total(rows: list[Row]) -> int:
    return sum(row["size_bytes"] or 0 for row in rows)
