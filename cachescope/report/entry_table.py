"""The entries of cache directories for the terminal: totals by kind, findings, then the newest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from cachescope.analysis.differences import short
from cachescope.answers.directory import Directory, Total
from cachescope.frames.directory_rows import EntryRow
from cachescope.report.entry_sections import section_lines
from cachescope.report.layout import Line
from cachescope.report.terminal import problem_lines
from cachescope.wording import duration, file_size, file_time, harmless, plural

_KEY: Final = 16


def entry_lines(found: Directory, most: int = 20) -> list[Line]:
    """The answer to "what is in this directory", listing at most `most` entries one by one."""
    if not found.entries:
        none = Line("no entries: no cache directory was read", style="bold")
        return [none, *problem_lines(found.problems)]
    where = (
        f" in {harmless(found.roots[0])}"
        if len(found.roots) == 1
        else f" in {plural(len(found.roots), 'directory', 'directories')}"
    )
    title = f"{plural(len(found.entries), 'entry', 'entries')} of {file_size(found.size_bytes)}{where}"
    lines = [Line(title, style="bold", whole=True), Line(), *_totals(found.totals), *section_lines(found)]
    if found.graphs:
        lines += [Line(), *_table(found.graphs, most)]
    return lines + ([Line(), *problem_lines(found.problems)] if found.problems else [])


def _totals(totals: Sequence[Total]) -> Iterator[Line]:
    yield Line(
        f"{'kind':<18} {'status':<10} {'count':>6} {'size':>8} {'oldest':<16}  {'newest':<16}",
        0,
        "dim",
        verbatim=True,
    )
    for total in totals:
        oldest, newest = (
            "-" if time is None else file_time(time) for time in (total.oldest_ns, total.newest_ns)
        )
        size = file_size(total.size_bytes)
        yield Line(
            f"{total.cache:<18} {total.status:<10} {total.count:>6} {size:>8} {oldest:<16}  {newest:<16}",
            verbatim=True,
        )


def _table(newest: Sequence[EntryRow], most: int) -> Iterator[Line]:
    times = [duration(row.time_taken_ns) for row in newest[:most]]
    width = max(map(len, ["compile", *times]))
    yield Line(
        f"{'key':<{_KEY + 1}} {'status':<10} {'size':>9}  {'written (UTC)':<16}  {'compile':>{width}}  guards",
        0,
        "dim",
        verbatim=True,
    )
    for row, time_taken in zip(newest, times, strict=False):
        key = "(no key)" if row.cache_key is None else f"{row.cache_key[:_KEY]}…"
        time = "-" if row.modified_time is None else file_time(row.modified_time)
        guards = harmless(short(row.guards_expr or ""))
        size = "-" if row.size_bytes is None else file_size(row.size_bytes)
        yield Line(
            f"{harmless(key):<{_KEY + 1}} {row.status:<10} {size:>9}  {time:<16}  "
            f"{time_taken:>{width}}  {guards}",
            verbatim=True,
        )
    if len(newest) > most:
        yield Line(f"and {len(newest) - most} older: --most {len(newest)} lists all", 0, "dim")
