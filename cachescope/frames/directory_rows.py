"""Rows of the frames of the contents of a cache directory, as objects. The columns are described where the frames are declared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EntryRow:
    """A row of the frame ``entries``."""

    entry: int
    cache: str
    cache_key: str | None
    path: str
    root: str
    size_bytes: int | None
    modified_time: int | None
    status: str
    damage: str | None
    guards_expr: str | None
    time_taken_ns: int | None
    code_key: str | None
    device_types: tuple[str, ...]
    cudagraphs_skipped: str | None
    fx_keys: tuple[str, ...]
    fx_guards: tuple[str, ...]
    kernel_keys: tuple[str, ...]
    triton_hashes: tuple[str, ...]
    detail_set: int | None
    name: str | None
    detail: str | None
    changed_time: int | None
    seen_time: int | None
    link: str | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row of the frame ``guards``."""

    entry: int
    cache: str
    cache_key: str
    modified_time: int | None
    guards_expr: str | None
    symbols: tuple[str, ...]
    beside: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DuplicateRow:
    """A row of the frame ``duplicates``."""

    entries: tuple[int, ...]
    cache: str
    cache_key: str
    copies: int
    size_bytes: int
    saved_bytes: int
    known_by: str


@dataclass(frozen=True, slots=True)
class LockRow:
    """A row of the frame ``locks``."""

    entry: int
    path: str
    lock_held: bool | None


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A row of the frame ``kernels``."""

    entry: int
    order: int
    kernel: str
    kind: str
    source_nodes: tuple[str, ...]
    aten_ops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LinkRow:
    """A row of the frame ``links``."""

    parent: int
    parent_kind: str
    child: int | None
    child_kind: str
    child_key: str
    known_by: str


@dataclass(frozen=True, slots=True)
class OrphanRow:
    """A row of the frame ``orphans``."""

    entry: int
    cache: str
    reason: str


@dataclass(frozen=True, slots=True)
class RemovableRow:
    """A row of the frame ``removable``."""

    entry: int
    cache: str
    path: str
    size_bytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class TimingRow:
    """A row of the frame ``autotune``."""

    entry: int
    op: str
    inputs: str
    precision: str
    choice: str
    time_ms: float | None
    is_failed: bool
    is_chosen: bool
    margin: float | None
    device_name: str | None
    triton_version: str | None
    runtime: str | None
    runtime_version: str | None


@dataclass(frozen=True, slots=True)
class PastMiss:
    """A row of the frame ``past_misses``."""

    entry: int
    cache_key: str
    graph: int
    direction: str | None
    made_time: int | None
    verdict: str
    baseline_entry: int
    is_order_known: bool
    changed: tuple[str, ...]
    same_code: bool | None
    same_binaries: bool | None
    same_code_known_by: str
    time_taken_ns: int | None
