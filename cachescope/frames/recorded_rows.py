"""Rows of the frames of recorded facts, as objects. The columns are described where the frames are declared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunRow:
    """A row of the frame ``runs``."""

    run: int
    source: str
    sources: tuple[str, ...]
    pid: int | None
    rank: int | None
    torch_version: str | None
    python_version: str | None
    start_time: int | None
    end_time: int | None
    cache_dir: str | None
    command: str | None
    exit_status: int | None
    command_start_time: int | None
    command_end_time: int | None
    is_cut: bool
    looked_up: bool
    is_preflight: bool = False


@dataclass(frozen=True, slots=True)
class LookupRow:
    """A row of the frame ``lookups``."""

    lookup: int
    run: int
    order: int
    time: int | None
    end_time: int | None
    cache: str
    cache_key: str | None
    outcome: str
    cache_state: str | None
    status_detailed: str | None
    compile_id: str | None
    segment: int
    direction: str | None
    is_backward: bool | None
    aot_lookup: int | None
    bypass_reason: str | None
    bypass_exception: str | None
    aot_mode: bool | None
    save_bypass: str | None
    save_error: str | None
    compile_error: str | None
    compile_ended: bool | None
    load_error: str | None
    guards_expr: str | None
    function: str | None
    file: str | None
    line: int | None
    time_taken_ns: int | None
    time_saved_ns: int | None
    details: str
    detail_set: int | None
    entry_path: str | None
    prediction: str | None
    predicted_entry: int | None
    preflight_note: str | None


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """A row of the frame ``problems``."""

    source: str
    where: str
    kind: str
    message: str
