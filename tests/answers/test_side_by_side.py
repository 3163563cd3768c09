"""Contexts side by side: what differs is listed, what is alike is folded, what is not known is said to be."""

import pytest

import cachescope
from cachescope.frames.sharing_rows import FormDifference
from cachescope.report.contexts import Form, SideBySide, context_names, folded_differences, shared_lines
from tests.conftest import Recording
from tests.readings import read_once


def test_runs_alike_are_one_column_and_the_setting_that_differs_is_named(recording: Recording) -> None:
    found = SideBySide.of(read_once(recording("2.13.0", "config_flip") / "trace"))
    assert [[row.run for row in column] for column in found.columns] == [[0, 2], [1]]
    assert found.forms == (Form("inductor_configs", ("epilogue_fusion",), ("true", "false")),)
    assert found.same == ("torch_determinism_configs", "cuda_matmul_precision_configs", "torch_version_hash")
    assert found.unknown == ("triton_version_hash", "runtime", "runtime_version", "accelerator_properties")
    assert [*shared_lines(found)] == [
        f"Known and equal in all 3 contexts: {', '.join(found.same)}.",
        f"Not known of any: {', '.join(found.unknown)}.",
    ]


@pytest.mark.slow
def test_captured_files_have_names_and_what_only_they_tell_is_open_for_runs(recording: Recording) -> None:
    scope = read_once(recording("2.13.0", "isolation_context"))
    assert list(context_names(scope).values())[:2] == ["base.json", "settings.json"]
    found = SideBySide.of(scope)
    cells = {form.form: form.cells for form in found.forms}
    # A CPU build has no Triton: known of what was captured, not known of the runs.
    assert cells["triton_version_hash"] == ("A", "A", "?", "?")
    assert cells["inductor_configs"] == ("false", "true", "false", "true")
    assert set(found.same) == {"torch_version_hash", "runtime", "runtime_version"}


def test_all_alike_is_said(recording: Recording) -> None:
    found = SideBySide.of(read_once(recording("2.13.0", "cold_warm") / "trace"))
    assert [len(column) for column in found.columns] == [3] and found.forms == ()
    assert next(shared_lines(found)) == "Nothing that is known of all 3 contexts differs."


def test_nothing_read_is_nothing_side_by_side(recording: Recording) -> None:
    found = SideBySide.of(cachescope.read(recording("2.6.0", "config_flip") / "cache"))
    assert (found.columns, found.forms, [*shared_lines(found)]) == ((), (), [])


def difference(field: str, status: str) -> FormDifference:
    return FormDifference("inductor_configs", field, status, "1", "2", None)


def test_many_settings_of_one_side_are_a_line() -> None:
    changed, few = difference("a", "changed"), difference("b", "removed")
    many = [difference(f"new_{number}", "added") for number in range(10)]
    rows, lines = folded_differences([changed, few, *many])
    assert rows == [changed, few]
    (line,) = lines
    assert line.startswith("Only after, 10 settings: new_0, new_1") and line.endswith("and 2 more.")
