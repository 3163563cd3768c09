"""Rows of the frames of isolation contexts, as objects. The columns are described where the frames are declared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ContextRow:
    """A row of the frame ``contexts``."""

    context: int
    source: str
    run: int | None
    inductor_configs: str | None
    torch_determinism_configs: str | None
    cuda_matmul_precision_configs: str | None
    torch_version_hash: str | None
    triton_version_hash: str | None
    runtime: str | None
    runtime_version: str | None
    accelerator_properties: str | None
    missing_forms: tuple[str, ...]
    hashed_forms: tuple[str, ...]
    torch_detail_hash: str | None
    text_only: tuple[str, ...]
    known_from: str | None
    torch_version: str | None
    python_version: str | None
    platform: str | None
    host: str | None
    pid: int | None
    time: int | None
    environment: str | None
    settings: str | None
    device_properties: tuple[str, ...]
    key_fields: str | None
    aot_key_fields: str | None
    key_fields_problem: str | None
    torch_manifest: str | None


@dataclass(frozen=True, slots=True)
class IsolationKeyRow:
    """A row of the frame ``isolation_keys``."""

    context: int
    isolation_key: str | None
    lacking: tuple[str, ...]
    text_only: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A row of the frame ``context_groups``."""

    schema: str
    without: tuple[str, ...]
    group: int | None
    contexts: tuple[int, ...]
    isolation_key: str | None


@dataclass(frozen=True, slots=True)
class PairRow:
    """A row of the frame ``context_pairs``."""

    before: int
    after: int
    differing: tuple[str, ...]
    undecided: tuple[str, ...]
    schema: str
    isolation_key: str | None


@dataclass(frozen=True, slots=True)
class FormDifference:
    """A row of the frame ``context_difference``."""

    form: str
    field: str | None
    status: str
    before: str | None
    after: str | None
    note: str | None
