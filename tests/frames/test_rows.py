"""The dataclasses of rows against the frames that they are rows of: the same columns, and values of the types they say."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pandas as pd
import pytest

import cachescope
from cachescope.columns import FLAG, REAL, TEXT, TIME, TUPLE, WHOLE, Frame, rows_of
from cachescope.frames import (
    FRAMES,
    answer_rows,
    context_rows,
    device_rows,
    directory_rows,
    recorded_rows,
    replay_rows,
    vllm,
)

ROWS: dict[str, Any] = {
    "runs": recorded_rows.RunRow,
    "lookups": recorded_rows.LookupRow,
    "problems": recorded_rows.ProblemRow,
    "misses": answer_rows.MissRow,
    "causes": answer_rows.CauseRow,
    "hit_rates": answer_rows.RateRow,
    "predictions": answer_rows.PredictionRow,
    "rank_differences": answer_rows.RankDifference,
    "false_hits": answer_rows.FalseHit,
    "audit": answer_rows.AuditRow,
    "entries": directory_rows.EntryRow,
    "guards": directory_rows.Candidate,
    "duplicates": directory_rows.DuplicateRow,
    "locks": directory_rows.LockRow,
    "kernels": directory_rows.KernelRow,
    "links": directory_rows.LinkRow,
    "orphans": directory_rows.OrphanRow,
    "removable": directory_rows.RemovableRow,
    "autotune": directory_rows.TimingRow,
    "vllm_factors": vllm.FactorsRow,
    "vllm_folders": vllm.FolderRow,
    "vllm_changes": vllm.VllmChange,
    "vllm_fragments": vllm.FragmentRow,
    "vllm_ranks": vllm.RankRow,
    "vllm_starts": vllm.StartRow,
    "past_misses": directory_rows.PastMiss,
    "contexts": context_rows.ContextRow,
    "isolation_keys": context_rows.IsolationKeyRow,
    "context_groups": context_rows.GroupRow,
    "context_pairs": context_rows.PairRow,
    "context_difference": context_rows.FormDifference,
    "devices": device_rows.DeviceRow,
    "device_measurements": device_rows.MeasurementRow,
    "what_if_rates": replay_rows.WhatIfRate,
    "what_if_causes": replay_rows.WhatIfCause,
    "what_if_runs": replay_rows.WhatIfRun,
    "what_if_differences": replay_rows.WhatIfDifference,
    "what_if_warnings": replay_rows.WhatIfWarning,
    "sensitivity": replay_rows.SensitivityRow,
}
TYPES = {WHOLE: int, TIME: int, TEXT: str, FLAG: bool, REAL: float, TUPLE: tuple}
SAMPLES = ("tour", "whole_directory", "isolation_context", "entry_truncated", "triton_kernels", "four_ranks")


def plain_type(hint: Any) -> tuple[Any, bool]:
    """The type without None, and whether a value may be missing."""
    if get_origin(hint) is UnionType:
        (one,) = (part for part in get_args(hint) if part is not NoneType)
        return one, True
    return hint, False


def fits(value: object, hint: Any) -> bool:
    one, may_be_missing = plain_type(hint)
    if value is None:
        return may_be_missing
    if get_origin(one) is tuple:
        item, _ = get_args(one)
        return isinstance(value, tuple) and all(isinstance(part, item) for part in value)
    return isinstance(value, one) or (one is float and isinstance(value, int))


@pytest.mark.parametrize("name", ROWS)
def test_a_row_has_the_columns_of_its_frame_and_their_types(name: str) -> None:
    hints = get_type_hints(ROWS[name])
    columns = FRAMES[name].columns
    assert list(hints) == [column.name for column in columns]
    for column in columns:
        one, may_be_missing = plain_type(hints[column.name])
        assert (get_origin(one) or one) is TYPES[column.dtype], column.name
        assert may_be_missing == (column.missing != "never"), column.name


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES)
def test_what_was_recorded_is_of_the_types_that_rows_say(sample: str) -> None:
    scope = cachescope.read(cachescope.sample(sample))
    frames = {
        name: getattr(scope, name) for name in ROWS if isinstance(getattr(scope, name, None), pd.DataFrame)
    }
    frames |= {
        "hit_rates": scope.hit_rates(),
        "context_groups": scope.context_groups(),
        "context_pairs": scope.context_pairs(),
        "sensitivity": scope.sensitivity(),
        "locks": scope.locks(),
    }
    if len(scope.runs):
        frames["predictions"] = cachescope.will_hit(scope, scope)
    assert len(frames) >= 20
    for name, frame in frames.items():
        hints = get_type_hints(ROWS[name])
        for row in rows_of(frame, ROWS[name]):
            wrong = {
                field: getattr(row, field)
                for field, hint in hints.items()
                if not fits(getattr(row, field), hint)
            }
            assert not wrong, name


@pytest.mark.parametrize("name", ROWS)
def test_a_frame_of_rows_is_the_frame_that_they_were_read_from(name: str) -> None:
    frame: Frame = FRAMES[name]
    made = frame.build([_row(frame, 1), _row(frame, 2)])
    assert len(rows_of(made, ROWS[name])) == 2
    pd.testing.assert_frame_equal(frame.of_rows(rows_of(made, ROWS[name])), made)
    assert rows_of(frame.build([]), ROWS[name]) == []


def _row(frame: Frame, number: int) -> dict[str, object]:
    """Made by hand: a value in each column, or none where there may be none in the second row."""
    values = {
        WHOLE: number,
        TIME: number,
        TEXT: str(number),
        FLAG: number == 1,
        REAL: number / 2,
        TUPLE: ("a",),
    }
    return {
        column.name: None if number == 2 and column.missing != "never" else values[column.dtype]
        for column in frame.columns
    }
