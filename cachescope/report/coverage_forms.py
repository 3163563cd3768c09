"""What mega-caches cover, as lines for the terminal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from cachescope.frames.answer_rows import CoverageRow
from cachescope.report.layout import Line
from cachescope.wording import SHORT_KEY, harmless, listed, plural

_WORST_FIRST: Final = ("no", "unknown", "never")
_KEYS_SHOWN: Final = 3


def coverage_lines(rows: Sequence[CoverageRow]) -> Iterator[Line]:
    """How much of a run, and of its cache directory, the bundle holds; then why it does not hold the rest."""
    lookups = [row for row in rows if row.entry is None]
    entries = [row for row in rows if row.entry is not None]
    if lookups:
        total = f"{plural(_number(lookups), 'lookup')} of the run{_unknown(lookups)}"
        yield Line(f"the bundle covers {_number(lookups, 'yes')} of {total}", style="bold")
        yield from _folded(lookups, "lookup", "lookups")
    if entries:
        total = f"{plural(len(entries), 'entry', 'entries')} of the cache directory{_unknown(entries)}"
        yield Line(f"the bundle holds {_number(entries, 'yes')} of {total}", style="bold")
        yield from _folded(entries, "entry", "entries")


def _unknown(rows: Sequence[CoverageRow]) -> str:
    return f"; of {number} it is not known" if (number := _number(rows, "unknown")) else ""


def _number(rows: Sequence[CoverageRow], held: str | None = None) -> int:
    return sum(row.lookups or 1 for row in rows if held in (None, row.held))


def _folded(rows: Sequence[CoverageRow], one: str, several: str) -> Iterator[Line]:
    """Each reason with the first of its keys."""
    groups: dict[tuple[str, str], list[CoverageRow]] = defaultdict(list)
    for row in rows:
        groups[row.held, row.reason].append(row)
    for answer in _WORST_FIRST:
        for (held, reason), members in groups.items():
            if held == answer:
                yield Line(f"{held}: {harmless(reason)}", 3, right=plural(_number(members), one, several))
                yield Line(listed(map(_named, members), _KEYS_SHOWN), 6, "dim")


def _named(row: CoverageRow) -> str:
    if row.cache_key is None:
        return f"{row.cache} (no key)"
    key = harmless(row.cache_key)
    return f"{row.cache} {key if len(key) <= SHORT_KEY else f'{key[:SHORT_KEY]}…'}"
