"""Guard misses that no log records and that nothing else explains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from cachescope.analysis.history.past_of_keys import PastOfKeys
from cachescope.analysis.history.rows import EntryRow, LookupRow
from cachescope.analysis.history.timeline import Timeline, shows_symbol
from cachescope.details import HashDetails


def inferred_guard_misses(
    lookups: Sequence[LookupRow], entries: Sequence[EntryRow], details: HashDetails
) -> list[int]:
    """Misses that a text log leaves open and that can only be guard misses.

    Since 2.8 text logs do not mention guards. A key missed because of its guards if it had been stored for a graph with
    symbolic sizes, no failure to load it was recorded, and, if the cache directory is known, entries with several guards
    exist there.

    Parameters
    ----------
    lookups : sequence of LookupRow
        In time order.
    entries : sequence of EntryRow
    details : HashDetails

    Returns
    -------
    list of int
        Ids of lookups.
    """
    timeline = Timeline(lookups)
    past = PastOfKeys(lookups, timeline, {})
    of_key: dict[tuple[str, str], list[EntryRow]] = defaultdict(list)
    for entry in entries:
        of_key[entry.cache, entry.cache_key].append(entry)
    symbolic: dict[int | None, bool] = {None: False}
    found: dict[int, None] = {}
    for at, row in enumerate(lookups):
        if row.cache_key is None or not _is_open(row) or row.load_error is not None:
            continue
        stored = of_key.get((row.cache, row.cache_key), [])
        key_past = past.of(at)
        if key_past.latest is None and not stored:
            continue
        if row.detail_set is not None and row.detail_set not in symbolic:
            symbolic[row.detail_set] = _is_symbolic(row.detail_set, details)
        # The FX graph of an AOTAutograd guard miss has the same guards, with or without details.
        may_have_guards = symbolic[row.detail_set] or row.aot_lookup in found
        if may_have_guards and _is_there(key_past.latest_stored is not None, stored):
            found[row.lookup] = None
    # Through 2.7 an AOTAutograd entry had no guards of its own: the guards of its graphs failed.
    for row in lookups:
        failed = [g for g in timeline.graphs_of(row) if g.outcome == "guard_miss" or g.lookup in found]
        if failed and _is_open(row):
            found[row.lookup] = None
    return list(found)


def _is_open(row: LookupRow) -> bool:
    return row.outcome == "full_miss" and row.status_detailed is None


def _is_there(stored: bool, entries: list[EntryRow]) -> bool:
    """Whether a sound entry existed whose guards may have failed; if a directory was read, it decides.

    A guard miss adds an entry under the key, with other guards. A single entry is the one that the miss wrote.
    """
    if not entries:
        return stored
    sound = {entry.guards_expr for entry in entries if entry.status == "ok"}
    unread = sum(entry.status == "unreadable" for entry in entries)
    return stored and len(sound) + unread > 1


def _is_symbolic(detail_set: int, details: HashDetails) -> bool:
    texts = (d.value_text for d in details.details(detail_set) if d.field.startswith("example_inputs"))
    return any(shows_symbol(text) for text in texts)
