"""What the entries themselves say about leaving a field out: real directories whose entries differ in one field."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from cachescope.analysis.what_if.evidence import SafetyOfFields, evidence_frame
from tests.conftest import Recording

FUSION = "inductor_config[epilogue_fusion]"
UNSAFE_MATH = "inductor_config[cpp.enable_unsafe_math_opt_flag]"


def test_a_field_that_changed_no_code_is_told_so_and_still_not_advised(recording: Recording) -> None:
    evidence = cachescope.read(recording("2.13.0", "config_flip")).evidence
    (row,) = evidence.to_dict("records")
    assert (row["fields"], row["pairs"], row["same_code"], row["different_code"]) == ((FUSION,), 1, 1, 0)
    spoken = SafetyOfFields(evidence).on([FUSION])
    assert spoken.affects == "generated code"
    assert spoken.advice.startswith("keep it: torch's code generation reads it, though")


def test_flags_of_the_compiler_change_kernels_and_no_source(directory: Callable[[str], Path]) -> None:
    scope = cachescope.read(directory("compile_flags"))
    rows = {row["fields"]: row for row in scope.evidence.to_dict("records")}
    assert rows[(UNSAFE_MATH,)]["different_code"] == 1
    assert rows[("cache_key_tag",)]["same_binaries"] == 1
    spoken = SafetyOfFields(scope.evidence)
    assert "hold other code (1 of 1)" in spoken.on([UNSAFE_MATH]).advice
    # A set is no safer than its parts.
    assert spoken.on([UNSAFE_MATH, "cache_key_tag"]).different_code == 1


def test_the_number_of_the_graph_in_the_source_is_no_other_code(recording: Recording) -> None:
    """One process compiled the graph second, so another number stands above the same code."""
    scope = cachescope.read(recording("2.13.0", "in_process"), recording("2.13.0", "trace_only"))
    entries = scope.entries[(scope.entries["cache"] == "fxgraph") & (scope.entries["status"] == "ok")]
    compared = [
        (scope.generated_code.has_equal_keys(a, b), scope.generated_code.are_same(a, b))
        for key, group in entries.groupby("cache_key")
        for a in group["entry"]
        for b in group["entry"]
        if a < b
    ]
    assert (False, True) in compared
    assert all(same for _, same in compared)


def test_an_unknown_field_is_advised_nothing() -> None:
    nothing = cachescope.read(cachescope.sample("config_flip")).evidence
    assert nothing.empty
    spoken = SafetyOfFields(nothing)
    assert spoken.on(["inductor_config[of_a_later_torch]"]).advice.startswith("not known what it changes")
    assert spoken.on(["gm"]).advice == "keep it: it is what is compiled"


@pytest.mark.parametrize(
    ("pairs", "wanted"),
    [
        ([(True, True)], (1, 1, 1, 0, 0)),
        ([(True, None)], (1, 1, 0, 0, 0)),
        ([(True, False)], (1, 0, 0, 1, 0)),
        ([(False, None)], (1, 0, 0, 1, 0)),
        ([(None, None)], (1, 0, 0, 0, 0)),
        ([(None, None), (True, True)], (2, 1, 1, 0, 1)),
        ([(None, None), (None, None)], (2, 0, 0, 0, 0)),
        ([(True, True), (False, None), (False, None)], (3, 1, 1, 2, 1)),
        ([(True, True), (False, None), (True, None)], (3, 2, 1, 1, 1)),
    ],
)
def test_pairs_of_one_set_of_fields_are_counted(
    pairs: list[tuple[bool | None, bool | None]], wanted: tuple[int, ...]
) -> None:
    """Made by hand: what is known of the code and of the binaries of each pair."""
    rows = [
        {"entry": number, "baseline_entry": 100 + number, "changed": ("b", "a")[:: 1 if number else -1],
         "same_code": code, "same_binaries": binaries}
        for number, (code, binaries) in enumerate(pairs)
    ]  # fmt: skip
    (row,) = evidence_frame(pd.DataFrame(rows)).to_dict("records")
    names = ("pairs", "same_code", "same_binaries", "different_code", "entry")
    assert tuple(row[name] for name in names) == wanted
    assert (row["fields"], row["other_entry"]) == (("a", "b"), row["entry"] + 100)
