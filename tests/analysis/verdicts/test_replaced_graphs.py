"""Which graph of an earlier run a new graph replaced: rows in, worked out by hand.

The code of a graph is ten words, each a letter: of two of them the likeness is a tenth for each word that they share.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from cachescope.analysis.history.entry_times import StoredCandidates
from cachescope.analysis.verdicts.replaced_graphs import ReplacedGraphs
from cachescope.details import HashDetails
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from tests.analysis.plain_rows import TEMPLATE, entry_row, history_of, run_row
from tests.made import set_of

A, B, C, Z = "abcdefghij", "klmnopqrst", "uvwxyzABCD", "QRSTUVWXYZ"
NAMED: dict[str, Any] = {"function": "f", "file": "/a.py"}
Told = tuple[str, int, dict[str, Any]]


def like(shared: int, words: str = A) -> str:
    """Another graph that shares so many of ten words."""
    return words[:shared] + "0123456789"[shared:]


def graph(words: str | None, run: int, **told: Any) -> Told:
    return words or "", run, told


class Made:
    """Lookups in time order, of which each ends before the next begins, unless it is said how long it took."""

    def __init__(
        self, *graphs: Told, runs: Sequence[RunRow] = (), entries: Sequence[str] = (), only: int | None = None
    ) -> None:
        self.store = HashDetails()
        self.rows = [self._row(at, *one) for at, one in enumerate(graphs)]
        stored = [self._entry(number, words) for number, words in enumerate(entries)]
        history = history_of(self.rows, self.store, stored, runs)
        self.replaced = ReplacedGraphs(history, StoredCandidates(history), only)

    def _row(self, at: int, words: str, run: int, told: dict[str, Any]) -> LookupRow:
        fields = {"gm": " ".join(f"{word}_op" for word in words), "example_inputs[0]": "T"}
        fields |= told.pop("details", {})
        details = set_of(self.store, {name: text for name, text in fields.items() if text})
        made = replace(
            TEMPLATE, lookup=at, run=run, time=10 * at + 10, time_taken_ns=1, cache_key=f"f{at}",
            detail_set=details, **NAMED,
        )  # fmt: skip
        return replace(made, **told)

    def _entry(self, number: int, words: str) -> EntryRow:
        fields = {"gm": " ".join(f"{word}_op" for word in words)} | INFERENCE
        code = set_of(self.store, fields)
        return entry_row(number, "fxgraph", f"e{number}", "/cache", "p", 1 + 2 * number, detail_set=code)  # fmt: skip

    @property
    def of_last(self) -> int | None:
        return self.replaced.by(len(self.rows) - 1)


INFERENCE = {"fx_kwargs[is_backward]": "False", "fx_kwargs[is_inference]": "True"}
UNNAMED: dict[str, Any] = {"function": None, "file": None}
FORWARD, BACKWARD = {"direction": "forward"}, {"direction": "backward"}
AOT = {"cache": "aotautograd"}

CASES: dict[str, tuple[list[Told], int | None]] = {
    "the graph in its place": ([graph(A, 0), graph(like(5), 1)], 0),
    "nothing before": ([graph(A, 0)], None),
    "another graph": ([graph(A, 0), graph(Z, 1)], None),
    "an equal graph has not changed": ([graph(A, 0), graph(A, 1)], None),
    "of its own process": ([graph(A, 0), graph(like(5), 0)], None),
    "a lookup without a graph": ([graph(A, 0), graph("", 1)], None),
    "instead of one without a graph": ([graph("", 0), graph(A, 0), graph("", 1), graph(like(5), 1)], 1),
    "in another cache": ([graph(A, 0, **AOT), graph(like(5), 1)], None),
    "of another function": ([graph(A, 0), graph(like(9), 1, function="g", file="/b.py")], None),
    # Each stands where another one stood.
    "the second of two": ([graph(A, 0), graph(B, 0), graph(A, 1), graph(like(5, B), 1)], 1),
    "between two that are there": ([graph(A, 0), graph(B, 0), graph(A, 1), graph(like(5), 1), graph(B, 1)], None),
    "looked up twice in a row": (
        [graph(A, 0, cache_key="f1"), graph(A, 0, cache_key="f1"), graph(B, 0), graph(like(5), 1)], 0),
    "looked up again after another": ([graph(A, 0), graph(B, 0), graph(A, 0), graph(like(6), 1)], 0),
    # A graph of a function changes when it is trained.
    "trained now": ([graph(A, 0), graph(like(5), 1, **FORWARD)], 0),
    "not trained now": ([graph(A, 0, **FORWARD), graph(like(5), 1)], 0),
    "of its own direction first": ([graph(A, 0, **FORWARD), graph(A, 1), graph(like(5), 2, **FORWARD)], 0),
    "a backward graph of a forward one": ([graph(A, 0, **FORWARD), graph(like(5), 1, **BACKWARD)], None),
    "a backward graph": ([graph(A, 0, **BACKWARD), graph(like(5), 1, **BACKWARD)], 0),
    # Of several runs.
    "the latest of as many fields": ([graph(A, 0), graph(like(5) + "", 1), graph(like(4), 2)], 1),
    "the most alike": ([graph(A, 0), graph(like(3), 1), graph(like(9), 2)], 0),
    "the nearest of about as alike": (
        [graph(like(8), 0), graph(A, 1, details={"x": "2"}), graph(like(9) + "", 2)], 0),
    "the more alike by more than a little": (
        [graph(like(4), 0), graph(A, 1, details={"x": "2"}), graph(like(9) + "", 2)], 1),
    "one without hash details between": ([graph(A, 0), graph(B, 1, detail_set=None), graph(like(5), 2)], 0),
    # A compile that is still running has stored nothing.
    "still being compiled": ([graph(A, 0, time_taken_ns=99), graph(like(5), 1)], None),
    "the other is still being compiled": ([graph(A, 0), graph(A, 1, time_taken_ns=99), graph(like(5), 2)], 0),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_graph_that_it_replaced(case: str) -> None:
    graphs, wanted = CASES[case]
    assert Made(*graphs).of_last == wanted


def test_each_of_a_run_has_replaced_another() -> None:
    made = Made(graph(A, 0), graph(B, 0), graph(C, 0), graph(like(5), 1), graph(B, 1), graph(like(5, C), 1))
    assert [made.replaced.by(at) for at in range(6)] == [None, None, None, 0, None, 2]


@pytest.mark.parametrize(("sizes", "replaced"), [
    # As they come in each epoch: the code was edited, and no size changed.
    (("89", "98"), [1, 0]), (("789", "978"), [2, 0, 1]),
    # The first is new, and what it stands in place of has gone.
    (("78", "98"), [0, 1]), (("789", "97"), [2, 0]), (("789", "896"), [1, 2, 0]),
])  # fmt: skip
def test_one_function_compiled_in_another_order_of_sizes(sizes: tuple[str, str], replaced: list[int]) -> None:
    before, after = (
        [graph(f"{words}{size}", run, details={"example_inputs[0]": size}) for size in side]
        for run, (words, side) in enumerate(zip((A[:9], A[:8] + "0"), sizes, strict=True))
    )
    made = Made(*before, *after)
    assert [made.replaced.by(len(before) + at) for at in range(len(after))] == replaced


def test_what_comes_later_in_a_run_that_goes_on_was_no_earlier_form() -> None:
    assert Made(graph(B, 0), graph(like(5), 1), graph(A, 0)).replaced.by(1) is None
    assert Made(graph(A, 0), graph(like(5), 1), graph(like(5), 0)).replaced.by(1) == 0
    assert Made(graph(A, 0), graph(like(5), 1), graph(B, 0), graph(like(5), 1)).replaced.by(1) == 0


def runs(*ranks: int | None) -> list[RunRow]:
    return [run_row(number, rank) for number, rank in enumerate(ranks)]


@pytest.mark.parametrize(
    ("ranks", "wanted"),
    [((None, None, None), 1), ((0, 1, 0), 0), ((0, 1, 1), 1), ((0, 1, 2), 1), ((0, 1, None), 1), ((None, 0, None), 0)],
)  # fmt: skip
def test_of_runs_about_as_alike_that_of_the_same_rank(ranks: tuple[int | None, ...], wanted: int) -> None:
    assert Made(graph(A, 0), graph(like(9), 1), graph(like(8), 2), runs=runs(*ranks)).of_last == wanted


@pytest.mark.parametrize(("only", "wanted"), [(None, 1), (0, 0), (1, 1), (2, None), (7, None)])
def test_a_chosen_run_is_the_only_one(only: int | None, wanted: int) -> None:
    assert Made(graph(A, 0), graph(A, 1), graph(like(5), 2), only=only).of_last == wanted


@pytest.mark.parametrize(("between", "wanted"), [(15, 0), (16, None)])
def test_sixteen_runs_are_looked_at(between: int, wanted: int) -> None:
    others = [graph(Z, 1 + number) for number in range(between)]
    assert Made(graph(A, 0), *others, graph(like(5), 99)).of_last == wanted


def program(run: int, command: str | None) -> RunRow:
    return run_row(run, command=command)


@pytest.mark.parametrize(("commands", "wanted"), [
    (("python train.py --lr 1", "python train.py --lr 2"), 0),
    (("python train.py", "python test.py"), None),
    ((None, None), None),
    (("python train.py", None), None),
    ((None, "python train.py"), None),
])  # fmt: skip
def test_where_no_function_is_named_runs_of_one_command_are_compared(
    commands: tuple[str | None, str | None], wanted: int
) -> None:
    about = [program(run, command) for run, command in enumerate(commands)]
    assert Made(graph(A, 0, **UNNAMED), graph(like(6), 1, **UNNAMED), runs=about).of_last == wanted
    assert Made(graph(A, 0, **UNNAMED), graph(like(5), 1, **UNNAMED), runs=about).of_last is None


@pytest.mark.parametrize(("shared", "wanted"), [
    ([graph(B, 0, **AOT), graph(B, 1, **AOT)], 0),
    ([graph(B, 0, **AOT), graph(C, 1, **AOT)], None),
    # In the FX graph cache it stands for itself alone: many programs make small graphs.
    ([graph(B, 0, **BACKWARD), graph(B, 1, **BACKWARD)], None),
    ([graph(B, 0, **AOT), graph(B, 7, **AOT)], None),
    ([graph("", 0, **AOT), graph("", 1, **AOT)], None),
])  # fmt: skip
def test_without_functions_runs_that_share_a_program_are_compared(shared: list[Told], wanted: int) -> None:
    before = graph(A, 0, **UNNAMED)
    assert Made(before, *shared, graph(like(6), 1, **UNNAMED)).of_last == wanted


@pytest.mark.parametrize(("other", "wanted"), [(B, 1), (C, None)])
def test_without_functions_runs_with_an_equal_graph_before_are_compared(other: str, wanted: int) -> None:
    graphs = [(B, 0), (A, 0), (other, 1), (like(6), 1)]
    assert Made(*(graph(words, run, **UNNAMED) for words, run in graphs)).of_last == wanted


@pytest.mark.parametrize(("before", "after", "wanted"), [
    ([B, A, C], [B, like(3), C], 1),
    # At an end, beside another that changed, or hardly alike, it may be anything.
    ([B, A], [B, like(3)], None),
    ([A, C], [like(3), C], None),
    ([B, A, Z, C], [B, like(3), C], None),
    ([B, A, C], [B, like(1), C], None),
])  # fmt: skip
def test_without_functions_the_order_of_compiles_shows_a_graph_that_changed(
    before: list[str], after: list[str], wanted: int | None
) -> None:
    graphs = [graph(words, run, **UNNAMED) for run, side in enumerate((before, after)) for words in side]
    at = after.index(next(words for words in after if words not in before))
    assert Made(*graphs).replaced.by(len(before) + at) == wanted


@pytest.mark.parametrize(("above", "wanted"), [
    ((0, 2), 1),
    # Of another program, of none that is recorded, and under a lookup that is none of AOTAutograd.
    ((0, 3), None), ((None, None), None), ((4, 5), None), ((6, 7), None), ((77, 77), None),
])  # fmt: skip
def test_graphs_of_one_program_are_forms_of_one(above: tuple[int | None, int | None], wanted: int) -> None:
    graphs = [
        graph(B, 0, **AOT),
        graph(A, 0, aot_lookup=above[0], direction="forward"),
        graph(B, 1, **AOT),
        graph(C, 1, **AOT),
        graph("", 0, **AOT),
        graph("", 1, **AOT),
        graph(C, 0, **BACKWARD),
        graph(C, 1, **BACKWARD),
        graph(Z, 1, aot_lookup=above[1], direction="forward"),
    ]
    assert Made(*graphs).of_last == wanted


# What may be another form, where nothing shows it.


def may_be(*graphs: Told, entries: Sequence[str] = ()) -> str | None:
    found = Made(*graphs, entries=entries).replaced.may_be(len(graphs) - 1)
    if found is None:
        return None
    return f"lookup {found}" if isinstance(found, int) else f"entry {found.entry}"


LIKE = graph(like(6), 1, **UNNAMED)
MAY_BE: dict[str, tuple[list[Told], list[str], str | None]] = {
    "nothing before": ([LIKE], [], None),
    "unnamed and alike": ([graph(A, 0, **UNNAMED), LIKE], [], "lookup 0"),
    "unnamed and not alike": ([graph(A, 0, **UNNAMED), graph(like(1), 1, **UNNAMED)], [], None),
    "in another compile it must be more alike": (
        [graph(A, 0, **UNNAMED), graph(like(5), 1, compile_id="5/0", **UNNAMED)], [], None),
    "one of them is named": ([graph(A, 0), LIKE], [], "lookup 0"),
    "the new one is named": ([graph(A, 0, **UNNAMED), graph(like(6), 1)], [], None),
    "without a graph": ([graph(A, 0, **UNNAMED), graph("", 1, **UNNAMED)], [A], None),
    "one without hash details": ([graph(A, 0, **UNNAMED, detail_set=None), LIKE], [], None),
    "trained now": ([graph(A, 0, **UNNAMED), graph(like(6), 1, **UNNAMED, **FORWARD)], [], "lookup 0"),
    "a backward graph": ([graph(A, 0, **UNNAMED), graph(like(6), 1, **UNNAMED, **BACKWARD)], [], None),
    "of its own process": ([graph(A, 1, **UNNAMED), LIKE], [], None),
    "the latest run": ([graph(A, 0, **UNNAMED), graph(A, 2, **UNNAMED), LIKE], [], "lookup 1"),
    "the most alike of a run": ([graph(A, 0, **UNNAMED), graph(like(9), 0, **UNNAMED), LIKE], [], "lookup 1"),
    "of its own direction before another": (
        [graph(A, 5, **UNNAMED), graph(A, 0, **UNNAMED, **FORWARD), graph(like(6), 9, **UNNAMED, **FORWARD)], [],
        "lookup 1"),
    # An entry must be three quarters alike; of equals the last.
    "an entry": ([graph(A, 1)], [like(8)], "entry 0"),
    "an entry that is not alike enough": ([graph(A, 1)], [like(7)], None),
    "the most alike of entries": ([graph(A, 1)], [like(8), like(9), like(8) + ""], "entry 1"),
    "the last of entries as alike": ([graph(A, 1)], [like(8), like(8)[:9] + "x"], "entry 1"),
    "an entry of a named graph, beside a run": ([graph(Z, 0), graph(A, 1)], [like(8)], None),
    "a run beside an entry": ([graph(A, 0, **UNNAMED), LIKE], [like(6)[:8] + "xy"], "lookup 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", MAY_BE)
def test_what_may_be_another_form(case: str) -> None:
    graphs, entries, wanted = MAY_BE[case]
    assert may_be(*graphs, entries=entries) == wanted


@pytest.mark.parametrize(("between", "wanted"), [(63, "lookup 0"), (64, None)])
def test_the_last_64_graphs_of_a_run_are_tried(between: int, wanted: str | None) -> None:
    others = [graph(Z, 0, **UNNAMED, compile_id=f"{n}/0") for n in range(1, between + 1)]
    assert may_be(graph(A, 0, **UNNAMED), *others, graph(like(6), 1, **UNNAMED, compile_id="999/0")) == wanted


@pytest.mark.parametrize("told", [{}, FORWARD])
@pytest.mark.parametrize(("between", "wanted"), [(15, "lookup 0"), (16, None)])
def test_sixteen_runs_are_tried(between: int, wanted: str | None, told: dict[str, str]) -> None:
    others = [graph(Z, 1 + number, **UNNAMED) for number in range(between)]
    assert may_be(graph(A, 0, **UNNAMED), *others, graph(like(6), 99, **UNNAMED, **told)) == wanted
