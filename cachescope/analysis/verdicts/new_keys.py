"""Keys that had never been seen: what each is another key than, and in which fields.

AOTAutograd lookups are judged first: how their key changed shows which earlier graph an FX lookup below corresponds to.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np

from cachescope.analysis.history.history import History
from cachescope.analysis.history.past_of_keys import PastOfKeys
from cachescope.analysis.history.places_by_group import NONE, Numbers, firsts, paired
from cachescope.analysis.history.rows import EntryRow, LookupRow
from cachescope.analysis.verdicts.baselines import Baselines, Candidate, Choice, Compared
from cachescope.analysis.verdicts.changed_fields import Component, changed_fields, in_chunks
from cachescope.analysis.verdicts.changed_keys import OF_ITS_OWN, ChangedKeys, Fields
from cachescope.analysis.verdicts.entries_above import EntriesAbove
from cachescope.analysis.verdicts.filled_caches import FilledCaches
from cachescope.analysis.verdicts.graph_alignment import is_named
from cachescope.analysis.verdicts.misses import Why
from cachescope.analysis.verdicts.reasons_found import ReasonsFound
from cachescope.details import HashDetails
from cachescope.terms import HOW_TO_RECORD
from cachescope.verdict_kinds import CONCURRENT, NEW_GRAPH, NOT_KNOWN

_COLD_START: Final = Why(
    "first_lookup",
    "nothing earlier to compare with: a cold start, or what was there before was not read",
    "inferred",
    "no earlier run and no entry that was there before was read",
)
_IS_NEW: Final = Why(
    "first_lookup",
    "nothing that was read before is of this graph",
    "inferred",
    "no earlier lookup or entry that was read is of this graph",
)
_IS_BESIDE: Final = Why(
    "first_lookup",
    "nothing earlier to compare with: another run was compiling the same graph under another key, and had not finished",
    "inferred",
    "no entry and no ended compile that was read is of this graph; {} was compiling it at that moment",
    kind=CONCURRENT,
)
_IS_NEW_IN_A_FILLED_CACHE: Final = replace(_IS_NEW, kind=NEW_GRAPH)


class NewKeys:
    """Judges misses of keys that had not been looked up before.

    Parameters
    ----------
    history : History
    details : HashDetails
    choice : Choice
    pasts : PastOfKeys
    found : ReasonsFound
        What is found out is noted here.
    """

    def __init__(
        self, history: History, details: HashDetails, choice: Choice, pasts: PastOfKeys, found: ReasonsFound
    ) -> None:
        self._history = history
        self._rows = history.lookups
        self._details = details
        self._pasts = pasts
        self._found = found
        self._baselines = Baselines(history, details, choice)
        self._changed_keys = ChangedKeys(history, details, self._baselines)
        self._filled = FilledCaches(history)
        self._whys: dict[tuple[bytes, Component, int, int], int] = {}
        # For each AOTAutograd lookup whose key had changed, the lookup that it is compared with.
        self._changed_from: Numbers = np.full(len(self._rows), NONE, dtype=np.int64)

    @property
    def entries(self) -> list[EntryRow]:
        """The entries that misses are compared with."""
        return self._baselines.stored.rows

    def judge(self, at: Numbers) -> None:
        """Judge lookups, given by their places in time order."""
        has_details = self._rows.detail_set[at] != NONE
        for place in at[~has_details].tolist():
            self._found.record(place, self._without_details(place))
        at = at[has_details]
        is_aot = self._rows.is_aot[at]
        for some in (at[is_aot], at[~is_aot]):
            self._judge_with_details(some)
        EntriesAbove(self._history, self._details, self.entries, self._found).judge(at[is_aot])

    def _judge_with_details(self, at: Numbers) -> None:
        compared = self._baselines.find_each(at)
        for number in np.flatnonzero((compared.lookup == NONE) & (compared.entry == NONE)).tolist():
            compared.lookup[number] = self._under_the_same(int(at[number]))
        is_new = (compared.lookup == NONE) & (compared.entry == NONE)
        for place in at[is_new].tolist():
            self._found.record(place, self._first_lookup(place))
        at, compared = at[~is_new], Compared(compared.lookup[~is_new], compared.entry[~is_new])
        nearer, apart = self._baselines.nearer(at, compared)
        has_nearer = nearer != NONE
        for chosen, lookup in ((has_nearer, nearer), (~has_nearer, compared.lookup)):
            entry = np.where(has_nearer, NONE, compared.entry)[chosen]
            apart_from = np.where(has_nearer, apart, 0)[chosen]
            for some in in_chunks(at[chosen], lookup[chosen], entry, apart_from):
                self._compare(*some)

    def _compare(self, at: Numbers, lookup: Numbers, entry: Numbers, apart: Numbers) -> None:
        """Judge lookups by what changed against their baselines.

        Parameters
        ----------
        at : array of int
        lookup, entry : array of int
            Their baselines.
        apart : array of int
            How many fields separate each from the lookup of the run before, if a nearer one was found; else 0.
        """
        found, compared = self._found, Compared(lookup, entry)
        before = self._baselines.sets_of(compared)
        changes = changed_fields(self._details, before, self._rows.detail_set[at])
        found.baseline[at], found.baseline_entry[at] = lookup, entry
        has_changed = np.diff(changes.starts) > 0
        self._changed_from[at[has_changed]] = lookup[has_changed]
        again: list[tuple[int, int, int]] = []
        whys = []
        compared_rows = zip(
            changes.fields(), apart.tolist(), self._changed_keys.alike(at, compared), strict=True
        )
        for number, ((codes, alone), far, alike) in enumerate(compared_rows):
            fields = self._changed_keys.named(codes)
            if not far and fields.are_inputs:
                nearer = self._nearer_in_parts(at, compared, number, fields)
                again += [] if nearer is None else [(int(at[number]), nearer, len(fields.names))]
            memo_key = codes, alone, far, alike
            why = self._whys.get(memo_key)
            if why is None:
                row, baseline = self._rows[int(at[number])], self._baseline(compared, number)
                why = found.number(self._changed_keys.why(row, baseline, fields, alone, far))
                if alike != OF_ITS_OWN and not fields.is_of_its_own:
                    self._whys[memo_key] = why
            whys.append(why)
        found.why[at] = whys
        if again:
            places, nearer_ones, apart_from = np.array(again).T
            self._compare(places, nearer_ones, np.full(len(again), NONE), apart_from)

    def _nearer_in_parts(self, at: Numbers, compared: Compared, number: int, fields: Fields) -> int | None:
        """The place of a lookup whose inputs differ in fewer parts than those of the baseline."""
        place, baseline = int(at[number]), self._baseline(compared, number)
        nearer = self._baselines.nearer_in_parts(place, baseline, fields.names)
        return None if nearer is None else self._rows.place_of(nearer.lookup)

    def _baseline(self, compared: Compared, number: int) -> Candidate:
        entry = int(compared.entry[number])
        return self._rows[int(compared.lookup[number])] if entry == NONE else self.entries[entry]

    def _under_the_same(self, at: int) -> int:
        """The graph that AOTAutograd had made before, under the key that has changed into this lookup's; -1 if there is none."""
        rows, above = self._rows, int(self._rows.aot[at])
        before = NONE if above == NONE else int(self._changed_from[above])
        if before == NONE:
            return NONE
        graphs = self._history.graphs_of(before)
        is_same = rows.direction.codes[graphs] == rows.direction.codes[at]
        same = graphs[is_same & (rows.detail_set[graphs] != NONE)]
        return int(same[0]) if len(same) else NONE

    # Without a baseline.

    def _first_lookup(self, at: int) -> Why:
        beside = self._baselines.beside(at)
        why = self._why_not_known_to_be_new(at)
        if why is None and beside != NONE and not self._baselines.running.is_seen_running(beside, at):
            run = self._rows.run[beside]
            why = f"run {run} had begun to compile the same graph, and no log shows when that compile ended"
        if why is None:
            if beside != NONE:
                evidence = _IS_BESIDE.evidence_text.format(f"run {self._rows.run[beside]}")
                return replace(_IS_BESIDE, evidence_text=evidence)
            return _IS_NEW_IN_A_FILLED_CACHE if self._filled.is_before(at) else _IS_NEW
        reason = "nothing that was read is known to be an earlier form of this graph"
        return Why("first_lookup", reason, "not_known", why, kind=NOT_KNOWN)

    def _why_not_known_to_be_new(self, at: int) -> str | None:
        """Why a graph without a baseline may still be an earlier one; None if nothing suggests it."""
        row = self._rows[at]
        if self._baselines.may_be_stored(at):
            return "entries of the same graph are stored, and nothing shows since when"
        first = self._first_without_details.get(row.cache)
        if first is not None and first < at and self._rows.run[first] != row.run:
            return "the hash details of earlier lookups were not recorded, and one of them may be of the same graph"
        if self._is_explained_above(at, row):
            return "the hash details of its AOTAutograd key, which would show it, are not recorded"
        like = self._baselines.may_replace(at)
        if like is None:
            return None
        where = f"run {like.run}" if isinstance(like, LookupRow) else "the cache directory"
        is_named_ = None not in (row.function, getattr(like, "function", None))
        lacking = (
            "that is not enough to decide" if is_named_ else "nothing names the functions (a trace does)"
        )
        return (
            f"{where} has a graph of which {self._baselines.are_alike_by(like, row)}; whether this is another form of it "
            f"is not known, for {lacking}"
        )

    @cached_property
    def _first_without_details(self) -> dict[str, int]:
        """By cache, the place of the first miss whose key has no recorded details."""
        rows = self._rows
        is_one = (rows.detail_set == NONE) & rows.outcome.are("full_miss", "guard_miss", "unknown")
        places = np.flatnonzero(is_one)[::-1]
        return {rows.cache_of(at): at for at in places.tolist()}

    def _is_explained_above(self, at: int, row: LookupRow) -> bool:
        """Whether only its AOTAutograd key could identify the earlier form of a graph, and that key has no recorded details."""
        above = int(self._rows.aot[at])
        if above == NONE or self._rows.detail_set[above] != NONE or is_named(row):
            return False
        return self._pasts.other_run_before(at)

    # Without hash details.

    def _without_details(self, at: int) -> Why:
        cache = self._rows.cache_of(at)
        if self._rows.details[at] == "incomplete":
            return _lines_are_missing(cache)
        is_first = not self._pasts.other_run_before(at) and not self._is_compiled_again(at)
        is_filled = cache in self._is_stored_before or self._filled.is_before(at)
        return _COLD_START if is_first and not is_filled else _not_recorded(cache)

    @cached_property
    def _is_stored_before(self) -> frozenset[str]:
        """The caches with entries that no recorded miss wrote."""
        history = self._history
        return frozenset(
            entry.cache
            for entry in history.entries
            if not (places := history.lookups_of(entry)) or self._rows.is_hit[places[0]]
        )

    @cached_property
    def _compiles(self) -> tuple[Numbers, Numbers]:
        """The number of the compile of each lookup in its cache; and the first lookup of each compile."""
        numbers = paired(self._rows.compiled_in, self._rows.cache.codes.astype(np.int64))
        return numbers, firsts(numbers)

    def _is_compiled_again(self, at: int) -> bool:
        """Whether its process had used its compile id with another key: compile ids had begun again.

        Forward and backward graphs of a training graph have different keys in one compile. If the lines that record the
        direction are lost, it may be either.
        """
        rows = self._rows
        numbers, first_of = self._compiles
        first = int(first_of[numbers[at]])
        is_same_autograd = rows.aot_lookup[first] == rows.aot_lookup[at]
        may_be_backward = is_same_autograd and rows.direction[first] != "inference"
        is_cut = rows.details[first] == "incomplete"
        return bool(rows.cache_key.codes[first] != rows.cache_key.codes[at]) and (
            is_cut or not may_be_backward
        )


def _lines_are_missing(cache: str) -> Why:
    reason = "lines of its hash details are missing from the log, so nothing says what was in this key"
    return Why("details_not_recorded", reason, "not_known", reason, kind=cache)


def _not_recorded(cache: str) -> Why:
    reason = f"nothing says what was in this key; {HOW_TO_RECORD}"
    why = "torch did not record the hash details of this key"
    return Why("details_not_recorded", reason, "not_known", why, kind=cache)
