"""The baseline of every lookup of small made histories, against a search that looks at all that came before."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachescope.analysis.history.entry_times import EntryTimes
from cachescope.analysis.verdicts.baselines import Baselines, Choice
from cachescope.analysis.verdicts.misses import Candidate
from cachescope.details import HashDetails
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from tests.analysis.plain_rows import TEMPLATE, entry_row, history_of, run_row
from tests.made import set_of

pytestmark = pytest.mark.slow

FIELDS = ("gm", "example_inputs[0]", "inductor_config[a]", "inductor_config[b]", "only_sometimes")

keys = st.tuples(
    st.sampled_from("GH"), st.sampled_from("ij"), st.sampled_from("01"), st.sampled_from("01"),
    st.sampled_from(["", "x"]),
)  # fmt: skip
lookups = st.tuples(keys, st.integers(0, 3), st.sampled_from(["0/0", "0/1", "1/0", None]), st.booleans())
stored = st.tuples(keys, st.one_of(st.none(), st.integers(0, 12)))


INFERENCE = {"fx_kwargs[is_backward]": "False", "fx_kwargs[is_inference]": "True"}


class Made:
    """Lookups and entries with hash details of a few fields; every lookup has a key of its own set."""

    def __init__(self, made: Sequence[tuple], entries: Sequence[tuple], ranks: Sequence[int | None]) -> None:
        self.store = HashDetails()
        self.runs = [run_row(run, rank) for run, rank in enumerate(ranks)]
        self.lookups = [
            # Each compile has ended before the next lookup.
            replace(
                TEMPLATE, lookup=100 + at, run=run, time=10 * at, time_taken_ns=1, cache_key="f" + "".join(values),
                compile_id=compile_id, detail_set=self.set_of(values) if has_details else None,
            )
            for at, (values, run, compile_id, has_details) in enumerate(made)
        ]  # fmt: skip
        self.entries = [
            entry_row(
                number, "fxgraph", "f" + "".join(values), "r", "p", None if modified is None else 10 * modified,
                detail_set=self.set_of(values),
            )
            for number, (values, modified) in enumerate(entries)
        ]  # fmt: skip
        self.history = history_of(self.lookups, self.store, self.entries, self.runs)

    def stored_before(self, row: LookupRow) -> list[EntryRow]:
        """Entries that were there by their times and that no lookup stands for: every recorded miss wrote its own."""
        times = EntryTimes(self.history)
        known = {one.cache_key for one in self.lookups}
        return [
            entry
            for entry in self.entries
            if times.interval(entry)[1] <= (row.time or 0) and entry.cache_key not in known
        ]

    def set_of(self, values: tuple[str, ...]) -> int:
        fields = {field: value for field, value in zip(FIELDS, values, strict=True) if value}
        return set_of(self.store, fields | INFERENCE)

    def gm(self, one: Candidate) -> int | None:
        return None if one.detail_set is None else self.store.hash_code(one.detail_set, "gm")

    def changed(self, one: Candidate, other: Candidate) -> set[str]:
        assert one.detail_set is not None and other.detail_set is not None
        before, after = (
            {detail.field: detail.detail_hash for detail in self.store.details(row.detail_set)}
            for row in (one, other)
        )
        return {field for field in before.keys() | after.keys() if before.get(field) != after.get(field)}


def expected(history: Made, at: int) -> Candidate | None:
    """As the design says it: the same graph, the same place in the run before, the fewest fields, the latest."""
    row = history.lookups[at]
    earlier = [one for one in history.lookups[:at] if one.detail_set is not None]
    stored = history.stored_before(row)
    same: list[Candidate] = [one for one in earlier if not is_another_call(history, one, row)]
    same = [one for one in same if history.gm(one) == history.gm(row)]
    same += [entry for entry in stored if history.gm(entry) == history.gm(row)]
    others = [one for one in same if isinstance(one, LookupRow) and one.run != row.run]
    rank = {run.run: run.rank for run in history.runs}
    of_rank = [one.run for one in others if rank[one.run] == rank[row.run]]
    before = max(of_rank or [one.run for one in others], default=None)
    there = [one for one in others if one.run == before]
    in_place = [one for one in there if row.compile_id and one.compile_id == row.compile_id]
    candidates = in_place or same
    ordered = sorted(
        enumerate(candidates),
        key=lambda item: (len(history.changed(item[1], row)), isinstance(item[1], EntryRow), -item[0]),
    )
    return ordered[0][1] if ordered else None


def is_another_call(history: Made, one: LookupRow, row: LookupRow) -> bool:
    if one.run != row.run or None in (one.compile_id, row.compile_id):
        return False
    changed = history.changed(one, row)
    return one.compile_id[0] != row.compile_id[0] and changed == {"example_inputs[0]"}


def baseline_of(baselines: Baselines, history: Made, at: int) -> Candidate | None:
    found = baselines.find(at)
    return history.lookups[found] if isinstance(found, int) else found


@settings(max_examples=20)
@given(
    made=st.lists(lookups, max_size=10),
    entries=st.lists(stored, max_size=4),
    ranks=st.lists(st.sampled_from([None, 0, 1]), min_size=4, max_size=4),
)
def test_the_baseline_is_the_one_that_a_full_search_finds(
    made: list[tuple], entries: list[tuple], ranks: list[int | None]
) -> None:
    history = Made(made, entries, ranks)
    baselines = Baselines(history.history, Choice())
    for at, row in enumerate(history.lookups):
        if row.detail_set is None:
            continue
        wanted, found = expected(history, at), baseline_of(baselines, history, at)
        if wanted is not None:
            assert found == wanted
        elif found is not None:
            # It stands in the place of another graph.
            assert history.gm(found) != history.gm(row)


@settings(max_examples=40)
@given(made=st.lists(lookups, max_size=10), entries=st.just([]) | st.lists(stored, max_size=4))
def test_nearest_of_all_graphs_is_what_a_full_search_finds(made: list[tuple], entries: list[tuple]) -> None:
    history = Made(made, entries, [None] * 4)
    baselines = Baselines(history.history, Choice("nearest"))
    for at, row in enumerate(history.lookups):
        if row.detail_set is None:
            continue
        earlier: list[Candidate] = [one for one in history.lookups[:at] if one.detail_set is not None]
        earlier += history.stored_before(row)
        best = [None, *earlier][-1]
        for one in reversed(earlier):
            fewer = len(history.changed(one, row)) - len(history.changed(best, row))
            is_lookup = isinstance(one, LookupRow) and isinstance(best, EntryRow)
            is_better = fewer < 0 or (fewer == 0 and is_lookup)
            best = one if is_better else best
        assert baseline_of(baselines, history, at) == best


@settings(max_examples=100)
@given(
    made=st.lists(lookups, min_size=2, max_size=12),
    entries=st.lists(stored, max_size=4),
    ranks=st.lists(st.sampled_from([None, 0, 1]), min_size=4, max_size=4),
)
def test_a_nearer_key_differs_in_some_of_the_fields_or_in_fewer(
    made: list[tuple], entries: list[tuple], ranks: list[int | None]
) -> None:
    history = Made(made, entries, ranks)
    baselines = Baselines(history.history, Choice())
    for at, row in enumerate(history.lookups):
        if row.detail_set is None or (found := baseline_of(baselines, history, at)) is None:
            continue
        compared = baselines.find(at)
        assert compared is not None
        nearer = baselines.nearer(at, compared)
        wanted = nearest_by_search(history, at, found)
        assert (None if nearer is None else history.lookups[nearer]) == wanted


def nearest_by_search(history: Made, at: int, found: Candidate) -> LookupRow | None:
    """The first with the fewest fields of those that differ in some of the same alone, else the last with the fewest.

    What else differs from a lookup of the same run did not change since the run before.
    """
    row = history.lookups[at]
    fields = history.changed(found, row)
    fewer = [
        one
        for one in history.lookups[:at]
        if history.gm(one) == history.gm(row) == history.gm(found)
        and one.detail_set is not None
        and not is_another_call(history, one, row)
        and 0 < len(history.changed(one, row)) < len(fields)
    ]
    within = [one for one in fewer if history.changed(one, row) <= fields]
    fewer = [one for one in fewer if one in within or one.run != row.run]

    def distance(one: LookupRow) -> int:
        return len(history.changed(one, row))

    return min(within, key=distance, default=None) or min(reversed(fewer), key=distance, default=None)
