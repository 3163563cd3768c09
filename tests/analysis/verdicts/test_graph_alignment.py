"""Aligning the graphs of two runs: a changed graph stands where another stood, a new one stands between."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.analysis.graphs import graph_diff, graph_words, likeness
from cachescope.analysis.key_distance import KeyDistances
from cachescope.analysis.verdicts.graph_alignment import GraphAligner
from cachescope.details import HashDetails
from cachescope.frames.recorded_rows import LookupRow
from tests.analysis.plain_rows import lookup_row
from tests.conftest import Recording
from tests.made import component


def test_the_second_of_four_graphs_is_compared_with_the_right_one(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "four_graphs") / "trace")
    changed = scope.misses[scope.misses["verdict"] == "key_changed"]
    for miss in changed.itertuples():
        mine = scope.lookups.set_index("lookup").loc[miss.lookup]
        baseline = scope.lookups.set_index("lookup").loc[miss.baseline_lookup]
        assert (baseline["run"], baseline["compile_id"], baseline["cache"]) == (0, "1/0", mine["cache"])
    assert len(changed) == 2


def test_a_graph_looked_up_twice_is_one_place(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "entry_deleted") / "trace")
    store = scope.tables.hash_details
    by_run = [[r for r in scope.history.lookups if r.run == run and r.cache == "fxgraph"] for run in (1, 2)]
    assert len(by_run[1]) == 2
    assert GraphAligner(store, KeyDistances(store)).partners(*by_run) == []


CODE = st.text("abcdef =()\n.", max_size=60)


@given(CODE, CODE)
def test_likeness_is_symmetric_and_bounded(a: str, b: str) -> None:
    one, two = graph_words(a), graph_words(b)
    assert likeness(one, two) == likeness(two, one)
    assert 0 <= likeness(one, two) <= 1
    assert likeness(one, one) == 1


@given(CODE)
def test_a_graph_does_not_differ_from_itself(code: str) -> None:
    assert graph_diff(code, code) == ""


def test_a_long_stretch_of_changed_graphs_is_paired_in_order() -> None:
    store = HashDetails()

    def graphs(op: str) -> list[LookupRow]:
        codes = (f"def forward(x_{n}): return {op}(x_{n} @ x_{n})" for n in range(110))
        sets = (store.add([component("gm", code)])[0] for code in codes)
        return [
            lookup_row(lookup=at, detail_set=one, compile_id=f"{at}/0", cache_key=f"{op}{at}", function="f", file="a.py")
            for at, one in enumerate(sets)
        ]  # fmt: skip

    pairs = GraphAligner(store, KeyDistances(store)).partners(graphs("relu"), graphs("tanh"))
    assert {new.lookup: old.lookup for old, new in pairs} == {n: n for n in range(110)}
