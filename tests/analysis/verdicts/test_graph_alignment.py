"""Aligning the graphs of two runs: a changed graph stands where another stood, a new one stands between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.analysis.graphs import graph_diff, graph_words, likeness
from cachescope.analysis.key_distance import KeyDistances
from cachescope.analysis.verdicts.graph_alignment import GraphAligner
from cachescope.details import HashDetails
from cachescope.frames.recorded_rows import LookupRow
from tests.analysis.plain_rows import lookup_row

Recording = Callable[[str, str], Path]


def graph(*operations: str) -> str:
    body = "\n".join(f"    {op} = torch.{op}(x_{n});  x_{n} = None" for n, op in enumerate(operations))
    return (
        f"GraphModule()\n\n\n\ndef forward(self, x_0 : torch.Tensor):\n{body}\n    return ({operations[-1]},)"
    )


def rows(store: HashDetails, graphs: Sequence[str], run: int, function: str | None = None) -> list[LookupRow]:
    made = []
    for n, code in enumerate(graphs):
        digest = "".join("abcdefghijklmnop"[int(c, 16)] for c in f"{hash(code) & (2**64 - 1):016x}").ljust(
            51, "a"
        )
        details, _ = store.add([f"[{digest}] gm: {code}", f"[{'b' * 51}] example_inputs[0]: T"])
        assert details is not None
        made.append(
            lookup_row(
                lookup=100 * run + n,
                run=run,
                order=n,
                time=None,
                end_time=None,
                cache="fxgraph",
                cache_key=f"f{run}{n}",
                outcome="full_miss",
                status_detailed=None,
                cache_state=None,
                compile_id=f"{n}/0",
                direction="inference",
                aot_lookup=None,
                bypass_reason=None,
                save_bypass=None,
                load_error=None,
                guards_expr=None,
                time_taken_ns=None,
                detail_set=details,
                function=function,
                file=None if function is None else "train.py",
            )
        )
    return made


A = graph("mm", "relu", "add", "sum")
B = graph("softmax", "exp", "log")
C = graph("conv2d", "batch_norm", "gelu", "mean")
D = graph("embedding", "layer_norm", "dropout")
C2 = graph("conv2d", "batch_norm", "silu", "mean")
NEW = graph("fft", "angle", "cumsum", "diff", "roll")


def partners(
    before: Sequence[str], after: Sequence[str], functions: tuple[str | None, str | None] = (None, None)
) -> dict[int, int]:
    store = HashDetails()
    pairs = GraphAligner(store, KeyDistances(store)).partners(
        rows(store, before, 0, functions[0]), rows(store, after, 1, functions[1])
    )
    return {new.lookup - 100: old.lookup for old, new in pairs}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([A, B, C, D], [A, B, C2, D], {2: 2}),
        ([A, B, C, D], [A, NEW, B, C, D], {}),
        ([A, B, C, D], [NEW, A, B, C, D], {}),
        ([A, B, C, D], [A, NEW, B, C2, D], {3: 2}),
        ([A, B, C, D], [A, C2, D], {1: 2}),
        ([A, B, C, D], [A, B, NEW, C2, D], {3: 2}),
        ([A, B], [A, B, C, D], {}),
        ([C], [C2], {0: 0}),
        ([], [A], {}),
    ],
)
def test_a_changed_graph_is_paired_and_a_new_one_is_not(
    before: list[str], after: list[str], expected: dict[int, int]
) -> None:
    assert partners(before, after, ("forward", "forward")) == expected


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


def test_the_only_operation_exchanged_is_a_change_where_the_function_is_the_same() -> None:
    assert partners([graph("relu")], [graph("tanh")], ("forward", "forward")) == {0: 0}


@pytest.mark.parametrize("functions", [(None, None), ("forward", "loss"), ("forward", None)])
def test_equal_inputs_and_place_alone_make_no_likeness(functions: tuple[str | None, str | None]) -> None:
    # Another program in the same folder looks just so.
    assert partners([graph("relu")], [graph("tanh")], functions) == {}


def test_a_long_stretch_of_changed_graphs_is_paired_in_order() -> None:
    store = HashDetails()
    before = rows(store, [f"def forward(x_{n}): return relu(x_{n} @ x_{n})" for n in range(110)], 0, "f")
    after = rows(store, [f"def forward(x_{n}): return tanh(x_{n} @ x_{n})" for n in range(110)], 1, "f")
    pairs = GraphAligner(store, KeyDistances(store)).partners(before, after)
    assert {new.lookup: old.lookup for old, new in pairs} == {100 + n: n for n in range(110)}
