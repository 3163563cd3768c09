"""The results of a replay, as rows: every lookup before and after, hit rates, runs, warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import combinations
from operator import attrgetter
from typing import Final

from cachescope.analysis.directory.equal_code import GeneratedCode
from cachescope.analysis.rates import rates
from cachescope.analysis.what_if.replay import Replay, Replayed
from cachescope.frames.answer_rows import RateRow
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.linked_rows import PastMiss
from cachescope.frames.recorded_rows import LookupRow
from cachescope.frames.replay_rows import WhatIfDifference, WhatIfRate, WhatIfRow, WhatIfRun, WhatIfWarning
from cachescope.grouping import by_key
from cachescope.rows import like
from cachescope.terms import FXGRAPH

_REASONS: Final = {
    "gone": "it had been stored and was not found: removed, damaged, or in a directory no log names",
    "came": "nothing that was stored explains it: the entry came from elsewhere",
}


def with_more_hits(rate: RateRow, more: int, won: int) -> RateRow:
    """The rates if a number of misses had hit and spared their compile time."""
    saved = None if rate.time_saved_ns is None and not won else (rate.time_saved_ns or 0) + won
    lost = None if rate.time_lost_ns is None else rate.time_lost_ns - won
    known, seen = (saved or 0) + (lost or 0), rate.lookups - rate.unknown
    return replace(
        rate,
        hits=rate.hits + more,
        misses=rate.misses - more,
        hit_rate=(rate.hits + more) / seen if seen else None,
        time_saved_ns=saved,
        time_lost_ns=lost,
        # What is not recorded before is not known after.
        time_hit_rate=None if rate.time_hit_rate is None else (saved or 0) / known,
    )


def rate_rows(replayed: Replayed, lookups: Sequence[LookupRow] | None = None) -> list[WhatIfRate]:
    """Hit rates as recorded, and as they would have been; of all lookups or of some."""
    replay = replayed.replay
    before, positions = replay.before, None
    if lookups is not None:
        before, positions = rates(lookups), [replay.history.index_of[row.lookup] for row in lookups]
    turned = replayed.turned(positions)
    then = with_more_hits(before, len(turned), replay.total(turned) or 0)
    return [
        WhatIfRate(when="before", **asdict(before), undecided=0),
        WhatIfRate(when="after", **asdict(then), undecided=len(replayed.undecided(positions))),
    ]


def changed_lookups(replayed: Replayed) -> dict[int, tuple[str | None, int | None]]:
    """The lookups whose outcome changes, or may change: the new outcome, and the compile time gained."""
    lookups, taken = replayed.replay.history.lookups, replayed.replay.taken
    found: dict[int, tuple[str | None, int | None]] = {}
    for at in replayed.turned():
        found[lookups[at].lookup] = "hit", taken[at]
    found.update((lookups[at].lookup, (None, None)) for at in replayed.undecided())
    return found


def lookup_rows(replayed: Replayed, shown: Mapping[int, LookupRow]) -> list[WhatIfRow]:
    """Every lookup before and after, with the name of its what-if key. `shown` has the words for predicted outcomes."""
    replay, changed = replayed.replay, changed_lookups(replayed)
    names = replay.table.names(replayed.removed)
    notes = {one.position: _REASONS[one.kind] for one in replay.cells.differences}
    rows = []
    for at, (lookup, key) in enumerate(zip(replay.history.lookups, replay.history.key, strict=True)):
        row = shown[lookup.lookup]
        outcome, time_won_ns = changed.get(row.lookup, (row.outcome, None))
        is_unknown = outcome is None or row.outcome == "unknown"
        rows.append(
            like(
                WhatIfRow,
                row,
                what_if_key=None if key is None else names[key],
                outcome_after=outcome,
                changed_side=None if is_unknown else row.lookup in changed,
                time_won_ns=time_won_ns,
                note=notes.get(at),
            )
        )
    return sorted(rows, key=attrgetter("lookup"))


def run_rows(replayed: Replayed) -> list[WhatIfRun]:
    """What became of the lookups of each run."""
    lookups = replayed.replay.history.lookups
    turned = by_key((lookups[at].run, at) for at in replayed.turned())
    undecided = Counter(lookups[at].run for at in replayed.undecided())
    rows = []
    for run, made in sorted(by_key((row.run, row) for row in lookups).items()):
        before, won = rates(made), replayed.replay.total(turned[run])
        then = with_more_hits(before, len(turned[run]), won or 0)
        rates_after = {"hits_after": then.hits, "hit_rate_after": then.hit_rate}
        rows.append(like(WhatIfRun, before, run=run, unknown=undecided[run], time_won_ns=won, **rates_after))
    return rows


def difference_rows(replay: Replay, reasons: Mapping[int, str]) -> list[WhatIfDifference]:
    """The recorded outcomes that nothing explains, with the reasons that the explanations of the misses give."""
    found = [(replay.history.lookups[at], kind) for at, kind in replay.cells.differences]
    expected = {"gone": "hit", "came": "full_miss"}
    return [
        like(WhatIfDifference, row, expected=expected[kind], reason=reasons.get(row.lookup, _REASONS[kind]))
        for row, kind in sorted(found, key=lambda one: one[0].lookup)
    ]


def warning_rows(
    replayed: Replayed, code: GeneratedCode, past_misses: Iterable[PastMiss]
) -> list[WhatIfWarning]:
    """One pair for each two keys that would become one and share no code.

    Entries under one key of torch may differ in code, each for its own guards. So two keys are reported only if
    they share no code. Equal source may have been compiled into different kernels, by flags
    that only the key has: such pairs are known from past misses.
    """
    replay, equal = replayed.replay, replayed.equal
    stored: dict[int, EntryRow] = {}
    first_of: dict[int, int] = {}
    for entry, key in zip(replay.history.entries, replay.cells.key_of_entry, strict=True):
        if entry.cache == FXGRAPH and entry.code_key is not None and entry.status == "ok":
            stored[entry.entry], first_of[entry.entry] = entry, equal.get(key, [key])[0]
    groups = by_key((first_of[number], entry) for number, entry in stored.items())
    found: list[tuple[int, str, EntryRow, EntryRow]] = []
    for first, entries in groups.items():
        keys = by_key((entry.cache_key, entry) for entry in entries)
        found += [(first, "generated code", *pair) for pair in _without_common_code(keys, code)]
    for miss in past_misses:
        one, other = miss.baseline_entry, miss.entry
        if miss.same_binaries is False and stored.keys() >= {one, other} and first_of[one] == first_of[other]:
            found.append((first_of[one], "compiled kernels", stored[one], stored[other]))
    names = replay.table.names(replayed.removed) if found else []
    return [_warning(names[first], what, one, other) for first, what, one, other in found]


def _without_common_code(
    keys: Mapping[str | None, list[EntryRow]], code: GeneratedCode
) -> Iterator[tuple[EntryRow, EntryRow]]:
    # Sources are read only if code keys differ: a source contains the number of the graph in its process.
    if len({entry.code_key for held in keys.values() for entry in held}) < 2:
        return
    codes = {key: frozenset(code.identity(entry) for entry in held) for key, held in keys.items()}
    # Each kind of code once: for a hundred keys with two codes, one pair is enough.
    first = {found: key for key, found in reversed(codes.items())}
    for (found, key), (other_found, other) in combinations(first.items(), 2):
        if found.isdisjoint(other_found):
            yield keys[other][0], keys[key][0]


def _warning(name: str, what: str, entry: EntryRow, other: EntryRow) -> WhatIfWarning:
    keys, codes = zip(*((one.cache_key or "", one.code_key or "") for one in (entry, other)), strict=True)
    return WhatIfWarning(name, what, entry.entry, other.entry, *keys, *codes)
