"""The rows of devices: every device that a scope's sources name, its mentions merged, with its datasheet.

A mention that identifies less than a board (a name, an architecture, an index) joins a device only if it can mean
no other. A mention that cannot be placed becomes a device of its own, with what is known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final

from cachescope.details import HashDetails
from cachescope.devices.datasheets import match_datasheet, match_shape
from cachescope.devices.mention import FACTS, Mention
from cachescope.devices.named import in_context, in_entries, in_hash_details, in_runs
from cachescope.errors import NotFoundError
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.device_rows import RATE_COLUMNS, DeviceRow
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.wording import harmless

# Inputs of a graph, and torch's names, call a ROCm device "cuda", too.
_SPELLED_CUDA: Final = frozenset({"cuda", "hip"})


@dataclass(slots=True)
class Device:
    """One device, gathered from its mentions."""

    known: Mention  # what they report together; what the first of them reports stays
    places: dict[str, None] = field(default_factory=dict)
    runs: set[int] = field(default_factory=set)
    indices: set[int] = field(default_factory=set)

    def add(self, mention: Mention) -> None:
        """Add what a mention reports."""
        lacking = [fact for fact in ("name", "host", *FACTS) if getattr(self.known, fact) is None]
        more = {fact: getattr(mention, fact) for fact in lacking}
        properties = {**dict(mention.properties), **dict(self.known.properties)}
        self.known = replace(self.known, properties=tuple(properties.items()), **more)
        self.places.setdefault(mention.place)
        self.runs |= mention.runs
        self.indices |= set() if mention.index is None else {mention.index}

    def agrees(self, mention: Mention) -> bool:
        """Whether nothing in the mention contradicts this device."""
        known = self.known
        if mention.type != known.type and not {mention.type, known.type} <= _SPELLED_CUDA:
            return False
        # One architecture is spelled in several ways, and says what the capability does.
        facts = (*(fact for fact in FACTS if fact not in ("arch", "compute_capability")), "name", "host")
        pairs = ((getattr(mention, fact), getattr(known, fact)) for fact in facts)
        is_same = all(None in pair or pair[0] == pair[1] for pair in pairs)
        return is_same and _same_arch(mention.arch, self.likely_arch)

    @property
    def likely_arch(self) -> str | None:
        """Its architecture as recorded, else that of the model with its name."""
        if self.known.arch is not None or self.known.name is None:
            return self.known.arch
        sheet = match_datasheet(self.known.name).datasheet
        return sheet.arch if sheet else None


def merged(mentions: Iterable[Mention]) -> list[Device]:
    """The devices that mentions refer to, the best known first."""
    devices: list[Device] = []
    for mention in sorted(dict.fromkeys(mentions), key=_stage):
        (_by_uuid, _by_name, _by_the_rest, _by_the_rest)[_stage(mention)](mention, devices)
    return devices


def _stage(mention: Mention) -> int:
    if mention.uuid is not None:
        return 0
    if mention.name is not None:
        return 1
    return 2 if mention.arch is not None else 3


def _by_uuid(mention: Mention, devices: list[Device]) -> None:
    """Join by uuid, whatever else differs: drivers and torch count the memory of a board differently."""
    _join(mention, devices, lambda device: device.known.uuid == mention.uuid)


def _by_name(mention: Mention, devices: list[Device]) -> None:
    """Join a name without a uuid to the one board with a uuid in the same process, else to any board of that name."""

    def is_of_name(device: Device) -> bool:
        return device.known.name == mention.name and device.agrees(mention)

    boards = [device for device in devices if device.known.uuid is not None and is_of_name(device)]
    here = [device for device in boards if _is_near(mention, device)]
    if len(here) == 1:
        here[0].add(mention)
    else:
        _join(mention, devices, lambda device: device.known.uuid is None and is_of_name(device))


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
    known = device.known
    if known.name is not None or known.type != mention.type or not device.agrees(mention):
        return False
    if mention.arch is not None:
        return _same_arch(mention.arch, known.arch) and known.arch is not None
    return known.arch is None and (mention.index is None or device.indices == {mention.index})


def _join(mention: Mention, devices: list[Device], fits: Callable[[Device], bool]) -> None:
    for device in devices:
        if fits(device):
            device.add(mention)
            return
    devices.append(Device(mention))
    devices[-1].add(mention)


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


def named_devices(
    contexts: Iterable[ContextRow],
    runs: Sequence[RunRow],
    lookups: Iterable[LookupRow],
    entries: Sequence[EntryRow],
    details: HashDetails,
) -> list[DeviceRow]:
    """Every device that is named in what was read."""
    return device_rows(
        [
            *chain.from_iterable(map(in_context, contexts)),
            *in_runs(runs),
            *in_hash_details(lookups, entries, details),
            *in_entries(entries),
        ]
    )


def device_rows(mentions: Iterable[Mention]) -> list[DeviceRow]:
    """The devices that mentions of any origin refer to."""
    return [_row(number, device) for number, device in enumerate(merged(mentions))]


def device_named(devices: Sequence[DeviceRow], which: int | str) -> DeviceRow:
    """A device by its number, its name or its uuid; raises `NotFoundError`."""
    if isinstance(which, str):
        found = [row for row in devices if which in (row.name, row.uuid)]
    else:
        found = [row for row in devices if row.device == which]
    if len(found) == 1:
        return found[0]
    names = ", ".join(f"{row.device} {harmless(row.name)[:80]}" for row in devices[:8])
    several = "several devices are called" if found else "no device"
    raise NotFoundError(f"{several} {which!r}; by number: {names or 'no source names a device'}")


def _row(number: int, device: Device) -> DeviceRow:
    known = device.known
    sheet, matched_by = None, match_shape(known.arch, known.sm_count)
    if known.name is not None:
        sheet, matched_by = match_datasheet(known.name, known.memory_bytes, known.sm_count)
    dense = sheet.dense if sheet else {}
    rates: dict[str, Any] = {column: dense.get(dtype) for dtype, column in RATE_COLUMNS.items()}
    return DeviceRow(
        device=number,
        name=known.name or _stand_in(device),
        type=known.type,
        seen_in=tuple(device.places),
        runs=tuple(sorted(device.runs)),
        indices=tuple(sorted(device.indices)),
        properties=json.dumps(dict(known.properties), sort_keys=True, ensure_ascii=False),
        sparsity_factor=sheet.sparsity_factor if sheet else None,
        datasheet_bandwidth_gbs=sheet.bandwidth_gbs if sheet else None,
        # One sheet may cover boards of several sizes.
        datasheet_memory_gb=sheet.memory_gb[0] if sheet and len(sheet.memory_gb) == 1 else None,
        datasheet=sheet.model if sheet else None,
        matched_by=matched_by,
        source=sheet.source if sheet else None,
        datasheet_note=sheet.note if sheet else None,
        **{fact: getattr(known, fact) for fact in FACTS},
        **rates,
    )


def _stand_in(device: Device) -> str:
    known = device.known
    if known.type == "cpu":
        return "cpu"
    if known.arch:
        return f"{known.type} {known.arch}"
    return ", ".join(f"{known.type}:{index}" for index in sorted(device.indices)) or known.type
