"""The frame devices: every device that a scope's sources name, with its datasheet."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pandas as pd

from cachescope.columns import frame_of
from cachescope.details import HashDetails
from cachescope.devices.datasheets import match_datasheet
from cachescope.devices.mention import Mention
from cachescope.devices.merging import Device, merged
from cachescope.devices.named import in_contexts, in_entries, in_hash_details, in_timings
from cachescope.frames.device_rows import DeviceRow


def devices_frame(
    contexts: pd.DataFrame,
    runs: pd.DataFrame,
    lookups: pd.DataFrame,
    entries: pd.DataFrame,
    autotune: pd.DataFrame,
    details: HashDetails,
) -> pd.DataFrame:
    """The frame devices.

    Parameters
    ----------
    contexts, runs, lookups, entries, autotune : DataFrame
        The frames of these names. For entries, files are opened again: generated code, one kernel of each Triton
        target, and metadata of AOTInductor. Files that are gone by then contribute nothing.
    details : HashDetails
        The hash details that lookups and entries point to.
    """
    return frame_of_mentions(
        [
            *in_contexts(contexts, runs),
            *in_hash_details(lookups, entries, details),
            *in_timings(autotune),
            *in_entries(entries),
        ]
    )


def frame_of_mentions(mentions: Iterable[Mention]) -> pd.DataFrame:
    """The frame devices, from mentions of any origin."""
    return frame_of((_row(number, device) for number, device in enumerate(merged(mentions))), DeviceRow)


def _row(number: int, device: Device) -> DeviceRow:
    match = None if device.name is None else match_datasheet(device.name, device.memory_bytes)
    sheet = match.datasheet if match else None
    dense = sheet.dense if sheet else {}
    return DeviceRow(
        device=number,
        name=device.name or _stand_in(device),
        type=device.type,
        seen_in=tuple(device.places),
        runs=tuple(sorted(device.runs)),
        indices=tuple(sorted(device.indices)),
        compute_capability=device.compute_capability,
        arch=device.arch,
        memory_bytes=device.memory_bytes,
        sm_count=device.sm_count,
        l2_bytes=device.l2_bytes,
        warp_size=device.warp_size,
        uuid=device.uuid,
        pci=device.pci,
        properties=json.dumps(device.properties, sort_keys=True, ensure_ascii=False),
        peak_fp64_tflops=dense.get("fp64"),
        peak_fp32_tflops=dense.get("fp32"),
        peak_tf32_tflops=dense.get("tf32"),
        peak_bf16_tflops=dense.get("bf16"),
        peak_fp16_tflops=dense.get("fp16"),
        peak_fp8_tflops=dense.get("fp8"),
        peak_int8_tops=dense.get("int8"),
        peak_fp4_tflops=dense.get("fp4"),
        sparsity_factor=sheet.sparsity_factor if sheet else None,
        datasheet_bandwidth_gbs=sheet.bandwidth_gbs if sheet else None,
        # One sheet may cover boards of several sizes.
        datasheet_memory_gb=sheet.memory_gb[0] if sheet and len(sheet.memory_gb) == 1 else None,
        datasheet=sheet.model if sheet else None,
        matched_by=match.matched_by if match else None,
        source=sheet.source if sheet else None,
        datasheet_note=sheet.note if sheet else None,
    )


def _stand_in(device: Device) -> str:
    if device.type == "cpu":
        return "cpu"
    if device.arch:
        return f"{device.type} {device.arch}"
    return ", ".join(f"{device.type}:{index}" for index in sorted(device.indices)) or device.type
