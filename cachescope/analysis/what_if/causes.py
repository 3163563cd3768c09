"""By cause, what a replay does, and what leaving out the changed fields of each cause would do; and why misses stay.

They stay because no key became equal, or one did and its entry did not help.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from cachescope.analysis.history.directory import MISS
from cachescope.analysis.history.timeline import NEVER
from cachescope.analysis.what_if.replay import Replay, Replayed, first_entry, still_missed
from cachescope.frames.answer_rows import CauseRow, MissRow
from cachescope.frames.replay_rows import CauseSaving, WhatIfCause
from cachescope.grouping import by_key
from cachescope.keys.key_schema import Removed
from cachescope.rows import like
from cachescope.terms import VLLM
from cachescope.verdict_kinds import kind_of
from cachescope.wording import plural

# Each takes as long as a replay.
_EXPLAINED: Final = 20


def cause_rows(
    replayed: Replayed, causes: Sequence[CauseRow], misses: Iterable[MissRow]
) -> list[WhatIfCause]:
    """What became of the misses of each cause, in the order of the causes.

    Why misses stay, or may stay, is said of the first causes all of whose changed fields are out.
    """
    removed = replayed.removed
    positions = _positions(replayed.replay, misses)
    rows, explained = [], 0
    for cause in causes:
        mine = positions[cause.cause]
        why = None
        is_out = bool(removed and cause.fields) and removed.fields.issuperset(cause.fields)
        if is_out and len(mine) > len(replayed.turned(mine)) and explained < _EXPLAINED:
            explained += 1
            why = why_still(replayed, cause, mine).why
        rows.append(like(WhatIfCause, cause, misses=len(mine), why=why, **_told(replayed, mine)))
    return rows


def saving_rows(
    replay: Replay, causes: Iterable[CauseRow], misses: Iterable[MissRow], most: int
) -> list[CauseSaving]:
    """What leaving out the fields of each of the first causes does; there is nothing to say of a cold start."""
    positions = _positions(replay, misses)
    chosen = [cause for cause in causes if not kind_of(cause).is_first][:most]
    return [_saving(replay, cause, positions[cause.cause]) for cause in chosen]


def _saving(replay: Replay, cause: CauseRow, at: list[int]) -> CauseSaving:
    """What leaving out its own fields does; a cause without fields keeps all of its keys."""
    replayed = Replayed(replay, Removed(frozenset(cause.fields)))
    stays = why_still(replayed, cause, at)
    later = {"staggered": len(stays.staggered), "staggered_time_ns": replay.total(stays.staggered)}
    return like(CauseSaving, cause, why=stays.why, **later, **_told(replayed, at))


def _told(replayed: Replayed, at: list[int]) -> dict[str, int | None]:
    """What a replay does for the misses of a cause."""
    turned, unknown = replayed.turned(at), len(replayed.undecided(at))
    return {"hits_after": len(turned), "time_won_ns": replayed.replay.total(turned), "unknown": unknown}


def _positions(replay: Replay, misses: Iterable[MissRow]) -> dict[int, list[int]]:
    """The positions of the misses of each cause."""
    found = by_key((miss.cause, replay.history.index_of[miss.lookup]) for miss in misses)
    for positions in found.values():
        positions.sort()
    return found


_CONCURRENT: Final = "concurrent"
"""Another run was compiling what it needed and had not stored it."""
_DIFFERS: Final = "differs"
_SENTENCES: Final = {
    "guards": "of {} the entry was there and its guards did not hold",
    "gone": "the entry of {} was gone by then",
    "pending": "{} came before the same process had stored the entry",
    "not stored": "nothing had been stored for {}",
    "elsewhere": "the entry of {} was in another cache directory",
    "first": "{} would be the first of the key, which has to be compiled once",
    _DIFFERS: "no key becomes equal to that of {}: more than these fields tells them apart",
}  # fmt: skip
_OF_VLLM: Final = "vLLM's own lookups are not replayed: vllm_fragments says what fewer factors would do"
# torch/_inductor/codecache.py: keys of a forward, a backward and an inference graph.
_KINDS_OF_GRAPH: Final = frozenset({"fx_kwargs[is_inference]", "fx_kwargs[is_backward]"})
_OTHER_KIND: Final = "the graph of {} is of another kind (forward, backward or inference), and keys of two kinds never become one"


class Kept(NamedTuple):
    """What keeps misses of a cause from hitting."""

    why: str | None  # in words; None if all of them are known to hit
    # The misses that would hit if the first compile of each key had ended before the others began.
    staggered: list[int]


def why_still(replayed: Replayed, cause: CauseRow, at: list[int]) -> Kept:
    """Why misses of a cause stay misses without some fields, or why it cannot be known whether they do."""
    replay, equal = replayed.replay, replayed.equal
    if (text := kind_of(cause).why_still) is not None:
        return Kept(text.format(kind=cause.kind), [])
    if at and all(replay.history.lookups[one].cache == VLLM for one in at):
        return Kept(_OF_VLLM, [])
    mine = {one for one in at if replayed.after[one] == MISS}
    undecided = replayed.undecided(at)
    if not mine and not undecided:
        return Kept(None, [])
    asked = dict.fromkeys(tuple(equal.get(key := replay.cell_of(one).key, [key])) for one in mine)
    missed = {at: one for keys in asked for at, one in _missed(replayed, keys)}
    count = Counter(missed[one].why for one in mine)
    sentences = _SENTENCES | ({_DIFFERS: _OTHER_KIND} if _KINDS_OF_GRAPH & set(cause.fields) else {})
    texts = [
        text.format(plural(count[word], "miss", "misses")) for word, text in sentences.items() if count[word]
    ]
    concurrent = [one for one in sorted(mine) if missed[one].why == _CONCURRENT]
    if concurrent:
        groups = {missed[one].group for one in concurrent}
        texts.insert(0, _staggered(replay, {at: one for at, one in missed.items() if one.group in groups}))
    texts += _not_known(replay, undecided)
    # Guards may keep it from hitting even then.
    return Kept("; ".join(texts), [one for one in concurrent if not replay.cell_of(one).has_guards])


def _not_known(replay: Replay, undecided: list[int]) -> Iterator[str]:
    """Why it cannot be known whether some misses would hit."""
    blind = len(set(undecided).intersection(replay.unknown))
    for text, count in (
        ("whether the guards of an entry would hold for {} is not recorded", len(undecided) - blind),
        ("the fields of the key of {} are not recorded", blind),
    ):
        if count:
            yield text.format(plural(count, "miss", "misses"))


def _staggered(replay: Replay, missed: Mapping[int, _Missed]) -> str:
    """What a staggered start would do for all misses of some groups, of which some are concurrent."""
    groups = len({one.group for one in missed.values()})
    cells = [replay.cell_of(at) for at in missed]
    keys = len({cell.key for cell in cells})
    become = "their keys are equal already" if keys == groups else f"{plural(keys, 'key')} become {groups}"
    may = "may" if any(cell.has_guards for cell in cells) else "would"
    hits = sum(one.why == _CONCURRENT for one in missed.values())
    return f"the runs were concurrent: {become}; with a staggered start, {hits} of {len(missed)} {may} hit"


class _Missed(NamedTuple):
    """A miss that stays one."""

    why: str  # a word of `_SENTENCES`, or that its run was not alone
    group: tuple[int, int]  # its what-if key, by the first of the keys that become it, and its directory


def _missed(replayed: Replayed, keys: Sequence[int]) -> Iterator[tuple[int, _Missed]]:
    """The misses of some keys that become one, in each directory."""
    replay, after = replayed.replay, replayed.after
    cells = [cell for key in keys for cell in replay.cells.of_key.get(key, ())]
    of_directory = by_key((cell.directory, cell) for cell in cells)
    # Where there was an entry first, and where next.
    stored = sorted((first_entry(found, after), directory) for directory, found in of_directory.items())
    nowhere = "first" if len({cell.key for cell in cells}) > 1 else _DIFFERS
    for directory, found in of_directory.items():
        elsewhere = next((since for since, other in stored if other != directory), NEVER)
        for at, why, _ in still_missed(replayed, found):
            word: str = why
            if replay.history.lookups[at].outcome == "guard_miss":
                word = "guards"
            elif why == "nothing":
                word = "elsewhere" if elsewhere <= at else nowhere
            yield at, _Missed(word, (keys[0], directory))


def concurrent_misses(replayed: Replayed) -> list[int]:
    """The misses that would hit unless runs compile at the same time.

    Those of which another run was compiling the very key are left out: no field keeps these from hitting. With guards, an entry
    that is there need not serve.
    """
    replay, after = replayed.replay, replayed.after
    found = []
    for group in replayed.groups:
        missed = sorted(at for cell in group for at in cell.misses)
        # Once there is an entry, none of them is concurrent.
        if len(missed) > 1 and missed[1] < first_entry(group, after):
            found += [
                at
                for at, why, is_compiled in still_missed(replayed, group)
                if why == _CONCURRENT and not is_compiled and not replay.cell_of(at).has_guards
            ]
    return sorted(found)
