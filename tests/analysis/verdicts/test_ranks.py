"""The ranks that are not like the most of them, and the field; and fields that differ by the rank alone; made by hand."""

from collections import Counter, defaultdict
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.analysis.verdicts.ranks import all_hold_a_rank
from cachescope.answers.starts import differing_ranks
from cachescope.columns import records
from cachescope.details import HashDetails
from cachescope.report.why_missed import rank_lines
from cachescope.scope import Scope
from tests import made
from tests.made import set_of


def scope_of(*details: dict[str, str] | None, outcomes: str = "") -> Scope:
    """Of ranks 0, 1, … that looked up one graph each; made by hand."""
    runs = []
    for rank, fields in enumerate(details):
        outcome = "hit" if outcomes[rank : rank + 1] == "h" else "full_miss"
        runs.append(made.run(made.fx(f"f{rank}", outcome, fields, at=rank), rank=rank))
    return made.scope_of(*runs)


def ranks(*details: dict[str, str] | None, outcomes: str = "") -> list[dict[str, object]]:
    return records(scope_of(*details, outcomes=outcomes).rank_differences)


ONE, TWO, SIX = {"gm": "g", "x": "1"}, {"gm": "g", "x": "2"}, {"gm": "g", "x": "6"}


@pytest.mark.parametrize(("details", "wanted"), [
    ((ONE, ONE), []),
    ((ONE, ONE, TWO), [("x", (2,), True, 3, 2, "1", "2")]),
    ((TWO, ONE, ONE), [("x", (0,), True, 3, 2, "1", "2")]),
    ((ONE, TWO), [("x", (0, 1), False, 2, 2, None, "1")]),
    ((ONE, TWO, SIX), [("x", (0, 1, 2), False, 3, 3, None, "1")]),
    ((ONE, ONE, {"gm": "g"}), [("x", (2,), True, 3, 2, "1", None)]),
    ((ONE, ONE, None, TWO), [("x", (3,), True, 3, 2, "1", "2")]),
    # Of another graph only the graph is told, and its fields are compared with those of its own.
    ((ONE, ONE, {"gm": "h", "x": "9"}), [("gm", (2,), True, 3, 2, "g", "h")]),
    ((ONE, ONE, {"gm": "h", "x": "9"}, {"gm": "h", "x": "8"}, ONE),
     [("gm", (2, 3), True, 5, 2, "g", "h"), ("x", (2, 3), False, 2, 2, None, "9")]),
])  # fmt: skip
def test_what_the_most_ranks_have_is_what_others_differ_from(
    details: tuple[dict[str, str] | None, ...], wanted: list[tuple[object, ...]]
) -> None:
    names = ("field", "ranks", "has_majority", "ranks_compared", "values", "majority_value", "other_value")
    assert [tuple(row[name] for name in names) for row in ranks(*details)] == wanted


def test_ranks_are_compared_with_those_that_started_with_them() -> None:
    """Two ranks, then three, of which one has another value; the first two find what the first job stored."""
    jobs = (("0 full_miss", "1 full_miss"), ("0 hit", "1 full_miss", "2 hit"))
    runs = []
    for job, members in enumerate(jobs):
        for rank, outcome in map(str.split, members):
            fields = TWO if (job, rank) == (1, "1") else ONE
            looked_up = made.fx(f"f{fields['x']}", outcome, fields, at=100 * job)
            runs.append(made.run(looked_up, rank=int(rank), clock_first_us=0, clock_last_us=9_000_000))
    (told,) = records(made.scope_of(*runs).rank_differences)
    assert (told["field"], told["ranks"], told["has_majority"], told["graphs"]) == ("x", (1,), True, 1)


@pytest.mark.parametrize(("details", "said"), [
    ((ONE, ONE, TWO, ONE, ONE), "1 rank of 5 (2): 2, the others 1"),
    ((ONE, TWO, SIX), "each of 3 ranks has its own: 1 in rank 0"),
    ((ONE, ONE, {"gm": "g"}), "1 rank of 3 (2): no such field, the others 1"),
    # Two fields that share a short name have their whole ones.
    (({"gm": "g", "inductor_config[a]": "1", "fx_kwargs[a]": "1"},) * 2 + ({"gm": "g", "inductor_config[a]": "2", "fx_kwargs[a]": "2"},),
     "fx_kwargs[a]   1 rank of 3 (2): 2, the others 1"),
    # Of graphs, what differs in them.
    (({"gm": made.CODE},) * 2 + ({"gm": made.CODE.replace("relu", "gelu")},), "1 rank of 3 (2): b = torch.gelu(a), the others b = torch.relu(a)"),
    (({"gm": made.CODE}, {"gm": made.CODE.replace("relu", "gelu")}), "each of 2 ranks has its own"),
    (tuple({"gm": "g", "example_inputs[0]": f"TensorMetadata(dtype=torch.float32, shape=torch.Size([{size}, 4]), stride=(4, 1), device='cpu')"}
           for size in (8, 9)), "each of 2 ranks has its own: float32, shape [8, 4] in rank 0"),
    # Ranks with batches of their own.
    (({"gm": "g", "example_inputs[0]": "1", "x": "1", "example_inputs[2]": "1"}, {"gm": "g", "example_inputs[0]": "2", "x": "2", "example_inputs[2]": "2"}),
     "others example_inputs[0] and 1 more input   each of 2 ranks has its own: 1 in rank 0 x   each"),
])  # fmt: skip
def test_ranks_that_differ_are_told(details: tuple[dict[str, str], ...], said: str) -> None:
    assert said in " ".join(line.text for line in rank_lines(differing_ranks(scope_of(*details)).rows))


def test_a_value_is_that_of_the_rank_beside_it_whichever_was_quicker() -> None:
    runs = [
        made.run(made.fx(f"f{rank}", details=fields, at=at), rank=rank)
        for at, (rank, fields) in enumerate([(1, ONE), (0, TWO)])
    ]
    (line,) = [i.text for i in rank_lines(differing_ranks(made.scope_of(*runs)).rows) if "own" in i.text]
    assert line.endswith("each of 2 ranks has its own: 2 in rank 0")


@pytest.mark.parametrize("apart", [
    # The backward graph of a compile of whose forward graph the other rank has no details; and the FX graph beside an AOTAutograd key.
    (made.fx("f", details={"gm": "g", "fx_kwargs[is_backward]": "False"}, at=0), made.fx("b", details={"gm": "h", "fx_kwargs[is_backward]": "True"}, at=1)),
    (made.aot("a", details={"gm": "g"}, at=0), made.fx("f", details={"gm": "h"}, at=1)),
])  # fmt: skip
def test_what_is_looked_up_at_other_places_is_not_compared(apart: tuple[made.Made, made.Made]) -> None:
    runs = [made.run(one, rank=rank) for rank, one in enumerate(apart)]
    assert made.scope_of(*runs).rank_differences.empty


def test_a_process_without_a_rank_is_not_compared() -> None:
    runs = [
        made.run(made.fx("f", details=fields, at=at), rank=rank)
        for at, (rank, fields) in enumerate([(0, ONE), (1, ONE), (None, TWO)])
    ]
    assert made.scope_of(*runs).rank_differences.empty


def test_misses_are_those_of_the_ranks_that_differ() -> None:
    (row,) = ranks(ONE, ONE, TWO, outcomes="mmm")
    assert (row["graphs"], row["misses"]) == (1, 1)
    (row,) = ranks(ONE, ONE, TWO, outcomes="mmh")
    assert row["misses"] == 0


def test_each_rank_is_compared_the_same_time_at_the_same_place() -> None:
    def looked_up(rank: int, *places: tuple[str, str]) -> made.Run:
        lookups = [
            made.fx(f"f{rank}{at}", details={"gm": "g", "x": value}, at=at, compile_id=compile_id)
            for at, (compile_id, value) in enumerate(places)
        ]
        return made.run(*lookups, rank=rank)

    def found(*runs: made.Run) -> list[tuple[object, ...]]:
        rows = records(made.scope_of(*runs).rank_differences)
        return [(row["field"], row["ranks"], row["graphs"], row["misses"]) for row in rows]

    twice = ("0/0", "1"), ("0/0", "2")
    assert found(looked_up(0, *twice), looked_up(1, *twice)) == []
    assert found(looked_up(0, *twice), looked_up(1, *twice[::-1])) == [("x", (0, 1), 2, 4)]
    assert found(looked_up(0, ("0/0", "1")), looked_up(1, ("1/0", "2"))) == []
    # A process of no known rank is compared with none.
    unknown = made.run(made.fx("f9", details={"gm": "g", "x": "9"}, at=9), rank=None)
    assert found(looked_up(0, ("0/0", "1")), unknown) == []


VALUES = st.sampled_from([None, "1", "2", "3"])
LOOKED_UP = st.tuples(
    st.sampled_from(["0/0", "1/0", None]), st.fixed_dictionaries({"gm": VALUES, "x": VALUES, "y": VALUES})
)


@pytest.mark.slow
@given(
    processes=st.lists(
        st.tuples(st.sampled_from([0, 1, 2, 3, None]), st.lists(LOOKED_UP, max_size=4)), max_size=7
    )
)
def test_a_place_is_compared_by_itself(
    processes: list[tuple[int | None, list[tuple[str | None, dict[str, str | None]]]]],
) -> None:
    """Held against a loop over the places, with Python's own values."""
    places: dict[tuple[object, ...], list[tuple[int, dict[str, str]]]] = defaultdict(list)
    times: Counter[tuple[object, ...]] = Counter()
    runs = []
    for process, (rank, lookups) in enumerate(processes):
        made_lookups = []
        for at, (compile_id, values) in enumerate(lookups):
            details = {name: value for name, value in values.items() if value is not None}
            moment = 10 * process + at
            looked_up = made.fx(f"f{process}{at}", details=details or None, at=moment, compile_id=compile_id)
            made_lookups.append(looked_up)
            if rank is not None and details:
                times[rank, compile_id] += 1
                places[compile_id, times[rank, compile_id]].append((rank, details))
        runs.append(made.run(*made_lookups, rank=rank))
    expected: Counter[tuple[str, tuple[int, ...], bool]] = Counter()
    for place in places.values():
        graphs = {details.get("gm") for _, details in place}
        expected.update(differing(place, "gm"))
        for graph, field in product(graphs, ("x", "y")):
            expected.update(differing([one for one in place if one[1].get("gm") == graph], field))
    found = records(made.scope_of(*runs).rank_differences) if runs else []
    assert {(row["field"], row["ranks"], row["has_majority"]): row["graphs"] for row in found} == expected


def differing(place: list[tuple[int, dict[str, str]]], field: str) -> list[tuple[str, tuple[int, ...], bool]]:
    """The ranks of one place that differ in a field from the most, or all of them."""
    values = [details.get(field) for _, details in place]
    if len(set(values)) < 2:
        return []
    most = [value for value, count in Counter(values).items() if 2 * count > len(values)]
    ranks = sorted(rank for rank, details in place if not most or details.get(field) != most[0])
    return [(field, tuple(ranks), bool(most))]


DEVICE = "TensorMetadata(dtype=torch.float32, shape=torch.Size([8]), device=device(type='{}'))"
CUDA, CPU = "cuda', index={}", "cpu"

# Fields before and after, the ranks of both, and whether they differ by it.
CASES: dict[str, tuple[dict[str, str], dict[str, str], tuple[int, int], bool]] = {
    "nothing differs": ({"a": "/r0"}, {"a": "/r0"}, (0, 1), False),
    "a path": ({"a": "/r0"}, {"a": "/r1"}, (0, 1), True),
    "a path of other ranks": ({"a": "/r0"}, {"a": "/r1"}, (0, 2), False),
    "a path the other way round": ({"a": "/r0"}, {"a": "/r1"}, (1, 0), False),
    "one rank is not known": ({"a": "/r0"}, {"a": "/r7"}, (0, -1), True),
    "the other rank is not known": ({"a": "/r0"}, {"a": "/r7"}, (-1, 0), True),
    "no rank is known": ({"a": "/r5"}, {"a": "/r3"}, (-1, -1), True),
    "of equal ranks": ({"a": "/r0"}, {"a": "/r1"}, (1, 1), False),
    "two fields": ({"a": "/r0", "b": "x2"}, {"a": "/r1", "b": "x3"}, (0, 1), True),
    "two fields, one by a word": ({"a": "/r0", "b": "x"}, {"a": "/r1", "b": "y"}, (0, 1), False),
    "two fields, one by more": ({"a": "/r0", "b": "x2"}, {"a": "/r1", "b": "x4"}, (0, 1), False),
    "a field that is equal besides": ({"a": "/r0", "b": "x"}, {"a": "/r1", "b": "x"}, (0, 1), True),
    "two numbers by one rank": ({"a": "/r0/5"}, {"a": "/r1/6"}, (0, 1), True),
    "two numbers by two": ({"a": "/r0/5"}, {"a": "/r1/7"}, (-1, -1), True),
    "two numbers, not both by the rank": ({"a": "/r0/5"}, {"a": "/r1/7"}, (0, 1), False),
    "another word beside it": ({"a": "/r0/x"}, {"a": "/r1/y"}, (0, 1), False),
    "a field on one side": ({"a": "/r0"}, {"a": "/r0", "b": "/r1"}, (0, 1), False),
    "a field on the other side": ({"a": "/r0", "b": "/r1"}, {"a": "/r0"}, (0, 1), False),
    "a bare number": ({"a": "0"}, {"a": "1"}, (0, 1), False),
    "a bare number that counts ranks": ({"config[local_rank]": "0"}, {"config[local_rank]": "1"}, (0, 1), True),
    "a bare number that counts ranks otherwise": ({"config[rank]": "0"}, {"config[rank]": "2"}, (0, 1), False),
    "the index of a device": ({"my_device_index": "0"}, {"my_device_index": "1"}, (0, 1), True),
    "a name that only begins so": ({"config[rankings]": "0"}, {"config[rankings]": "1"}, (0, 1), False),
    "the device of an input": (
        {"example_inputs[0]": DEVICE.format(CUDA.format(0))}, {"example_inputs[0]": DEVICE.format(CUDA.format(5))}, (0, 1), True),
    "another kind of device": (
        {"example_inputs[0]": DEVICE.format(CUDA.format(0))}, {"example_inputs[0]": DEVICE.format(CPU)}, (0, 1), False),
    "the size of an input": (
        {"example_inputs[0]": DEVICE.format(CPU)}, {"example_inputs[0]": DEVICE.format(CPU).replace("[8]", "[9]")}, (0, 1), False),
    "the size and the device": (
        {"example_inputs[0]": DEVICE.format(CUDA.format(0))},
        {"example_inputs[0]": DEVICE.format(CUDA.format(1)).replace("[8]", "[9]")}, (0, 1), False),
    "the graph": ({"gm": "f(0)"}, {"gm": "f(1)"}, (0, 1), False),
    "bytes": ({"a": "\x000"}, {"a": "\x001"}, (0, 1), False),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_whether_keys_differ_by_the_rank_alone(case: str) -> None:
    store = HashDetails()
    before, after, ranks, is_by_rank = CASES[case]
    changes = store.changes(*(set_of(store, {"same": "1", **fields}) for fields in (before, after)))
    apart = None if -1 in ranks else ranks[1] - ranks[0]
    assert all_hold_a_rank(store, changes, apart) is is_by_rank
