"""What the entries themselves say about leaving a field out: real directories whose entries differ in one field; and the sets of fields that are tried."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.analysis.what_if import sensitivity as searched
from cachescope.analysis.what_if.replay import Replay
from cachescope.analysis.what_if.sensitivity import SafetyOfFields, evidence_rows, field_sets
from cachescope.details import HashDetails
from cachescope.frames.linked_rows import PastMiss
from cachescope.frames.replay_rows import EvidenceRow
from tests.analysis.plain_rows import history_of, past_miss, run_row
from tests.analysis.what_if.test_replay import hash_of, row
from tests.conftest import Archive, Recording

FUSION = "inductor_config[epilogue_fusion]"
UNSAFE_MATH = "inductor_config[cpp.enable_unsafe_math_opt_flag]"


def test_a_field_that_changed_no_code_is_told_so_and_still_not_advised(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "config_flip"))
    (row,) = scope.evidence.to_dict("records")
    assert (row["fields"], row["pairs"], row["same_code"], row["different_code"]) == ((FUSION,), 1, 1, 0)
    spoken = scope.field_safety.on([FUSION])
    assert spoken.affects == "generated code"
    assert spoken.advice.startswith("keep it: torch's code generation reads it, though")


def test_flags_of_the_compiler_change_kernels_and_no_source(directory: Callable[[str], Path]) -> None:
    scope = cachescope.read(directory("compile_flags"))
    rows = {row["fields"]: row for row in scope.evidence.to_dict("records")}
    assert rows[(UNSAFE_MATH,)]["different_code"] == 1
    assert rows[("cache_key_tag",)]["same_binaries"] == 1
    spoken = scope.field_safety
    assert "hold other code (1 of 1)" in spoken.on([UNSAFE_MATH]).advice
    # A set is no safer than its parts.
    assert spoken.on([UNSAFE_MATH, "cache_key_tag"]).different_code == 1


def pair(entry: int, changed: str, same: bool | None, binaries: bool | None = None) -> PastMiss:
    """Two entries that differ in some fields, a letter each."""
    return past_miss(entry, 100 + entry, changed=tuple(changed), same_code=same, same_binaries=binaries)


@pytest.mark.parametrize(("pairs", "wanted"), [
    ([(True, True)], (1, 1, 1, 0, 0)),
    ([(True, None)], (1, 1, 0, 0, 0)),
    ([(True, False)], (1, 0, 0, 1, 0)),
    ([(False, None)], (1, 0, 0, 1, 0)),
    ([(None, None)], (1, 0, 0, 0, 0)),
    ([(None, None), (True, True)], (2, 1, 1, 0, 1)),
    ([(None, None), (None, None)], (2, 0, 0, 0, 0)),
    ([(True, True), (False, None), (False, None)], (3, 1, 1, 2, 1)),
    ([(True, True), (False, None), (True, None)], (3, 2, 1, 1, 1)),
])  # fmt: skip
def test_pairs_are_counted(pairs: list[tuple[bool | None, bool | None]], wanted: tuple[int, ...]) -> None:
    """Made by hand: what is known of the code and of the binaries of each pair."""
    rows = [pair(at, "ba" if at else "ab", code, binaries) for at, (code, binaries) in enumerate(pairs)]
    (row,) = map(asdict, evidence_rows(rows))
    names = ("pairs", "same_code", "same_binaries", "different_code", "entry")
    assert tuple(row[name] for name in names) == wanted
    assert (row["fields"], row["other_entry"]) == (("a", "b"), row["entry"] + 100)


FUSES, GRAPH, INPUT, HOST, NEW = (
    FUSION, "gm", "example_inputs[0]", "inductor_config[compile_threads]", "of_a_later_torch",
)  # fmt: skip
READS_IT = "keep it: torch's code generation reads it"
MACHINE = "it describes the machine, and no code generation of torch reads it"


def safety(fields: list[str], *seen: tuple[tuple[str, ...], int, int]) -> Any:
    """`seen`: fields that pairs differ in, how many of them have the same code, and how many other code."""
    rows = [
        EvidenceRow(names, same + other, same, 0, different_code=other, entry=0, other_entry=1)
        for names, same, other in seen
    ]
    return SafetyOfFields(rows).on(fields)


@pytest.mark.parametrize(("fields", "seen", "affects", "safety_is", "advice"), [
    ([GRAPH], [], "graph", "program", "keep it: it is what is compiled"),
    ([INPUT], [((INPUT,), 2, 0)], "inputs", "program", "keep it: it is what is compiled"),
    ([FUSES], [], "generated code", "unsafe", READS_IT),
    ([FUSES], [((FUSES,), 2, 0)], "generated code", "unsafe", f"{READS_IT}, though entries that differ only there hold equal code (2 of 2)"),
    ([HOST], [], "host", "safe", f"{MACHINE}; no entries here to compare"),
    ([HOST], [((HOST,), 1, 0)], "host", "safe", f"{MACHINE}; entries that differ only there hold equal code (1 of 1)"),
    ([NEW], [], "unknown", "unknown", "not known what it changes; no entries here to compare"),
    ([NEW], [((NEW,), 3, 0)], "unknown", "unknown", "not known what it changes; entries that differ only there hold equal code (3 of 3)"),
    # Other code decides, whatever the field is for.
    ([HOST], [((HOST,), 2, 1)], "host", "unsafe", "keep it: entries that differ only there hold other code (1 of 3)"),
    ([NEW], [((NEW,), 0, 1)], "unknown", "unsafe", "keep it: entries that differ only there hold other code (1 of 1)"),
    # What is the program is never left out, whatever entries show.
    ([GRAPH], [((GRAPH,), 0, 1)], "graph", "program", "keep it: entries that differ only there hold other code (1 of 1)"),
    # The most serious of several.
    ([NEW, HOST], [], "unknown", "unknown", "not known what it changes; no entries here to compare"),
    ([NEW, FUSES], [], "generated code", "unsafe", READS_IT),
    ([INPUT, FUSES], [], "inputs", "program", "keep it: it is what is compiled"),
    ([INPUT, GRAPH], [], "graph", "program", "keep it: it is what is compiled"),
    ([], [], "unknown", "unknown", "not known what it changes; no entries here to compare"),
], ids=range(16))  # fmt: skip
def test_advice(
    fields: list[str], seen: list[tuple[tuple[str, ...], int, int]], affects: str, safety_is: str, advice: str
) -> None:
    found = safety(fields, *seen)
    assert (found.affects, found.safety, found.advice) == (affects, safety_is, advice)


def test_pairs_count_that_differ_in_nothing_else() -> None:
    seen = [((NEW,), 1, 0), ((HOST, NEW), 2, 4), ((FUSES,), 8, 8), ((NEW, FUSES), 16, 16)]
    found = safety([NEW, HOST], *seen)
    assert (found.same_code, found.different_code) == (3, 4)
    assert safety([HOST], *seen).different_code == 0


def test_fields_of_other_code_come_first_then_those_of_many_pairs() -> None:
    pairs = [
        pair(0, "c", True), pair(1, "b", True), pair(2, "a", True), pair(3, "b", None),
        pair(4, "ed", False), pair(5, "", False), pair(6, "de", True),
    ]  # fmt: skip
    found = evidence_rows(pairs)
    assert [row.fields for row in found] == [("d", "e"), ("b",), ("a",), ("c",)]
    # The example is one that shows the most.
    assert [row.entry for row in found] == [4, 1, 2, 0]


FIELDS = ("a", "b", "c", "d")
# The graph, the values of the fields, and whether the key was missed; distinct, as keys are.
keys = st.lists(
    st.tuples(st.integers(0, 1), st.tuples(*[st.integers(0, 2)] * len(FIELDS)), st.booleans()),
    min_size=2,
    max_size=14,
    unique_by=lambda one: one[:2],
)
Key = tuple[int, tuple[int, ...], bool]


def replay_of(found: list[Key]) -> Replay:
    store = HashDetails()
    rows = []
    for at, (graph, values, is_missed) in enumerate(found):
        lines = [f"[{hash_of(f'gm{graph}')}] gm: g"]
        lines += [f"[{hash_of(f'{f}{v}')}] {f}: {v}" for f, v in zip(FIELDS, values, strict=True)]
        code, _ = store.add(lines)
        took = 1 if is_missed else None
        rows.append(row(at, 0, 10 + at, "fxgraph", f"f{at}", not is_missed, None, took, code))
    return Replay(history_of(rows, store, runs=[run_row(0, cache_dir="d")]))


def slow(found: list[Key], largest: int) -> list[frozenset[str]]:
    count: Counter[frozenset[str]] = Counter()
    for _, group in groupby(sorted(found, key=lambda one: one[0]), key=lambda one: one[0]):
        graph = list(group)
        for at, (_, values, is_missed) in enumerate(graph):
            nearest: frozenset[str] | None = None
            # The first of its graph, then those before it, the latest first.
            for _, others, other_missed in [graph[0], *graph[1:at][::-1]] if at else []:
                names = frozenset(f for f, a, b in zip(FIELDS, values, others, strict=True) if a != b)
                is_nearer = nearest is None or len(names) < len(nearest)
                if not (is_missed or other_missed) or not (len(names) <= largest or is_nearer):
                    continue
                count[names] += 2 <= len(names) <= largest
                nearest = names if is_nearer else nearest
            if nearest is not None and len(nearest) > max(largest, 1):
                count[nearest] += 1
    ordered = sorted(count.items(), key=lambda item: (-item[1], sorted(item[0])))
    return [names for names, n in ordered if n][:32]


@pytest.mark.slow
@given(keys, st.integers(1, 3))
def test_every_pair_of_keys_is_compared(found: list[Key], largest: int) -> None:
    assert field_sets(replay_of(found), largest) == slow(found, largest)


def keys_of(*values: str, missed: str = "") -> list[Key]:
    """Keys of one graph; a letter of `values` is the value of a field, one of `missed` says m or h."""
    missed = missed or "m" * len(values)
    return [(0, tuple(map(int, each)), missed[at] == "m") for at, each in enumerate(values)]


def sets_of(found: list[Key], largest: int = 2) -> list[str]:
    return ["".join(sorted(fields)) for fields in field_sets(replay_of(found), largest)]


def test_with_many_keys_the_first_and_a_few_before_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searched, "_COMPARISONS", 1)
    # The last differs from the second in a and b; between these stand three, or four, that are far off.
    far = ["2222", "1212", "2121", "1221"]
    near, too_far = (["0000", "1111", *far[:n], "0011"] for n in (3, 4))
    assert "ab" in sets_of(keys_of(*near, missed="hm" + "h" * (len(near) - 2)))
    assert "ab" not in sets_of(keys_of(*too_far, missed="hm" + "h" * (len(too_far) - 2)))
    # With the first, each is.
    assert "cd" in sets_of(keys_of(*too_far, missed="m" + "h" * 6))


def test_so_many_sets_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    found = keys_of("0000", "0011", "0022", "1100", "1111")
    every = sets_of(found)
    assert len(every) > 1
    monkeypatch.setattr(searched, "_SETS", 1)
    assert sets_of(found) == every[:1]


def test_a_graph_of_another_direction_is_another() -> None:
    """The first and the last are forward: of what separates them from the other nothing is counted."""
    store = HashDetails()
    rows = []
    for at, (values, direction) in enumerate((("000", "forward"), ("011", "backward"), ("110", "forward"))):
        lines = [f"[{hash_of('g')}] gm: g"]
        lines += [f"[{hash_of(f'{f}{v}')}] {f}: {v}" for f, v in zip("abc", values, strict=True)]
        code, _ = store.add(lines)
        one = row(at, 0, 10 + at, "fxgraph", f"f{at}", False, None, 1, code)
        rows.append(replace(one, direction=direction))
    replay = Replay(history_of(rows, store, runs=[run_row(0, cache_dir="d")]))
    assert field_sets(replay, 2) == [frozenset("ab")]


@pytest.mark.slow
def test_inputs_are_named_by_number(archive: Archive) -> None:
    sets = cachescope.read(archive("models/small_generation")).sensitivity()["fields"]
    numbers = [[int(n) for n in re.findall(r"example_inputs\[(\d+)\]", " ".join(one))] for one in sets]
    assert max(max(one, default=0) for one in numbers) >= 10
    assert all(one == sorted(one) for one in numbers)
