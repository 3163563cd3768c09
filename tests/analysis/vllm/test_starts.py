"""The clock of vLLM's logs beside that of files, the parts in folders that a log names, and the factors of two folders side by side: made by hand."""

from dataclasses import replace
from pathlib import Path

import pytest

import cachescope
from cachescope.analysis.differences import FieldChange
from cachescope.analysis.verdicts.causes import AdviceFacts
from cachescope.analysis.vllm.factors import Named, between, field_changes_of, vllm_advice
from cachescope.analysis.vllm.starts import Part, Parts, Started, clock_off
from cachescope.columns import rows_of
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.vllm import FactorsRow, StartRow
from tests.vllm_folders import make_folder

SECOND = 1_000_000_000
HOUR = 3600 * SECOND
NOON = 1_790_000_000 * SECOND


def started(folder: str) -> Started:
    """A start of ten seconds at noon that compiled into a folder."""
    row = StartRow(
        0, "server.log", 1, None, None, "", "backbone", None, folder, 0, None, None, None, None,
        "compiled", False, False, None, None, None, None,
    )  # fmt: skip
    return Started(0, row, Part(0, 0, "backbone"), 0, NOON, NOON + 10 * SECOND)


@pytest.mark.parametrize(("hours", "off"), [
    ([], 0), ([("a", 0.0)], 0), ([("a", 9.0)], 0),
    # The same folder twice is one.
    ([("a", 9.0), ("a", 9.0)], 0), ([("a", 9.0), ("b", 9.0)], 9),
    ([("a", -8.0), ("b", -8.0), ("c", 9.0)], -8), ([("a", 9.25), ("b", 9.25)], 9.25),
    # One folder that was made by the clock of the log shows that it is not off.
    ([("a", 9.0), ("b", 9.0), ("c", 0.0)], 0),
    # No time zone is a day off, and none a few minutes.
    ([("a", 24.0), ("b", 24.0)], 0), ([("a", 9.1), ("b", 9.1)], 0),
])  # fmt: skip
def test_the_clock_is_off_by_what_two_folders_show(hours: list[tuple[str, float]], off: float) -> None:
    made = [(started(folder), NOON + int(HOUR * by) + 3 * SECOND) for folder, by in hours]
    assert clock_off(made) == off * HOUR


@pytest.mark.parametrize("unknown", [("began", "ended"), ("began",), ("ended",)])
def test_starts_without_times_show_no_other_clock(unknown: tuple[str, ...]) -> None:
    starts = [started(folder)._replace(**dict.fromkeys(unknown)) for folder in ("a", "b")]
    assert clock_off((one, NOON + 9 * HOUR + 3 * SECOND) for one in starts) == 0


def test_factors_that_are_written_long_after_a_start_began_show_no_other_clock() -> None:
    slow = [started(folder)._replace(ended=NOON + HOUR) for folder in ("a", "b")]
    assert clock_off((one, NOON + HOUR // 3) for one in slow) == 0


@pytest.mark.parametrize(("outcome", "began", "is_after", "was_running"), [
    ("compiled", 0, False, True), ("compiled", 5, False, True), ("compiled", 10, True, True), ("compiled", 11, True, False),
    ("compiled", -1, False, False), ("loaded", 5, False, False), ("loaded", 10, True, False),
])  # fmt: skip
def test_which_start_ran_before_or_beside_another(
    outcome: str, began: int, is_after: bool, was_running: bool
) -> None:
    one = started("a")
    one = one._replace(row=replace(one.row, outcome=outcome))
    other = one._replace(at=1, began=NOON + began * SECOND, ended=NOON + 20 * SECOND)
    assert (one.ended_before(other), one.was_running_at(other)) == (is_after, was_running)
    # Never one that stands at the same place in time, itself least of all.
    other = other._replace(at=0)
    assert not one.ended_before(other) and not one.was_running_at(other)


BACKBONE = Part(0, 0, "backbone")


@pytest.mark.parametrize("name", [None, "0123456789"], ids=["follows from its factors", "does not"])
def test_of_several_trees_the_one_is_taken_that_a_log_names(name: str | None, tmp_path: Path) -> None:
    for tree in ("one", "two"):
        folder = make_folder(tmp_path / tree, name=name)
    make_folder(tmp_path, prefix="encoder")
    scope = cachescope.read(tmp_path)
    parts = Parts(rows_of(scope.vllm_factors, FactorsRow), rows_of(scope.entries, EntryRow))
    below = f"torch_compile_cache/{folder}/rank_0_0/backbone"
    one, two = (str(tmp_path / tree / below) for tree in ("one", "two"))
    start = started(folder).row
    for path, wanted in ((one, [one]), (two + "/", [two]), ("/c/elsewhere", [one, two]), (None, [one, two])):
        found = parts.of(replace(start, path=path), BACKBONE)
        assert [one.path for one in found] == wanted
        sources = scope.entries.set_index("entry")["path"]
        assert [Path(sources[one.file.entry]).parent for one in found] == [Path(one) for one in wanted]
    assert not parts.of(start, Part(1, 0, "backbone"))
    assert not parts.of(started("ffffffffff").row, BACKBONE)
    of_parts = [Part(0, 0, prefix) for prefix in ("backbone", "encoder", "eagle_head")]
    assert [parts.has(part) for part in of_parts] == [True, True, False]


@pytest.mark.parametrize(("factor", "before", "after", "kind", "summary"), [
    ("env[VLLM_A]", '"1"', '"2"', "value", '"1" -> "2"'),
    ("env[VLLM_PORT]", "5600", "5601", "value", "apparently differs by port: "),
    # Of a hash the values say nothing: what it is made of does.
    ("code_hash", "aa11", "bb22", "value", "the files that were traced"),
    ("config_hash", "aa11", "bb22", "value", "the configuration"),
    ("env_hash", "aa11", "bb22", "value", "the environment variables that vLLM counts differ"),
])  # fmt: skip
def test_a_factor_that_differs(factor: str, before: str, after: str, kind: str, summary: str) -> None:
    given = ("a", before), ("b", after)
    sides = (Named(name, {factor: value, "env[VLLM_B]": "1"}, None) for name, value in given)
    (change,) = field_changes_of(between(*sides))
    assert (change.field, change.before, change.after, change.kind) == (factor, before, after, kind)
    assert change.summary.startswith(summary)


def test_factors_with_values_come_before_hashes() -> None:
    sides = (Named(name, dict.fromkeys(("code_hash", "env[VLLM_B]", "env[A]"), name), None) for name in "ab")
    assert between(*sides).changed == ("env[A]", "env[VLLM_B]", "code_hash")


@pytest.mark.parametrize(("factor", "first", "sentences"), [
    ("env[VLLM_A]", "Give VLLM_A the same value in every engine, if it need not differ.", 1),
    ("env[VLLM_RAY_BUNDLE_INDICES]", "Give VLLM_RAY_BUNDLE_INDICES the same value in every engine", 2),
    # Of what only the hash is known there is no value to set.
    ("env_hash", "Read vLLM's torch_compile_cache beside the log", 1),
    ("config_hash", "A configuration is compiled for once", 1),
    ("code_hash", "Edited files are compiled for once", 2),
    ("compiler_hash", "vLLM counts torch and the machine", 1),
])  # fmt: skip
def test_what_to_do_about_a_factor(factor: str, first: str, sentences: int) -> None:
    change = FieldChange(factor, "value", "1", "2", "")
    advice = vllm_advice(AdviceFacts("key_changed", changes=(change,)), (change,)) or ""
    assert advice.startswith(first)
    assert advice.count(". ") == sentences - 1
