"""What stands out in a cache directory, as lines: damage, what may not be read, shared keys, duplicates, what is alone and what can go."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sized
from typing import TYPE_CHECKING, Final

from cachescope.analysis.beside import beside
from cachescope.analysis.differences import short
from cachescope.answers.facts import Row
from cachescope.answers.read import Read
from cachescope.columns import records
from cachescope.report.layout import Line
from cachescope.terms import HASH, UNREADABLE
from cachescope.wording import and_more, file_size, harmless, plural

if TYPE_CHECKING:
    import pandas as pd


_SHOWN: Final = 5
_KEY: Final = 16
# In words, the marks of `analysis.beside`.
BESIDE_NAMES: Final = {
    "damaged": "damaged beside sound",
    "other_code": "same key, other code",
    "other_guards": "same key, other guards",
    "equal_guards": "same key, equal guards: raced for, or made again",
}
_ANY_KEY: Final = re.compile(rf" [afc]{HASH}")


def section_lines(scope: Read, locks: pd.DataFrame | None = None) -> list[Line]:
    """The sections that have something to say, each after an empty line."""
    sections = (
        _damaged(scope),
        _unreadable(scope),
        _shared(scope),
        _duplicates(scope),
        _alone(scope),
        _removable(scope),
        _locks(locks),
    )
    lines = []
    for section in sections:
        listed = list(section)
        lines += [Line(), *listed] if listed else []
    return lines


def _damaged(scope: Read) -> Iterator[Line]:
    damaged = [row for row in scope.facts.entries.values() if row["status"] == "damaged"]
    if damaged:
        yield Line(f"{len(damaged)} damaged:", style="bold")
    for row in damaged[:_SHOWN]:
        yield Line(harmless(row["path"]), 3, whole=True)
        yield Line(harmless(short(row["damage"] or "not said")), 5)
    yield from _more(damaged)


def _unreadable(scope: Read) -> Iterator[Line]:
    unread = [row for row in scope.facts.entries.values() if row["status"] == UNREADABLE]
    if unread:
        title = f"{len(unread)} unreadable: what they hold is not known, nor what they need"
        yield Line(f"{title}:", style="bold")
    for row in unread[:_SHOWN]:
        yield Line(harmless(row["path"]), 3, whole=True)
        yield Line(harmless(short(row["damage"] or "not said")), 5)
    yield from _more(unread)


def _shared(scope: Read) -> Iterator[Line]:
    """Keys that hold several entries, and what tells these apart."""
    entries = scope.facts.entries
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    marks = beside(entries.values())
    for number in marks:
        row = entries[number]
        groups[row["root"], row["cache"], row["cache_key"]].append(row)
    if groups:
        what = "1 key holds" if len(groups) == 1 else f"{len(groups)} keys hold"
        yield Line(f"{what} several entries:", style="bold")
    for (_, cache, key), rows in list(groups.items())[:_SHOWN]:
        counts = Counter(row["status"] for row in rows)
        told = {mark for row in rows for mark in marks[row["entry"]]}
        names = [
            name
            for mark, name in BESIDE_NAMES.items()
            if mark in told and (mark != "damaged" or counts["ok"])
        ]
        how_many = ", ".join(f"{count} {status}" for status, count in counts.items())
        yield Line(f"{cache} {harmless(key[:_KEY])}…: {how_many} ({'; '.join(names)})", 3, hang=2)
    yield from _more(groups)


def _duplicates(scope: Read) -> Iterator[Line]:
    groups = records(scope.duplicates)
    if not groups:
        return
    saved = file_size(sum(group["saved_bytes"] for group in groups))
    copies = sum(group["copies"] - 1 for group in groups)
    yield Line(f"{plural(copies, 'duplicate')} of {saved}, by names, sizes and guards:", style="bold")
    alike: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for group in groups:  # what saves most comes first
        alike[group["cache"], group["known_by"]].append(group)
    for (cache, known_by), mine in list(alike.items())[:_SHOWN]:
        size = file_size(sum(group["saved_bytes"] for group in mine))
        files = plural(sum(group["copies"] for group in mine), "file")
        yield Line(f"{cache}: {files} of which {len(mine)} would do, {size} saved ({known_by})", 3, hang=2)


def _alone(scope: Read) -> Iterator[Line]:
    rows = records(scope.orphans)
    if rows:
        yield Line(f"{len(rows)} left alone:", style="bold")
    yield from _by_reason(rows)


def _removable(scope: Read) -> Iterator[Line]:
    rows = records(scope.removable)
    if rows:
        size = file_size(sum(row["size_bytes"] or 0 for row in rows))
        files = plural(len(rows), "file")
        yield Line(f"{files} of {size} can go (--prune-list prints the paths):", style="bold")
    yield from _by_reason(rows)


def _by_reason(rows: list[Row]) -> Iterator[Line]:
    counts = Counter((row["cache"], _ANY_KEY.sub("", row["reason"])) for row in rows)
    for (cache, reason), count in counts.most_common(_SHOWN):
        yield Line(f"{count} {cache}: {harmless(reason)}", 3, hang=2)
    yield from _more(counts)


def _locks(locks: pd.DataFrame | None) -> Iterator[Line]:
    if locks is None:
        return
    rows = records(locks)
    held = [row for row in rows if row["lock_held"]]
    unknown = sum(row["lock_held"] is None for row in rows)
    free = len(rows) - len(held) - unknown
    told = f", {unknown} not to be told" if unknown else ""
    yield Line(f"{plural(len(rows), 'lock')}: {len(held)} held, {free} free{told}", style="bold")
    for row in held[:_SHOWN]:
        yield Line(harmless(row["path"]), 3, whole=True)
    yield from _more(held)


def _more(found: Sized) -> Iterator[Line]:
    count = len(found) - _SHOWN
    if count > 0:
        yield Line(and_more(count, where="--json lists all"), 3, "dim")
