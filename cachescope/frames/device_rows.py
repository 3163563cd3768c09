"""Rows of devices: every device seen in a source, with its datasheet, and rates measured on this machine."""

from __future__ import annotations

from typing import Final

from cachescope.rows import col, row

_NOT_GIVEN: Final = "no source that names the device has it"
_NO_SHEET: Final = "no datasheet matched, or it has no such figure"
_PEAK: Final = "peak dense rate of {} according to the datasheet"

# fmt: off


@row("devices")
class DeviceRow:
    """One device seen in any source; without a uuid, all boards with the same name are one row."""

    device: int = col("number of the device")
    name: str = col("its name; if not known, its type with its architecture or index")
    type: str = col("cuda, hip, xpu, cpu, mps, …", torch_name="torch.device.type; hip as DeviceProperties has it")
    seen_in: tuple[str, ...] = col("where it was seen, in words")
    runs: tuple[int, ...] = col("runs whose records name it")
    indices: tuple[int, ...] = col("its indices; several if its boards cannot be distinguished")
    compute_capability: str | None = col(
        "of a CUDA device, such as 9.0", missing=f"not a CUDA device, or {_NOT_GIVEN}", torch_name="major, minor; cc")
    arch: str | None = col(
        "sm_90, gfx942:sramecc+:xnack-, or for a CPU its machine type", missing=_NOT_GIVEN, torch_name="gcnArchName")
    memory_bytes: int | None = col(
        "its memory, in whole MiB as torch prints it", unit="B", missing=_NOT_GIVEN, torch_name="total_memory")
    sm_count: int | None = col(
        "streaming multiprocessors, compute units, Xe cores; for a CPU the cores that torch counted", missing=_NOT_GIVEN,
        torch_name="multi_processor_count")
    l2_bytes: int | None = col(
        "level-2 cache, in whole MiB as torch prints it", unit="B", missing=_NOT_GIVEN, torch_name="L2_cache_size")
    warp_size: int | None = col("threads of a warp or wavefront", missing=_NOT_GIVEN, torch_name="warp_size")
    uuid: str | None = col(
        "identifies this board", missing="not recorded (before 2.5), or only its model is known", torch_name="uuid")
    pci: str | None = col(
        "domain:bus:device, in hexadecimal as drivers print it", missing="not recorded (before 2.8)",
        torch_name="pci_domain_id, pci_bus_id, pci_device_id")
    properties: str = col("other recorded properties, as JSON; for a newer torch also properties that cachescope does not know")
    peak_fp64_tflops: float | None = col(_PEAK.format("fp64"), unit="TFLOPS", missing=_NO_SHEET)
    peak_fp32_tflops: float | None = col(_PEAK.format("fp32"), unit="TFLOPS", missing=_NO_SHEET)
    peak_tf32_tflops: float | None = col(_PEAK.format("tf32"), unit="TFLOPS", missing=_NO_SHEET)
    peak_bf16_tflops: float | None = col(_PEAK.format("bf16"), unit="TFLOPS", missing=_NO_SHEET)
    peak_fp16_tflops: float | None = col(_PEAK.format("fp16"), unit="TFLOPS", missing=_NO_SHEET)
    peak_fp8_tflops: float | None = col(_PEAK.format("fp8"), unit="TFLOPS", missing=_NO_SHEET)
    peak_int8_tops: float | None = col(_PEAK.format("int8"), unit="TOPS", missing=_NO_SHEET)
    peak_fp4_tflops: float | None = col(_PEAK.format("fp4"), unit="TFLOPS", missing=_NO_SHEET)
    sparsity_factor: float | None = col(
        "the factor by which 2:4 sparsity multiplies rates of the matrix units; no rate here includes it",
        missing="no datasheet matched, or it has none")
    datasheet_bandwidth_gbs: float | None = col("memory bandwidth according to the datasheet", unit="GB/s", missing=_NO_SHEET)
    datasheet_memory_gb: float | None = col("memory according to the datasheet", unit="GB", missing=_NO_SHEET)
    datasheet: str | None = col("the model whose datasheet it is", missing="none matched")
    matched_by: str | None = col("how the name was matched to the datasheet, or why not", missing="it has no name")
    source: str | None = col("the datasheet: its title and address", missing="none matched")
    datasheet_note: str | None = col(
        "which rates were halved because the datasheet gives them with sparsity, and other notes", missing="nothing to note")

    @property
    def rates(self) -> list[tuple[str, float, str]]:
        """The peak dense rates of its datasheet: dtype, rate and unit."""
        known = ((dtype, getattr(self, column), column) for dtype, column in RATE_COLUMNS.items())
        units = {True: "TOPS", False: "TFLOPS"}
        return [(dtype, rate, units[column.endswith("_tops")]) for dtype, rate, column in known if rate is not None]


@row("device_measurements")
class MeasurementRow:
    """One rate measured on one device of this machine, with its datasheet."""

    index: int = col("index of the device")
    name: str = col("its name")
    what: str = col("copy bandwidth, or matmul with its dtype")
    measured: float = col("the rate", unit="GB/s for a copy, TFLOPS for a matmul")
    datasheet: float | None = col("the peak", unit="as measured", missing="no datasheet matched, or it has no such figure")
    share: float | None = col("measured / datasheet", missing="no datasheet figure")

# fmt: on

RATE_COLUMNS: Final = {
    name.split("_")[1]: name for name in DeviceRow.__dataclass_fields__ if name.startswith("peak_")
}
"""The column of each dtype's rate, the dtypes as datasheets name them."""
