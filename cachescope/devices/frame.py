"""The frame devices: every device that a scope's sources name, its mentions merged, with its datasheet.

A mention that identifies less than a board (a name, an architecture, an index) joins a device only if it can mean
no other. A mention that cannot be placed becomes a device of its own, with what is known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import pandas as pd

from cachescope.columns import frame_of
from cachescope.details import HashDetails
from cachescope.devices.datasheets import match_datasheet
from cachescope.devices.mention import FACTS, Mention
from cachescope.devices.named import in_contexts, in_entries, in_hash_details, in_timings
from cachescope.frames.device_rows import DeviceRow

# Inputs of a graph, and torch's names, call a ROCm device "cuda", too.
_SPELLED_CUDA: Final = frozenset({"cuda", "hip"})


@dataclass(slots=True)
class Device:
    """One device, gathered from its mentions."""

    type: str
    name: str | None
    compute_capability: str | None = None
    arch: str | None = None
    memory_bytes: int | None = None
    sm_count: int | None = None
    l2_bytes: int | None = None
    warp_size: int | None = None
    uuid: str | None = None
    pci: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    places: dict[str, None] = field(default_factory=dict)
    runs: set[int] = field(default_factory=set)
    indices: set[int] = field(default_factory=set)
    host: str | None = None

    def add(self, mention: Mention) -> None:
        """Add the facts of a mention; facts that are already known stay."""
        for fact in FACTS:
            if getattr(self, fact) is None:
                setattr(self, fact, getattr(mention, fact))
        self.name = self.name or mention.name
        self.host = self.host or mention.host
        self.properties = {**dict(mention.properties), **self.properties}
        self.places.setdefault(mention.place)
        self.runs |= mention.runs
        self.indices |= set() if mention.index is None else {mention.index}

    def agrees(self, mention: Mention) -> bool:
        """Whether nothing in the mention contradicts this device."""
        if mention.type != self.type and not {mention.type, self.type} <= _SPELLED_CUDA:
            return False
        if mention.name is not None and self.name is not None and mention.name != self.name:
            return False
        if mention.host is not None and self.host is not None and mention.host != self.host:
            return False
        if not _same_arch(mention.arch, self.likely_arch):
            return False
        others = [fact for fact in FACTS if fact not in ("arch", "compute_capability")]
        return all(
            None in (known := (getattr(mention, fact), getattr(self, fact))) or known[0] == known[1]
            for fact in others
        )

    @property
    def likely_arch(self) -> str | None:
        """Its architecture as recorded, else that of the model with its name."""
        if self.arch is not None or self.name is None:
            return self.arch
        sheet = match_datasheet(self.name).datasheet
        return sheet.arch if sheet else None


def merged(mentions: Iterable[Mention]) -> list[Device]:
    """The devices that mentions refer to, the best known first."""
    stages: list[list[Mention]] = [[], [], [], []]
    for mention in dict.fromkeys(mentions):
        stages[_stage(mention)].append(mention)
    devices: list[Device] = []
    for stage, place in zip(stages, (_by_uuid, _by_name, _by_the_rest, _by_the_rest), strict=True):
        for mention in stage:
            place(mention, devices)
    return devices


def _stage(mention: Mention) -> int:
    if mention.uuid is not None:
        return 0
    if mention.name is not None:
        return 1
    return 2 if mention.arch is not None else 3


def _by_uuid(mention: Mention, devices: list[Device]) -> None:
    """Join by uuid, whatever else differs: drivers and torch count the memory of a board differently."""
    _join(mention, devices, lambda device: device.uuid == mention.uuid)


def _by_name(mention: Mention, devices: list[Device]) -> None:
    """Join a name without a uuid to the one board with a uuid in the same process, else to any board of that name."""
    here = [
        device
        for device in devices
        if device.uuid is not None
        and device.name == mention.name
        and device.agrees(mention)
        and _is_near(mention, device)
    ]
    if len(here) == 1:
        here[0].add(mention)
        return
    _join(
        mention,
        devices,
        lambda device: device.name == mention.name and device.uuid is None and device.agrees(mention),
    )


def _by_the_rest(mention: Mention, devices: list[Device]) -> None:
    """Join an architecture, an index or a type to the only device that it can mean; else make a device of its own."""
    fitting = [device for device in devices if device.agrees(mention)]
    near = [device for device in fitting if _is_near(mention, device)]
    # A run names its own devices; a directory may name any. All CPUs are treated alike.
    candidates = near if near or (mention.runs and mention.type != "cpu") else fitting
    if len(candidates) == 1:
        candidates[0].add(mention)
    elif not candidates or mention.index is not None:
        _join(mention, devices, lambda device: _is_bare(device, mention))
    # Otherwise it is one of several, and unknown which: no row would gain from it.


def _is_near(mention: Mention, device: Device) -> bool:
    """Whether both are from one process, and the index of the device, if any, is the same."""
    if not mention.runs & device.runs:
        return False
    return mention.index is None or not device.indices or mention.index in device.indices


def _is_bare(device: Device, mention: Mention) -> bool:
    """Whether no more is known of a device than of a mention: the same architecture, or the same index."""
    if device.name is not None or device.type != mention.type or not device.agrees(mention):
        return False
    if mention.arch is not None:
        return _same_arch(mention.arch, device.arch) and device.arch is not None
    return device.arch is None and (mention.index is None or device.indices == {mention.index})


def _join(mention: Mention, devices: list[Device], fits: Callable[[Device], bool]) -> None:
    for device in devices:
        if fits(device):
            device.add(mention)
            return
    device = Device(mention.type, mention.name)
    device.add(mention)
    devices.append(device)


def _same_arch(one: str | None, other: str | None) -> bool:
    """Whether two architectures can be the same; features (``:sramecc+:xnack-``) count only if both have them."""
    if one is None or other is None or one == other:
        return True
    if _base(one) != _base(other):
        return False
    return not (":" in one and ":" in other)


def _base(arch: str) -> str:
    # sm_90a is sm_90 with instructions that no other architecture has.
    base = arch.split(":")[0]
    return base.removesuffix("a") if base.startswith("sm_") else base


def devices_frame(
    contexts: pd.DataFrame,
    runs: pd.DataFrame,
    lookups: pd.DataFrame,
    entries: pd.DataFrame,
    autotune: pd.DataFrame,
    details: HashDetails,
) -> pd.DataFrame:
    """The frame devices."""
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
