"""Frames of devices: every device seen in a source, with its datasheet, and rates measured on this machine."""

from __future__ import annotations

from typing import Final

from cachescope.columns import REAL, TEXT, TUPLE, WHOLE, Column, Frame

_NOT_GIVEN: Final = "no source that names the device has it"
_NO_SHEET: Final = "no datasheet matched, or it has no such figure"
# Names of dtypes as datasheets write them, and the unit their rates are in.
RATES: Final = {
    "fp64": "tflops",
    "fp32": "tflops",
    "tf32": "tflops",
    "bf16": "tflops",
    "fp16": "tflops",
    "fp8": "tflops",
    "int8": "tops",
    "fp4": "tflops",
}
RATE_COLUMNS: Final = {dtype: f"peak_{dtype}_{unit}" for dtype, unit in RATES.items()}

DEVICES: Final = Frame(
    "devices",
    "one device seen in any source; without a uuid, all boards with the same name are one row",
    (
        Column("device", WHOLE, "number of the device"),
        Column("name", TEXT, "its name; if not known, its type with its architecture or index"),
        Column("type", TEXT, "cuda, hip, xpu, cpu, mps, …", torch_name="torch.device.type; hip as DeviceProperties has it"),
        Column("seen_in", TUPLE, "where it was seen, in words"),
        Column("runs", TUPLE, "runs whose records name it"),
        Column("indices", TUPLE, "its indices; several if its boards cannot be distinguished"),
        Column("compute_capability", TEXT, "of a CUDA device, such as 9.0", missing=f"not a CUDA device, or {_NOT_GIVEN}",
               torch_name="major, minor; cc"),
        Column("arch", TEXT, "sm_90, gfx942:sramecc+:xnack-, or for a CPU its machine type", missing=_NOT_GIVEN,
               torch_name="gcnArchName"),
        Column("memory_bytes", WHOLE, "its memory, in whole MiB as torch prints it", "B", _NOT_GIVEN, "total_memory"),
        Column("sm_count", WHOLE, "streaming multiprocessors, compute units, Xe cores; for a CPU the cores that torch counted",
               missing=_NOT_GIVEN, torch_name="multi_processor_count"),
        Column("l2_bytes", WHOLE, "level-2 cache, in whole MiB as torch prints it", "B", _NOT_GIVEN, "L2_cache_size"),
        Column("warp_size", WHOLE, "threads of a warp or wavefront", missing=_NOT_GIVEN, torch_name="warp_size"),
        Column("uuid", TEXT, "identifies this board", missing="not recorded (before 2.5), or only its model is known",
               torch_name="uuid"),
        Column("pci", TEXT, "domain:bus:device, in hexadecimal as drivers print it", missing="not recorded (before 2.8)",
               torch_name="pci_domain_id, pci_bus_id, pci_device_id"),
        Column("properties", TEXT, "other recorded properties, as JSON; for a newer torch also properties that cachescope does not know"),
        *(
            Column(column, REAL, f"peak dense rate of {dtype} according to the datasheet",
                   "TOPS" if column.endswith("_tops") else "TFLOPS", _NO_SHEET)
            for dtype, column in RATE_COLUMNS.items()
        ),
        Column("sparsity_factor", REAL, "the factor by which 2:4 sparsity multiplies rates of the matrix units; no rate here includes it",
               missing="no datasheet matched, or it has none"),
        Column("datasheet_bandwidth_gbs", REAL, "memory bandwidth according to the datasheet", "GB/s", _NO_SHEET),
        Column("datasheet_memory_gb", REAL, "memory according to the datasheet", "GB", _NO_SHEET),
        Column("datasheet", TEXT, "the model whose datasheet it is", missing="none matched"),
        Column("matched_by", TEXT, "how the name was matched to the datasheet, or why not", missing="it has no name"),
        Column("source", TEXT, "the datasheet: its title and address", missing="none matched"),
        Column("datasheet_note", TEXT, "which rates were halved because the datasheet gives them with sparsity, and other notes",
               missing="nothing to note"),
    ),
)  # fmt: skip

DEVICE_MEASUREMENTS: Final = Frame(
    "device_measurements",
    "one rate measured on one device of this machine, with its datasheet",
    (
        Column("index", WHOLE, "index of the device"),
        Column("name", TEXT, "its name"),
        Column("what", TEXT, "copy bandwidth, or matmul with its dtype"),
        Column("measured", REAL, "the rate", "GB/s for a copy, TFLOPS for a matmul"),
        Column(
            "datasheet", REAL, "the peak", "as measured", "no datasheet matched, or it has no such figure"
        ),
        Column("share", REAL, "measured / datasheet", missing="no datasheet figure"),
    ),
)
