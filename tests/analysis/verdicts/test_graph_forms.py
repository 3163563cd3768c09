"""Which graphs may be forms of one another, and which are paired: codes of words in, likeness worked out by counting them."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.analysis.graphs import graph_diff, graph_words, likeness
from cachescope.analysis.key_distance import KeyDistances
from cachescope.analysis.verdicts.replaced_graphs import GraphAligner, replaced_stretches
from cachescope.details import HashDetails
from cachescope.frames.recorded_rows import LookupRow
from tests.analysis.plain_rows import TEMPLATE, lookup_row
from tests.conftest import Recording
from tests.made import set_of

Function = tuple[str | None, str | None]


class Made:
    """Graphs of ten words each, one a letter: of two of them the likeness is a tenth for each word that they share."""

    def __init__(self) -> None:
        self.store = HashDetails()

    def graph(
        self, words: str, function: Function = (None, None), compile_id: str | None = "0/0", inputs: str = "T"
    ) -> LookupRow:
        code = " ".join(f"{word}_op" for word in words)
        details = set_of(self.store, {"gm": code, "example_inputs[0]": inputs})
        name, file = function
        named = {"function": name, "file": file, "compile_id": compile_id, "cache_key": words}
        return replace(TEMPLATE, detail_set=details, **named)

    @property
    def aligner(self) -> GraphAligner[LookupRow]:
        return GraphAligner(KeyDistances(self.store))

    def alike(self, shared: int, one: Function, other: Function, is_one_program: bool = False) -> bool:
        a, b = self.graph("abcdefghij", one, "0/0"), self.graph(sharing(shared), other, "7/0")
        return self.aligner.are_alike(a, b, is_one_program=is_one_program)


def sharing(words: int) -> str:
    """Ten words, of which so many are among the first ten letters."""
    return "abcdefghij"[:words] + "klmnopqrst"[words:]


SITE = "/venv/lib/python3.13/site-packages/torch/nn/modules.py"
FEWEST: list[tuple[Function, Function, bool, int | None]] = [
    # A function of the user may have been rewritten; many programs call one of a library.
    (("f", "/a.py"), ("f", "/a.py"), False, 2),
    (("f", SITE), ("f", SITE), False, 6),
    (("f", r"C:\dist-packages\a.py"), ("f", r"C:\dist-packages\a.py"), False, 6),
    (("f", "/my-site-packages/a.py"), ("f", "/my-site-packages/a.py"), False, 2),
    # Renamed, or moved, and not both.
    (("f", "/a.py"), ("g", "/a.py"), False, 6),
    (("f", "/one/a.py"), ("f", "/two/a.py"), False, 6),
    (("f", "/one/a.py"), ("g", "/two/a.py"), False, None),
    (("f", "/one/a.py"), ("f", "/one/b.py"), False, None),
    (("f", "/one/a.py"), ("f", "/one/b.py"), True, None),
    # Code without a file: every program that was given in a command has a <string>, every fx graph is a <eval_with_key>.
    (("f", "<string>"), ("f", "<string>"), False, 6),
    (("f", "<string>"), ("g", "<string>"), False, None),
    (("forward", "<eval_with_key>.3"), ("forward", "<eval_with_key>.14"), False, None),
    # Without a name of its own: of one program, or of one call.
    ((None, None), (None, None), False, None),
    ((None, None), (None, None), True, 6),
    (("f", "/a.py"), (None, None), True, 6),
    ((None, None), ("f", "/a.py"), True, 6),
    (("f", "/a.py"), (None, None), False, None),
    (("<lambda>", "/a.py"), ("<lambda>", "/a.py"), False, 9),
    (("<lambda>", "/a.py"), ("<lambda>", "/a.py"), True, 6),
    ((None, "/a.py"), (None, "/a.py"), False, 9),
    (("<lambda>", "/a.py"), ("<lambda>", "/b.py"), False, None),
    (("<lambda>", "/a.py"), ("<listcomp>", "/a.py"), False, None),
    (("<lambda>", "/a.py"), ("f", "/a.py"), False, None),
    (("f", None), ("f", None), False, None),
    (("f", None), ("f", None), True, 6),
]


@pytest.mark.parametrize(("one", "other", "is_one_program", "fewest"), FEWEST)
def test_how_many_of_ten_words_make_two_graphs_forms_of_one(
    one: Function, other: Function, is_one_program: bool, fewest: int | None
) -> None:
    made = Made()
    found = [made.alike(shared, one, other, is_one_program) for shared in range(11)]
    assert found == [fewest is not None and shared >= fewest for shared in range(11)]


@pytest.mark.parametrize(("one", "other", "ids", "fewest"), [
    ((None, None), (None, None), ("0/0", "0/0"), 2),
    (("f", "/a.py"), (None, None), ("0/0", "0/0"), 2),
    ((None, None), (None, None), ("0/0", "1/0"), 6),
    ((None, None), (None, None), (None, None), 6),
    # Where both are named it is known.
    (("f", "/a.py"), ("f", "/a.py"), ("0/0", "0/0"), None),
    (("f", "/a.py"), ("g", "/b.py"), ("0/0", "0/0"), None),
])  # fmt: skip
def test_how_many_of_ten_words_make_it_possible(
    one: Function, other: Function, ids: tuple[str | None, str | None], fewest: int | None
) -> None:
    made = Made()
    a = made.graph("abcdefghij", one, ids[0])
    found = [made.aligner.may_be_alike(a, made.graph(sharing(n), other, ids[1])) for n in range(11)]
    assert found == [fewest is not None and shared >= fewest for shared in range(11)]


@pytest.mark.parametrize(("shared", "compile_ids", "inputs", "score"), [
    (10, ("0/0", "0/0"), ("T", "T"), 1.0), (5, ("0/0", "0/0"), ("T", "T"), 0.7),
    (5, ("0/0", "1/0"), ("T", "T"), 0.5), (5, (None, None), ("T", "T"), 0.5),
    (5, ("0/0", "0/0"), ("T", "U"), 0.5), (0, ("0/0", "1/0"), ("T", "U"), 0.0),
])  # fmt: skip
def test_the_score_of_two_graphs(
    shared: int, compile_ids: tuple[str | None, str | None], inputs: tuple[str, str], score: float
) -> None:
    made = Made()
    a = made.graph("abcdefghij", compile_id=compile_ids[0], inputs=inputs[0])
    b = made.graph(sharing(shared), compile_id=compile_ids[1], inputs=inputs[1])
    assert made.aligner.score(a, b) == pytest.approx(score)
    assert made.aligner.score(b, a) == pytest.approx(score)


def test_likeness_is_known_again_by_the_graph_and_else_by_the_details() -> None:
    made = Made()
    one, half, other = map(made.graph, ("abcdefghij", sharing(5), sharing(0)))
    for _ in range(2):
        assert made.aligner.code_likeness(one, half) == 0.5
        assert made.aligner.code_likeness(one, other) == 0
        assert made.aligner.code_likeness(one, one) == 1


F: Function = ("f", "/a.py")
A, A9, A5 = "abcdefghij", sharing(9), sharing(5)
Z, Z9, Z5 = "ABCDEFGHIJ", "ABCDEFGHIz", "ABCDEvwxyz"


@pytest.mark.parametrize(("old", "new", "pairs"), [
    ([], [A], []), ([A], [], []), ([A], [A9], [(0, 0)]), ([A], [Z], []),
    # The most alike, wherever it stands.
    ([A], [A5, A9], [(0, 1)]), ([A], [A9, A5], [(0, 0)]), ([A5, A9], [A], [(1, 0)]),
    ([A9, A5], [A], [(0, 0)]),
    # In order; of two that cross the more alike.
    ([A, Z], [A9, Z9], [(0, 0), (1, 1)]), ([A, Z], [Z9, A5], [(1, 0)]), ([A, Z], [Z5, A9], [(0, 1)]),
    # A5 has six words of A9 and five of A.
    ([A5, Z], [A, A9, Z9], [(0, 1), (1, 2)]), ([A, A], [A5, A5], [(0, 0), (1, 1)]),
    ([Z, A, Z], [A9, Z9], [(1, 0), (2, 1)]), ([A, Z], [Z9, A9, Z5], [(0, 1), (1, 2)]),
])  # fmt: skip
def test_pairs_of_the_greatest_score(old: list[str], new: list[str], pairs: list[tuple[int, int]]) -> None:
    made = Made()
    before, after = ([made.graph(words, F) for words in side] for side in (old, new))
    for at, graph in enumerate(before):
        before[at] = replace(graph, lookup=at)
    for at, graph in enumerate(after):
        after[at] = replace(graph, lookup=at, compile_id="7/0")
    found = made.aligner.pair_up(before, after, False)
    assert [(one.lookup, other.lookup) for one, other in found] == pairs


@pytest.mark.parametrize(("before", "after", "stretches", "share"), [
    ([], [], [], False),
    ([1], [1], [], True),
    ([1], [2], [((0, 1), (0, 1))], False),
    ([1, 2, 3], [1, 4, 3], [((1, 2), (1, 2))], True),
    ([1, 2], [1, 2, 3], [], True),
    ([1, 2, 3], [1, 3], [], True),
    ([1, 2, 9, 3], [4, 9, 5, 6], [((0, 2), (0, 1)), ((3, 4), (2, 4))], True),
    ([], [1], [], False),
])  # fmt: skip
def test_where_graphs_stand_in_place_of_others(
    before: list[int], after: list[int], stretches: list[tuple[tuple[int, int], tuple[int, int]]], share: bool
) -> None:
    found, is_shared = replaced_stretches(before, after)
    assert [((one.start, one.stop), (other.start, other.stop)) for one, other in found] == stretches
    assert is_shared is share


def changed_to(
    before: Sequence[LookupRow], after: Sequence[LookupRow], made: Made, **told: bool
) -> list[str]:
    return [f"{a.cache_key} {b.cache_key}" for a, b in made.aligner.partners(before, after, **told)]


def test_runs_that_share_a_graph_are_of_one_program() -> None:
    made = Made()
    one, edited, shared = map(made.graph, (A, sharing(7), Z))
    assert changed_to([one], [edited], made) == []
    assert changed_to([one, shared], [edited, shared], made) == [f"{A} {sharing(7)}"]
    assert changed_to([one], [edited], made, is_one_program=True) == [f"{A} {sharing(7)}"]


def test_what_has_no_graph_and_what_is_looked_up_again_has_no_place() -> None:
    made = Made()
    one, edited = made.graph(A, F), made.graph(A9, F)
    nothing = replace(one, detail_set=None, cache_key="nothing")
    assert changed_to([nothing, one, one], [edited, edited], made) == [f"{A} {A9}"]
    # Again later is another place.
    between = made.graph(Z, F)
    assert changed_to([one, between, one], [edited, between, edited], made) == [f"{A} {A9}"] * 2


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
    assert GraphAligner(KeyDistances(store)).partners(*by_run) == []


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
        sets = (set_of(store, {"gm": code}) for code in codes)
        return [
            lookup_row(lookup=at, detail_set=one, compile_id=f"{at}/0", cache_key=f"{op}{at}", function="f", file="a.py")
            for at, one in enumerate(sets)
        ]  # fmt: skip

    pairs = GraphAligner(KeyDistances(store)).partners(graphs("relu"), graphs("tanh"))
    assert {new.lookup: old.lookup for old, new in pairs} == {n: n for n in range(110)}
