"""What the entries themselves say about leaving a field out: real directories whose entries differ in one field."""

from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.analysis.what_if.evidence import SafetyOfFields, evidence_rows
from cachescope.frames.linked_rows import PastMiss
from cachescope.frames.replay_rows import EvidenceRow
from tests.conftest import Recording

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


def past_miss(
    entry: int, changed: tuple[str, ...], same: bool | None, binaries: bool | None = None, baseline: int = 100
) -> PastMiss:
    told = {"entry": entry, "baseline_entry": baseline, "changed": changed}
    nothing = dict.fromkeys(field.name for field in fields(PastMiss))
    return PastMiss(**(nothing | told | {"same_code": same, "same_binaries": binaries}))


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
    rows = [
        past_miss(number, ("b", "a")[:: 1 if number else -1], code, binaries, 100 + number)
        for number, (code, binaries) in enumerate(pairs)
    ]
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
        past_miss(0, ("c",), True), past_miss(1, ("b",), True), past_miss(2, ("a",), True), past_miss(3, ("b",), None),
        past_miss(4, ("e", "d"), False), past_miss(5, (), False), past_miss(6, ("d", "e"), True),
    ]  # fmt: skip
    found = evidence_rows(pairs)
    assert [row.fields for row in found] == [("d", "e"), ("b",), ("a",), ("c",)]
    # The example is one that shows the most.
    assert [row.entry for row in found] == [4, 1, 2, 0]
