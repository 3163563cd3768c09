"""Rows of the frames of compiles, as objects. The columns are described where the frames are declared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompileRow:
    """A row of the frame ``compiles``."""

    run: int
    compile_id: str
    segment: int
    kind: str
    function: str | None
    file: str | None
    line: int | None
    start_time: int | None
    time_taken_ns: int | None
    recompile_reasons: tuple[str, ...]
    symbols: tuple[str, ...]
    graph_breaks: tuple[str, ...]
    restarts: tuple[str, ...]
    error: str | None
    collectives: tuple[str, ...] = ()
    lookups: tuple[int, ...] = ()
    hits: int | None = None
    full_misses: int | None = None
    guard_misses: int | None = None
    bypasses: int | None = None


@dataclass(frozen=True, slots=True)
class SymbolRow:
    """A row of the frame ``symbols``."""

    run: int
    compile_id: str
    segment: int
    symbol: str
    value: str | None
    source: str | None
    range: str | None
    function: str | None
    file: str | None
    line: int | None
    changed_from: str | None
    range_after: str | None
    guards: tuple[str, ...]
    guard_code: tuple[str, ...]
    specialized: str | None
    specialized_at: str | None


@dataclass(frozen=True, slots=True)
class RecompileRow:
    """A row of the frame ``recompiles``."""

    function: str | None
    file: str | None
    line: int | None
    guard: str | None
    example: str | None
    compiles: int
    limits: int
    time_taken_ns: int | None
    runs: tuple[int, ...]
    compile_ids: tuple[str, ...]
