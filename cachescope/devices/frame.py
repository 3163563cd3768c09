"""The frame devices: every device that a scope's sources name, with its datasheet."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pandas as pd

from cachescope.details import HashDetails
from cachescope.devices.datasheets import Match, match_datasheet
from cachescope.devices.mention import FACTS, Mention
from cachescope.devices.merging import Device, merged
from cachescope.devices.named import in_contexts, in_entries, in_hash_details, in_timings
from cachescope.frames.devices import DEVICES, RATE_COLUMNS


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
    return frame_of(
        [
            *in_contexts(contexts, runs),
            *in_hash_details(lookups, entries, details),
            *in_timings(autotune),
            *in_entries(entries),
        ]
    )


def frame_of(mentions: Iterable[Mention]) -> pd.DataFrame:
    """The frame devices, from mentions of any origin."""
    return DEVICES.build(_row(number, device) for number, device in enumerate(merged(mentions)))


def _row(number: int, device: Device) -> dict[str, Any]:
    match = None if device.name is None else match_datasheet(device.name, device.facts.get("memory_bytes"))
    return {
        "device": number,
        "name": device.name or _stand_in(device),
        "type": device.type,
        "seen_in": tuple(device.places),
        "runs": tuple(sorted(device.runs)),
        "indices": tuple(sorted(device.indices)),
        **{fact: device.facts.get(fact) for fact in FACTS},
        "properties": json.dumps(device.properties, sort_keys=True, ensure_ascii=False),
        **_figures(match),
    }


def _stand_in(device: Device) -> str:
    if device.type == "cpu":
        return "cpu"
    if arch := device.facts.get("arch"):
        return f"{device.type} {arch}"
    return ", ".join(f"{device.type}:{index}" for index in sorted(device.indices)) or device.type


def _figures(match: Match | None) -> dict[str, Any]:
    sheet = match.datasheet if match else None
    dense = sheet.dense if sheet else {}
    return {
        **{column: dense.get(dtype) for dtype, column in RATE_COLUMNS.items()},
        "sparsity_factor": sheet.sparsity_factor if sheet else None,
        "datasheet_bandwidth_gbs": sheet.bandwidth_gbs if sheet else None,
        # One sheet may cover boards of several sizes.
        "datasheet_memory_gb": sheet.memory_gb[0] if sheet and len(sheet.memory_gb) == 1 else None,
        "datasheet": sheet.model if sheet else None,
        "matched_by": match.matched_by if match else None,
        "source": sheet.source if sheet else None,
        "datasheet_note": sheet.note if sheet else None,
    }
