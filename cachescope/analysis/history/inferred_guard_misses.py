"""Guard misses that no log records and that nothing else explains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from cachescope.analysis.history.lookups import Lookups
from cachescope.analysis.history.past_of_keys import PastOfKeys
from cachescope.analysis.history.places_by_group import NONE
from cachescope.analysis.history.rows import EntryRow
from cachescope.analysis.history.timeline import Timeline, shows_symbol
from cachescope.details import HashDetails
from cachescope.keys.paths import is_in_remote_cache


def inferred_guard_misses(
    lookups: Lookups, entries: Sequence[EntryRow], timeline: Timeline, details: HashDetails
) -> list[int]:
    """Misses that a text log leaves open and that can only be guard misses.

    Since 2.8 text logs do not mention guards. A key missed because of its guards if it had been stored for a graph with
    symbolic sizes, no failure to load it was recorded, and, if the cache directory is known, entries with several guards
    exist there.

    Parameters
    ----------
    lookups : Lookups
    entries : sequence of EntryRow
    timeline : Timeline
    details : HashDetails

    Returns
    -------
    list of int
        The places of lookups.
    """
    # A trace records them itself.
    is_open = lookups.outcome.are("full_miss") & ~lookups.status_detailed.is_known & ~lookups.is_of_vllm
    if not is_open.any():
        return []
    # Whether each key that had been looked up before had been stored before.
    had_been_stored = {
        at: past.latest_stored is not None for at, past in PastOfKeys(lookups, timeline, {}).of_each(is_open)
    }
    of_key: dict[tuple[str, str], list[EntryRow]] = defaultdict(list)
    for entry in entries:
        if is_in_remote_cache(entry.path):
            # There an entry with other guards replaces the one before, so the number of entries says nothing.
            continue
        of_key[entry.cache, entry.cache_key].append(entry)
    symbolic: dict[int, bool] = {NONE: False}
    found: dict[int, None] = {}
    for at in np.flatnonzero(is_open & lookups.cache_key.is_known & ~lookups.load_error.is_known).tolist():
        stored = of_key.get((lookups.cache_of(at), lookups.cache_key[at] or ""), [])
        if at not in had_been_stored and not stored:
            continue
        detail_set = int(lookups.detail_set[at])
        if detail_set not in symbolic:
            symbolic[detail_set] = _is_symbolic(detail_set, details)
        # The FX graph of an AOTAutograd guard miss has the same guards, with or without details.
        may_have_guards = symbolic[detail_set] or int(lookups.aot[at]) in found
        if may_have_guards and _is_there(had_been_stored.get(at, False), stored):
            found[at] = None
    # Through 2.7 an AOTAutograd entry had no guards of its own: the guards of its graphs failed.
    failed = lookups.outcome.are("guard_miss")
    failed[list(found)] = True
    above = lookups.aot[failed & (lookups.aot != NONE)]
    found |= dict.fromkeys(above[is_open[above]].tolist())
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


def _is_symbolic(detail_set: int, details: HashDetails) -> bool:
    texts = (d.value_text for d in details.details(detail_set) if d.field.startswith("example_inputs"))
    return any(shows_symbol(text) for text in texts)
