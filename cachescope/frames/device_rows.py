"""Rows of the frames of devices, as objects. The columns are described where the frames are declared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A row of the frame ``devices``."""

    device: int
    name: str
    type: str
    seen_in: tuple[str, ...]
    runs: tuple[int, ...]
    indices: tuple[int, ...]
    compute_capability: str | None
    arch: str | None
    memory_bytes: int | None
    sm_count: int | None
    l2_bytes: int | None
    warp_size: int | None
    uuid: str | None
    pci: str | None
    properties: str
    peak_fp64_tflops: float | None
    peak_fp32_tflops: float | None
    peak_tf32_tflops: float | None
    peak_bf16_tflops: float | None
    peak_fp16_tflops: float | None
    peak_fp8_tflops: float | None
    peak_int8_tops: float | None
    peak_fp4_tflops: float | None
    sparsity_factor: float | None
    datasheet_bandwidth_gbs: float | None
    datasheet_memory_gb: float | None
    datasheet: str | None
    matched_by: str | None
    source: str | None
    datasheet_note: str | None


@dataclass(frozen=True, slots=True)
class MeasurementRow:
    """A row of the frame ``device_measurements``."""

    index: int
    name: str
    what: str
    measured: float
    datasheet: float | None
    share: float | None
