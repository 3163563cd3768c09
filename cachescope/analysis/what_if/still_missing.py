"""Why misses stay misses although fields of their keys do not count: no key became equal, or one did and its entry did not help."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from typing import Final, NamedTuple

from cachescope.analysis.history.directory import NEVER
from cachescope.analysis.what_if.cells import Cell, Stored
from cachescope.analysis.what_if.recorded import MISS, UNKNOWN, Outcomes
from cachescope.analysis.what_if.replay import Replay
from cachescope.frames.answer_rows import CauseRow
from cachescope.keys.key_fields import Removed
from cachescope.terms import VLLM
from cachescope.verdict_kinds import kind_of
from cachescope.wording import plural

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


def why_still(replay: Replay, removed: Removed, after: Outcomes, cause: CauseRow, at: list[int]) -> Kept:
    """Why misses of a cause stay misses without some fields, or why it cannot be known whether they do."""
    if (text := kind_of(cause).why_still) is not None:
        return Kept(text.format(kind=cause.kind), [])
    if at and all(replay.history.lookups[one].cache == VLLM for one in at):
        return Kept(_OF_VLLM, [])
    mine = {one for one in at if after[one] == MISS}
    undecided = [one for one in at if after[one] == UNKNOWN]
    if not mine and not undecided:
        return Kept(None, [])
    groups = _WhatIfGroups(replay, replay.table.joined(removed), after, mine)
    reason = {one: groups.reason(one) for one in mine}
    count = Counter(reason[one] for one in mine)
    sentences = _SENTENCES | ({_DIFFERS: _OTHER_KIND} if _KINDS_OF_GRAPH & set(cause.fields) else {})
    texts = [
        text.format(plural(count[word], "miss", "misses")) for word, text in sentences.items() if count[word]
    ]
    concurrent = [one for one in sorted(mine) if reason[one] == _CONCURRENT]
    if concurrent:
        texts.insert(0, _staggered(replay, groups, concurrent))
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


def _staggered(replay: Replay, groups: _WhatIfGroups, concurrent: list[int]) -> str:
    """What a staggered start would do for the keys of some concurrent misses."""
    shared = {groups.of(replay.cell_of(at)) for at in concurrent}
    every = [at for group in shared for at in groups.missed[group]]
    cells = [replay.cell_of(at) for at in every]
    keys = len({cell.key for cell in cells})
    become = (
        "their keys are equal already"
        if keys == len(shared)
        else f"{plural(keys, 'key')} become {len(shared)}"
    )
    may = "may" if any(cell.has_guards for cell in cells) else "would"
    hits = sum(groups.reason(at) == _CONCURRENT for at in every)
    return f"the runs were concurrent: {become}; with a staggered start, {hits} of {len(every)} {may} hit"


def concurrent_misses(replay: Replay, groups: Iterable[list[Cell]], after: Outcomes) -> list[int]:
    """The misses of some groups of cells that would hit unless runs compile at the same time.

    Those of which another run was compiling the very key are left out: no field keeps these from hitting.
    """
    since = replay.recorded.stored_since
    found = []
    for group in groups:
        missed = sorted((at, cell.number) for cell in group for at in cell.misses if after[at] == MISS)
        stored = min(*(cell.early for cell in group), *(since[at] for at, _ in missed))
        # With guards, an entry that is there need not serve it.
        early = [at for at, _ in missed[1:] if at < stored and not replay.cell_of(at).has_guards]
        if not early:
            continue
        running, of_cell = _Running(), _Running()
        for cell in group:
            for entry in _there(cell, after):
                if entry.source >= 0:
                    run = replay.history.lookups[entry.source].run
                    running.add(0, run, entry)
                    of_cell.add(cell.number, run, entry)
        for at in early:
            run, cell = replay.history.lookups[at].run, replay.cell_of(at)
            if running.of_others(0, run, at) and not of_cell.of_others(cell.number, run, at):
                found.append(at)
    return sorted(found)


def _there(cell: Cell, after: Outcomes) -> list[Stored]:
    """The entries of a cell that exist after a replay."""
    return [entry for entry in cell.entries if entry.source < 0 or after[entry.source] == MISS]


class _WhatIfGroups:
    """What becomes equal to some misses, and what was stored when: a group is a what-if key in one directory."""

    def __init__(
        self, replay: Replay, joined: Iterable[list[int]], after: Outcomes, at: Iterable[int]
    ) -> None:
        self._replay = replay
        members = {keys[0]: keys for keys in joined}
        self._first = {key: first for first, keys in members.items() for key in keys}
        # The misses of each group.
        self.missed: dict[tuple[int, int], list[int]] = defaultdict(list)
        self._started, self._ended, self._silent = _Moments(), _Moments(), _Moments()
        self._running = _Running()
        wanted = {self._first.get(replay.cell_of(one).key, replay.cell_of(one).key) for one in at}
        self._cells = {
            first: [cell for key in members.get(first, [first]) for cell in replay.cells.of_key.get(key, ())]
            for first in wanted
        }
        for cells in self._cells.values():
            for cell in cells:
                self._add(cell, after)

    def _add(self, cell: Cell, after: Outcomes) -> None:
        group = self.of(cell)
        for entry in _there(cell, after):
            self._started.add(group, entry.since)
            self._started.add(group[0], entry.since)
            self._ended.add(group, entry.gone)
            if entry.source >= 0:
                self._running.add(group, self._replay.history.lookups[entry.source].run, entry)
        for at in cell.misses:
            if after[at] == MISS:
                self.missed[group].append(at)
                if self._replay.recorded.stored_since[at] == NEVER:
                    self._silent.add(group, at)

    def of(self, cell: Cell) -> tuple[int, int]:
        """The group of a cell."""
        return self._first.get(cell.key, cell.key), cell.directory

    def reason(self, at: int) -> str:
        """Why a miss stays one: a word of `_SENTENCES`, or that its run was not alone."""
        row = self._replay.history.lookups[at]
        group = self.of(self._replay.cell_of(at))
        started, ended = self._started.until(group, at), self._ended.until(group, at)
        if row.outcome == "guard_miss" or started > ended:
            return "guards"
        if ended:
            return "gone"
        if self._running.of_others(group, row.run, at):
            return _CONCURRENT
        if self._running.count(group, at):
            return "pending"
        if self._silent.until(group, at - 1):
            return "not stored"
        if self._started.until(group[0], at) > started:
            return "elsewhere"
        return "first" if len({cell.key for cell in self._cells[group[0]]}) > 1 else _DIFFERS


class _Moments:
    """Moments of some groups."""

    def __init__(self) -> None:
        self._of: dict[Hashable, list[int]] = defaultdict(list)
        self._is_sorted = False

    def add(self, group: Hashable, moment: int) -> None:
        self._of[group].append(moment)

    def until(self, group: Hashable, at: int) -> int:
        """How many moments of a group are at a position or before."""
        if not self._is_sorted:
            for moments in self._of.values():
                moments.sort()
            self._is_sorted = True
        return bisect_right(self._of.get(group, ()), at)


class _Running:
    """Compiles of some groups: from the miss on until the result is stored."""

    def __init__(self) -> None:
        self._begun, self._stored = _Moments(), _Moments()

    def add(self, group: Hashable, run: int, entry: Stored) -> None:
        for one in (group, (group, run)):
            self._begun.add(one, entry.source)
            self._stored.add(one, entry.since)

    def count(self, group: Hashable, at: int) -> int:
        """How many had begun before a position and stored nothing yet."""
        return self._begun.until(group, at - 1) - self._stored.until(group, at)

    def of_others(self, group: Hashable, run: int, at: int) -> int:
        """The same without those of one run."""
        return self.count(group, at) - self.count((group, run), at)
