"""Why misses of a cause stay misses, or may stay, although its changed fields do not count, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from cachescope.analysis.what_if.recorded import MISS, UNKNOWN, Flags, Outcomes, Positions
from cachescope.analysis.what_if.replay import Replay
from cachescope.analysis.what_if.still_missing import (
    CONCURRENT,
    DIFFERS,
    ELSEWHERE,
    FIRST,
    GONE,
    GUARDS,
    NOT_STORED,
    PENDING,
    still_missing,
)
from cachescope.frames.answer_rows import CauseRow
from cachescope.keys.key_fields import Removed
from cachescope.verdict_kinds import kind_of
from cachescope.wording import plural

_OF_VLLM: Final = "vLLM's own lookups are not replayed: vllm_fragments says what fewer factors would do"
_SENTENCES: Final = {
    GUARDS: "of {} the entry was there and its guards did not hold",
    GONE: "the entry of {} was gone by then",
    PENDING: "{} came before the same process had stored the entry",
    NOT_STORED: "nothing had been stored for {}",
    ELSEWHERE: "the entry of {} was in another cache directory",
    FIRST: "{} would be the first of the key, which has to be compiled once",
    DIFFERS: "no key becomes equal to that of {}: more than these fields tells them apart",
}
# torch/_inductor/codecache.py: keys of a forward, a backward and an inference graph.
_KINDS_OF_GRAPH: Final = frozenset({"fx_kwargs[is_inference]", "fx_kwargs[is_backward]"})
_OTHER_KIND: Final = "the graph of {} is of another kind (forward, backward or inference), and keys of two kinds never become one"


class Kept(NamedTuple):
    """What keeps misses of a cause from hitting."""

    why: str | None  # in words; None if all of them are known to hit
    # The misses that would hit if the first compile of each key had ended before the others began.
    staggered: Positions


def why_still(replay: Replay, removed: Removed, after: Outcomes, cause: CauseRow, at: Positions) -> Kept:
    """Why misses of a cause stay misses without some fields, or why it cannot be known whether they do."""
    if (text := kind_of(cause).why_still) is not None:
        return Kept(text.format(kind=cause.kind), at[:0])
    if len(at) and replay.recorded.lookups.is_of_vllm[at].all():
        return Kept(_OF_VLLM, at[:0])
    if not np.isin(after[at], (MISS, UNKNOWN)).any():
        return Kept(None, at[:0])
    missing = np.flatnonzero(after == MISS)
    reason, group = still_missing(replay, replay.table.joined(removed), after, missing)
    is_mine = np.isin(missing, at)
    count = Counter(reason[is_mine].tolist())
    concurrent = reason == CONCURRENT
    sentences = _SENTENCES | ({DIFFERS: _OTHER_KIND} if _KINDS_OF_GRAPH & set(cause.fields) else {})
    texts = [
        text.format(plural(count[word], "miss", "misses")) for word, text in sentences.items() if count[word]
    ]
    if count[CONCURRENT]:
        texts.insert(0, _concurrent(replay, missing, group, concurrent, is_mine))
    texts += _not_known(replay, at[after[at] == UNKNOWN])
    # Guards may keep it from hitting even then.
    is_certain = ~replay.cells.has_guards[replay.cells.of_lookup[missing]]
    return Kept("; ".join(texts), missing[concurrent & is_mine & is_certain])


def _not_known(replay: Replay, at: Positions) -> Iterator[str]:
    """Why it cannot be known whether some misses would hit."""
    is_blind = np.isin(at, replay.unknown)
    for text, count in (
        ("whether the guards of an entry would hold for {} is not recorded", np.count_nonzero(~is_blind)),
        ("the fields of the key of {} are not recorded", np.count_nonzero(is_blind)),
    ):
        if count:
            yield text.format(plural(int(count), "miss", "misses"))


def _concurrent(
    replay: Replay, missing: Positions, group: Positions, concurrent: Flags, is_mine: Flags
) -> str:
    """What a staggered start would do for the keys of some concurrent misses."""
    of_groups = np.isin(group, group[concurrent & is_mine])
    cells = replay.cells.of_lookup[missing[of_groups]]
    keys, groups = len(np.unique(replay.cells.key[cells])), len(np.unique(group[of_groups]))
    become = "their keys are equal already" if keys == groups else f"{plural(keys, 'key')} become {groups}"
    may = "may" if replay.cells.has_guards[cells].any() else "would"
    hits, lookups = np.count_nonzero(concurrent & of_groups), np.count_nonzero(of_groups)
    return f"the runs were concurrent: {become}; with a staggered start, {hits} of {lookups} {may} hit"
