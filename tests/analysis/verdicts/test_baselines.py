"""Which lookup or entry each miss is compared with: rows in, places out, worked out by hand."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from cachescope.analysis.verdicts.baselines import Baselines, Choice
from cachescope.details import HashDetails
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.keys.key_fields import is_input
from tests.analysis.plain_rows import TEMPLATE, entry_row, history_of, run_row
from tests.made import set_of

WORDS = {"A": "one two three four five", "B": "six seven eight nine ten", "a": "one two three four other"}
TENSOR = "TensorMetadata(dtype={}, shape=torch.Size([{}]), stride=(1,), device=device(type='cpu'))"
# A letter for each field: the graph, two options, and an input with a letter for its dtype and one for its size.
Told = tuple[str, dict[str, Any]]


def look(letters: str, **told: Any) -> Told:
    return letters, told


class Made:
    """Lookups 10 s apart, each of a run of its own if none is named; and entries that were there before them all."""

    def __init__(
        self,
        *made: Told,
        entries: Sequence[Told] = (),
        choice: Choice | None = None,
        ranks: dict[int, int] | None = None,
    ) -> None:
        self.store = HashDetails()
        self.rows = [self._row(at, *one) for at, one in enumerate(made)]
        self.entries = [self._entry(number, *one) for number, one in enumerate(entries)]
        runs = [run_row(run, rank) for run, rank in (ranks or {}).items()]
        self.history = history_of(self.rows, self.store, self.entries, runs)
        self.baselines = Baselines(self.history, choice or Choice())

    def set_of(self, letters: str, told: dict[str, Any]) -> int:
        graph, x, y, dtype, size = letters.ljust(5, "1")
        fields = {"gm": WORDS[graph], "x": x, "y": y, "example_inputs[0]": TENSOR.format(dtype, size)}
        fields |= {"fx_kwargs[is_backward]": "False", "fx_kwargs[is_inference]": "True"}
        return set_of(self.store, fields | told.pop("fields", {}))

    def _row(self, at: int, letters: str, told: dict[str, Any]) -> LookupRow:
        details = self.set_of(letters, told)
        made = replace(
            TEMPLATE, lookup=100 + at, run=at, time=10 * at + 10, time_taken_ns=1, cache_key=f"f{at}", detail_set=details,
            compile_id="0/0",
        )  # fmt: skip
        return replace(made, **told)

    def _entry(self, number: int, letters: str, told: dict[str, Any]) -> EntryRow:
        code = self.set_of(letters, told)
        made = entry_row(number, "fxgraph", f"e{number}", "/cache", "p", 1 + 2 * number, detail_set=code)  # fmt: skip
        return replace(made, **told)

    def of(self, at: int) -> str | None:
        found = self.baselines.find(at)
        if found is None:
            return None
        return f"lookup {found}" if isinstance(found, int) else f"entry {found.entry}"

    @property
    def of_last(self) -> str | None:
        return self.of(len(self.rows) - 1)


NEAR, FAR = look("A2"), look("A22")

CASES: dict[str, tuple[list[Told], list[Told], str | None]] = {
    "nothing": ([look("A")], [], None),
    "an equal graph": ([NEAR, look("A")], [], "lookup 0"),
    "another graph": ([look("B"), look("A")], [], None),
    "a hit": ([look("A2", outcome="hit"), look("A")], [], "lookup 0"),
    "of another cache": ([look("A2", cache="aotautograd"), look("A")], [], None),
    "of another direction": ([look("A2", direction="forward"), look("A")], [], None),
    "without hash details": ([look("A2", detail_set=None), look("A")], [], None),
    # The same place in the run before goes before a nearer key elsewhere.
    "the run before": ([NEAR, FAR, look("A")], [], "lookup 1"),
    "the greatest number is the run before": ([look("A2", run=7), look("A22", run=3), look("A", run=8)], [], "lookup 0"),
    "another compile id in the run before": ([NEAR, look("A22", compile_id="1/0"), look("A")], [], "lookup 0"),
    "no compile id": ([look("A2", compile_id=None), look("A22", compile_id=None), look("A", compile_id=None)], [], "lookup 0"),
    "twice in the place of the run before": ([look("A2", run=0), look("A22", run=0), look("A", run=1)], [], "lookup 0"),
    "the latest of equals there": ([look("A2", run=0), look("A12", run=0), look("A", run=1)], [], "lookup 1"),
    "once in the place before, once since": ([look("A22", run=0), look("A", run=1), look("A2", run=0)], [], "lookup 1"),
    "its own run": ([look("A2", run=0), look("A", run=0)], [], "lookup 0"),
    # Entries of the graph, where no place is one's own.
    "an entry": ([look("A")], [NEAR], "entry 0"),
    "an entry of another graph": ([look("A")], [look("B")], None),
    "an entry of another cache": ([look("A")], [look("A2", cache="aotautograd")], None),
    "an entry that was made since": ([look("A")], [look("A2", modified_time=11)], None),
    "an entry of which no time is known": ([look("A")], [look("A2", modified_time=None)], None),
    "the nearest entry": ([look("A")], [FAR, NEAR, look("A22")], "entry 1"),
    "an entry nearer than the place before": ([FAR, look("A")], [NEAR], "lookup 0"),
    "an entry nearer than another place": ([look("A22", compile_id="1/0"), look("A")], [NEAR], "entry 0"),
    "an entry as near as another place": ([look("A12", compile_id="1/0"), look("A")], [NEAR], "lookup 0"),
    # A call of the same graph on other inputs, in one process: neither has changed.
    "another call": ([look("A1121", run=0, compile_id="1/0"), look("A", run=0)], [], None),
    "another call that differs in more": ([look("A2121", run=0, compile_id="1/0"), look("A", run=0)], [], "lookup 0"),
    "another call on equal inputs": ([look("A", run=0, compile_id="1/0"), look("A", run=0)], [], "lookup 0"),
    "another call, an earlier process": ([look("A1121", compile_id="1/0"), look("A")], [], "lookup 0"),
    "another call, of no frame": ([look("A1121", run=0, compile_id=None), look("A", run=0)], [], "lookup 0"),
    "another call, and an entry": ([look("A1121", run=0, compile_id="1/0"), look("A", run=0)], [FAR], "entry 0"),
    "another call, and one before": ([look("A22", compile_id="3/0"), look("A1121", run=1, compile_id="1/0"), look("A", run=1)], [], "lookup 0"),
    # A new form of the graph.
    "another form": ([look("a", function="f", file="/a.py"), look("A", function="f", file="/a.py")], [], "lookup 0"),
    "compiled again": ([look("B", run=0), look("A", run=0, compile_id="0/1")], [], "lookup 0"),
    "compiled before": ([look("B", run=0, compile_id="0/1"), look("A", run=0)], [], None),
    "another form before compiled again": (
        [look("a", function="f", file="/a.py", compile_id="0/1"), look("B", run=7),
         look("A", run=7, function="f", file="/a.py", compile_id="0/1")], [], "lookup 0"),
    # What is still being compiled cannot be used.
    "still being compiled": ([look("A2", time_taken_ns=11), look("A")], [], None),
    "it has ended at that moment": ([look("A2", time_taken_ns=10), look("A")], [], "lookup 0"),
    "the run before is still compiling": ([NEAR, look("A22", time_taken_ns=99), look("A")], [], "lookup 0"),
    "all in the place before are": ([look("A2", time_taken_ns=99, run=0), look("A12", time_taken_ns=99, run=0), look("A")], [], None),
    "the nearest of them is": ([look("A2", run=0, time_taken_ns=99), look("A22", run=0), look("A")], [], "lookup 1"),
    "still being compiled, and an entry": ([look("A2", time_taken_ns=99), look("A")], [FAR], "entry 0"),
    "of its own process it is done": ([look("A2", time_taken_ns=99, run=0), look("A", run=0)], [], "lookup 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_a_lookup_is_compared_with(case: str) -> None:
    made, entries, wanted = CASES[case]
    assert Made(*made, entries=entries).of_last == wanted


@pytest.mark.parametrize(("ranks", "wanted"), [
    ({}, "lookup 1"), ({0: 1, 1: 0, 2: 1}, "lookup 0"), ({0: 0, 1: 1, 2: 1}, "lookup 1"), ({0: 0, 1: 1, 2: 2}, "lookup 1"),
    ({1: 0}, "lookup 0"), ({2: 0}, "lookup 1"),
])  # fmt: skip
def test_the_run_before_is_one_of_the_same_rank(ranks: dict[int, int], wanted: str) -> None:
    assert Made(NEAR, FAR, look("A"), ranks=ranks).of_last == wanted


@pytest.mark.parametrize(("before", "now", "rank", "wanted"), [
    ("/rank0", "/rank1", 1, "lookup 0"),
    ("/rank0", "/rank2", 1, None),
    # Where one of them is not known.
    ("/rank0", "/rank2", None, "lookup 0"),
    ("a", "b", 1, None),
])  # fmt: skip
@pytest.mark.parametrize("compile_id", ["0/0", "5/0"])
def test_a_key_that_is_still_compiled_counts_if_it_differs_by_its_rank(
    before: str, now: str, rank: int | None, wanted: str | None, compile_id: str
) -> None:
    first = look("A", time_taken_ns=99, fields={"path": before}, compile_id=compile_id)
    made = Made(first, look("A", fields={"path": now}), ranks={0: 0} if rank is None else {0: 0, 1: rank})
    assert made.of_last == wanted
    row, other = made.rows[1], made.rows[0]
    assert made.history.was_running(made.history.index_of[other.lookup], made.history.index_of[row.lookup])


RUNS = [look("A2", run=0), look("A22", run=1), look("A12", run=1, compile_id="5/0"), look("a", run=2), look("A", run=3)]  # fmt: skip


@pytest.mark.parametrize(("choice", "entries", "wanted"), [
    (Choice("run", run=0), [], "lookup 0"),
    # First the same place of that run, and of another graph one that it is another form of.
    (Choice("run", run=1), [], "lookup 1"),
    (Choice("run", run=2), [], None),
    (Choice("run", run=3), [], None),
    (Choice("run", run=9), [], None),
    (Choice("run", run=2), [NEAR], None),
    (Choice("key", cache_key="f1"), [], "lookup 1"),
    (Choice("key", cache_key="f4"), [], None),
    (Choice("key", cache_key="e1"), [FAR, FAR], "entry 1"),
    (Choice("key", cache_key="e0"), [FAR, FAR], "entry 0"),
    (Choice("key", cache_key="f1"), [FAR], "lookup 1"),
    (Choice("key", cache_key="f1"), [look("A", cache_key="f1")], "entry 0"),
    (Choice("key", cache_key="f1"), [look("A", cache_key="f1"), look("A2", cache_key="f1")], "entry 1"),
    (Choice("key", cache_key="f1"), [look("A", cache_key="f1", cache="aotautograd")], "lookup 1"),
    (Choice("key", cache_key=None), [], None),
    (Choice("nearest"), [], "lookup 3"),
    (Choice("nearest"), [look("A")], "entry 0"),
    (Choice("nearest"), [FAR], "lookup 3"),
    (Choice("nearest"), [look("A", cache="aotautograd")], "lookup 3"),
])  # fmt: skip
def test_what_the_user_asked_to_compare_with(choice: Choice, entries: list[Told], wanted: str | None) -> None:
    assert Made(*RUNS, entries=entries, choice=choice).of_last == wanted


def test_for_equal_inputs_only_where_the_user_asked_for_nothing() -> None:
    chosen = [None, Choice("nearest"), Choice("run", run=0), Choice("key", cache_key="f0")]
    found = [Made(NEAR, look("A"), choice=choice).baselines.for_equal_inputs(1) for choice in chosen]
    assert found == [0, None, None, None]


def test_a_key_is_its_latest_lookup_of_one_cache_and_direction() -> None:
    asked = Choice("key", cache_key="k")
    made = [look("B", cache_key="k"), look("A", cache_key="k"), look("A", cache_key="k", direction="forward"),
            look("A", cache_key="k", cache="aotautograd"), look("A", cache_key="l")]  # fmt: skip
    assert Made(*made, choice=asked).of_last == "lookup 1"
    assert Made(*made[2:], choice=asked).of_last is None


def test_of_a_run_that_was_asked_for_another_form_is_found() -> None:
    named = {"function": "f", "file": "/a.py"}
    made = [look("a", **named), look("a", **named), look("A", **named)]
    assert Made(*made, choice=Choice("run", run=0)).of_last == "lookup 0"
    # But no earlier compile of its own process.
    again = look("B", run=0), look("A", run=0, compile_id="0/1")
    assert Made(*again, choice=Choice("run", run=5)).of_last is None


# A nearer key than that of the run before.


def nearer(*made: Told, entries: Sequence[Told] = (), choice: Choice | None = None) -> str | None:
    found = Made(*made, entries=entries, choice=choice)
    at = len(found.rows) - 1
    compared = found.baselines.find(at)
    nearer = None if compared is None else found.baselines.nearer(at, compared)
    return None if nearer is None else f"lookup {nearer}"


NEARER: dict[str, tuple[list[Told], list[Told], str | None]] = {
    "an earlier run": ([NEAR, FAR, look("A")], [], "lookup 0"),
    "as near": ([NEAR, look("A12"), look("A")], [], None),
    "equal": ([look("A"), FAR, look("A")], [], None),
    "none before": ([FAR, look("A")], [], None),
    "of another graph": ([look("B"), FAR, look("A")], [], None),
    "of another direction": ([look("A2", direction="forward"), FAR, look("A")], [], None),
    "still being compiled": ([look("A2", time_taken_ns=999), FAR, look("A")], [], None),
    "another call of its run": ([FAR, look("A1121", run=2, compile_id="1/0"), look("A", run=2)], [], None),
    "another call of another run": ([look("A1121", compile_id="1/0"), FAR, look("A")], [], "lookup 0"),
    "of its run in the same frame": ([FAR, look("A2", run=2, compile_id="0/1"), look("A", run=2)], [], "lookup 1"),
    "of its run, of no frame": ([FAR, look("A2", run=2, compile_id=None), look("A", run=2)], [], "lookup 1"),
    "of its run in another frame": ([FAR, look("A2", run=2, compile_id="1/0"), look("A", run=2)], [], "lookup 1"),
    "of its run, by another field": ([FAR, look("A1121", run=2, compile_id="0/1"), look("A", run=2)], [], None),
    "than an entry": ([look("A1121", compile_id="5/0", time_taken_ns=999), look("A")], [FAR], None),
    "31 between": ([NEAR, *[FAR] * 31, look("A")], [], "lookup 0"),
    "32 between": ([NEAR, *[FAR] * 32, look("A")], [], None),
}  # fmt: skip


@pytest.mark.parametrize("case", NEARER)
def test_a_nearer_key(case: str) -> None:
    made, entries, wanted = NEARER[case]
    assert nearer(*made, entries=entries) == wanted


@pytest.mark.parametrize("choice", [Choice("run", run=1), Choice("nearest"), Choice("key", cache_key="f1")])
def test_what_the_user_chose_is_compared_with_whatever_is_nearer(choice: Choice) -> None:
    assert nearer(NEAR, FAR, look("A"), choice=choice) is None


def in_parts(*made: Told, at: int = -1, found: int = -2, choice: Choice | None = None) -> int | None:
    """The number of the lookup whose inputs differ in fewer parts than those of one that it is compared with."""
    scene = Made(*made, choice=choice)
    at, found = at % len(made), found % len(made)
    row, before = scene.rows[at], scene.rows[found]
    assert row.detail_set is not None and before.detail_set is not None
    changed = scene.store.changed_fields(before.detail_set, row.detail_set)
    if not all(map(is_input, changed)):
        return None
    return scene.baselines.nearer_in_parts(at, before)


DTYPE, SIZE, BOTH = look("A112"), look("A1112"), look("A1122")


def test_a_key_whose_inputs_differ_in_fewer_parts() -> None:
    assert in_parts(DTYPE, BOTH, look("A")) == 0
    assert in_parts(SIZE, BOTH, look("A")) == 0
    assert in_parts(DTYPE, SIZE, BOTH, look("A")) == 1
    # Not where it has one part alone, or another, or a field besides.
    assert in_parts(SIZE, DTYPE, look("A")) is None
    assert in_parts(look("A"), BOTH, look("A")) is None
    assert in_parts(look("A2112"), BOTH, look("A")) is None
    assert in_parts(DTYPE, look("A2122"), look("A")) is None
    # Nor what the user chose, another graph, or what is still being compiled.
    assert in_parts(DTYPE, BOTH, look("A"), choice=Choice("run", run=1)) is None
    assert in_parts(look("B112"), BOTH, look("A")) is None
    assert in_parts(DTYPE, look("B1122"), look("A")) is None
    assert in_parts(look("A112", time_taken_ns=99), BOTH, look("A")) is None
    assert in_parts(DTYPE, look("A1122", direction="forward"), look("A")) is None
    assert in_parts(look("A112", run=2, compile_id="1/0"), BOTH, look("A", run=2)) is None
    assert in_parts(look("A112", run=2), BOTH, look("A", run=2)) == 0


@pytest.mark.parametrize(("between", "wanted"), [(30, 0), (31, 0 - 1)])
def test_of_the_last_32_lookups(between: int, wanted: int) -> None:
    found = in_parts(DTYPE, *[BOTH] * between, BOTH, look("A"))
    assert (-1 if found is None else found) == wanted


@pytest.mark.parametrize(("took", "wanted"), [(99, 0), (1, None)])
def test_a_lookup_beside_a_compile_that_went_on(took: int, wanted: int | None) -> None:
    made = Made(look("A2", time_taken_ns=took), look("A", time_taken_ns=99))
    assert made.baselines.concurrent_lookup(1) == wanted


# What is said of the two.


def test_how_two_are_alike() -> None:
    named = {"function": "f", "file": "/a.py"}
    made = Made(
        look("a", **named), look("A", **named), look("A", function="g", file="/a.py"), look("A"),
        entries=[look("a")],
    )  # fmt: skip
    one, other, renamed, nameless = made.rows
    text = "80 % of their code is alike"
    assert made.baselines.are_alike_by(one, other) == f"both are of the function f of one file, and {text}"
    assert made.baselines.are_alike_by(one, renamed) == text
    assert made.baselines.are_alike_by(one, replace(other, file="/b.py")) == text
    assert made.baselines.are_alike_by(*(replace(row, file="<string>") for row in (one, other))) == text
    assert made.baselines.are_alike_by(replace(one, function=None, file=None), nameless) == text
    assert made.baselines.are_alike_by(made.entries[0], other) == text


def test_the_graphs_of_what_they_are_compared_with() -> None:
    made = Made(look("A2"), look("A"), look("A", direction="backward", compile_id="3/0"))
    assert [made.baselines.find(at) for at in (1, 2)] == [0, None]
    stored = Made(look("A"), entries=[look("A22")])
    assert stored.baselines.find(0) == stored.entries[0]
    other = Made(look("a", function="f", file="/a"), look("A", function="f", file="/a"))
    assert other.baselines.find(1) == 0
