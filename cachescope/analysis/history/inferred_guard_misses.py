"""The history of what was read, with the guard misses that no log records and that nothing else explains.

Since 2.8 text logs do not mention guards. A key missed because of its guards if it had been stored for a graph with
symbolic sizes, no failure to load it was recorded, and, if the cache directory is known, entries with several guards
exist there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cachescope.analysis.history.history import History
from cachescope.analysis.history.past_of_keys import pasts_of
from cachescope.analysis.history.timeline import shows_symbol
from cachescope.details import HashDetails
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.keys.paths import is_in_remote_cache
from cachescope.terms import VLLM


def settled_history(
    lookups: Iterable[LookupRow], entries: Iterable[EntryRow], runs: Iterable[RunRow], details: HashDetails
) -> History:
    """What happened; misses that a text log leaves open and that can only be guard misses are said to be such."""
    history = History(lookups, entries, runs, details)
    found = _inferred_guard_misses(history)
    for at in found:
        history.lookups[at] = replace(history.lookups[at], outcome="guard_miss")
    history.inferred = tuple(history.lookups[at].lookup for at in found)
    return history


def is_open(row: LookupRow) -> bool:
    """Whether a text log leaves open if guards failed: a trace records guard misses itself."""
    return row.outcome == "full_miss" and row.status_detailed is None and row.cache != VLLM


def _inferred_guard_misses(history: History) -> list[int]:
    lookups = history.lookups
    asked = [at for at, row in enumerate(lookups) if is_open(row)]
    if not asked:
        return []
    # Whether each key that had been looked up before had been stored before.
    was_stored = {at: past.latest_stored is not None for at, past in pasts_of(history, asked)}
    symbolic: dict[int | None, bool] = {None: False}
    found: dict[int, None] = {}
    for at in asked:
        row = lookups[at]
        if row.cache_key is None or row.load_error is not None:
            continue
        # In a remote cache an entry with other guards replaces the one before, so the number of entries says nothing.
        stored = [entry for entry in history.entries_of(row) if not is_in_remote_cache(entry.path)]
        if at not in was_stored and not stored:
            continue
        detail_set = row.detail_set
        if detail_set is not None and detail_set not in symbolic:
            inputs = (
                one for one in history.details.details(detail_set) if one.field.startswith("example_inputs")
            )
            symbolic[detail_set] = any(shows_symbol(one.value_text) for one in inputs)
        # The FX graph of an AOTAutograd guard miss has the same guards, with or without details.
        may_have_guards = symbolic[detail_set] or history.aot[at] in found
        if may_have_guards and _is_there(was_stored.get(at, False), stored):
            found[at] = None
    # Through 2.7 an AOTAutograd entry had no guards of its own: the guards of its graphs failed.
    for at, row in enumerate(lookups):
        above = history.aot[at]
        if above is not None and (row.outcome == "guard_miss" or at in found) and is_open(lookups[above]):
            found[above] = None
    return list(found)


def _is_there(stored: bool, entries: list[EntryRow]) -> bool:
    """Whether a sound entry existed whose guards may have failed; if a directory was read, it decides.

    A guard miss adds an entry under the key, with other guards. A single entry is the one that the miss wrote.
    """
    if not entries:
        return stored
    sound = {entry.guards_expr for entry in entries if entry.status == "ok"}
    unread = sum(entry.status == "unreadable" for entry in entries)
    return stored and len(sound) + unread > 1
