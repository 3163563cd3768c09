"""Frames of devices: every device seen in a source, with its datasheet, and rates measured on this machine."""

from __future__ import annotations

from typing import Final

from cachescope.columns import REAL, TEXT, TUPLE, WHOLE, Column, Frame

_NOT_SAID: Final = "no place that names the device says"
_NO_SHEET: Final = "no datasheet matched, or it gives none"
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
    "one device seen anywhere; without a uuid all boards of one name are one row",
    (
        Column("device", WHOLE, "number of the device"),
        Column("name", TEXT, "its name; where none is known its type, with its architecture or index"),
        Column("type", TEXT, "cuda, hip, xpu, cpu, mps, …", torch_name="torch.device.type; hip as DeviceProperties has it"),
        Column("seen_in", TUPLE, "where it was seen, in words"),
        Column("runs", TUPLE, "runs whose records name it"),
        Column("indices", TUPLE, "indices it is called by; several where its boards cannot be told apart"),
        Column("compute_capability", TEXT, "of a CUDA device, such as 9.0", missing=f"no CUDA device, or {_NOT_SAID}",
               torch_name="major, minor; cc"),
        Column("arch", TEXT, "sm_90, gfx942:sramecc+:xnack-, or of a CPU its machine", missing=_NOT_SAID,
               torch_name="gcnArchName"),
        Column("memory_bytes", WHOLE, "its memory, in whole MiB as torch prints it", "B", _NOT_SAID, "total_memory"),
        Column("sm_count", WHOLE, "streaming multiprocessors, compute units, Xe cores; of a CPU the cores torch counted",
               missing=_NOT_SAID, torch_name="multi_processor_count"),
        Column("l2_bytes", WHOLE, "level-2 cache, in whole MiB as torch prints it", "B", _NOT_SAID, "L2_cache_size"),
        Column("warp_size", WHOLE, "threads of a warp or wavefront", missing=_NOT_SAID, torch_name="warp_size"),
        Column("uuid", TEXT, "tells this board from every other", missing="not said (before 2.5), or only its model is known",
               torch_name="uuid"),
        Column("pci", TEXT, "domain:bus:device, in hexadecimal as drivers print it", missing="not said (before 2.8)",
               torch_name="pci_domain_id, pci_bus_id, pci_device_id"),
        Column("properties", TEXT, "what else was said, as JSON; of a newer torch also what cachescope does not know"),
        *(
            Column(column, REAL, f"peak dense rate of {dtype} by the datasheet",
                   "TOPS" if column.endswith("_tops") else "TFLOPS", _NO_SHEET)
            for dtype, column in RATE_COLUMNS.items()
        ),
        Column("sparsity_factor", REAL, "what 2:4 sparsity multiplies rates of the matrix units by; no rate here has it in it",
               missing="no datasheet matched, or it names none"),
        Column("datasheet_bandwidth_gbs", REAL, "memory bandwidth by the datasheet", "GB/s", _NO_SHEET),
        Column("datasheet_memory_gb", REAL, "memory by the datasheet", "GB", _NO_SHEET),
        Column("datasheet", TEXT, "the model whose datasheet it is", missing="none matched"),
        Column("matched_by", TEXT, "how the name led to the datasheet, or why to none", missing="it has no name"),
        Column("source", TEXT, "the datasheet: its title and address", missing="none matched"),
        Column("datasheet_note", TEXT, "which rates were halved because it prints them with sparsity, and what else to know",
               missing="nothing to note"),
    ),
)  # fmt: skip

DEVICE_MEASUREMENTS: Final = Frame(
    "device_measurements",
    "one rate measured on one device of this machine, beside its datasheet",
    (
        Column("index", WHOLE, "index of the device"),
        Column("name", TEXT, "its name"),
        Column("what", TEXT, "copy bandwidth, or matmul with its dtype"),
        Column("measured", REAL, "the rate", "GB/s for a copy, TFLOPS for a matmul"),
        Column("datasheet", REAL, "the peak", "as measured", "no datasheet matched, or it gives none"),
        Column("share", REAL, "measured / datasheet", missing="no datasheet figure"),
    ),
)
