"""The rows of devices: every place that names one, the mentions of one device merged, with its datasheet.

Devices are named in snapshots, hash details, entries, Triton targets and generated code. A mention that identifies less than a board (a
name, an architecture, an index) joins a device only if it can mean no other. A mention that cannot be placed becomes a device of its own,
with what is known.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain
from typing import Any, Final

from cachescope.components import parse_component
from cachescope.details import HashDetails
from cachescope.devices.datasheets import match_datasheet, match_shape
from cachescope.devices.mention import FACTS, Mention, of_kernel, of_name, of_properties, of_target
from cachescope.errors import NotFoundError
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.device_rows import RATE_COLUMNS, DeviceRow
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.json_types import JsonObject
from cachescope.keys.device_text import kernel_device_parts
from cachescope.readers.cache_file import DamagedContent, load_object, read_steady
from cachescope.readers.directory.aotinductor import metadata_in
from cachescope.readers.directory.bundles import entries_inside
from cachescope.readers.reading import Reading
from cachescope.rows import like
from cachescope.terms import AOTINDUCTOR, AUTOTUNE, BUNDLES, CODE, TRITON
from cachescope.wording import harmless

_TENSOR_DEVICE: Final = re.compile(r"\bdevice=device\(type='(\w+)'(?:, index=(\d{1,6}))?\)")
_SYSTEM_NAME: Final = re.compile(r"\{.*?'name': (['\"])(?P<name>(?:\\.|(?!\1|\\).)*+)\1[,}]", re.DOTALL)
_DEVICE_FIELD: Final = re.compile(r"system_info\[device\]|example_inputs\[.*|default_cuda_device_index")
_ARCH: Final = re.compile(r"arch ([^,]+)")
_MOST_BYTES: Final = 16 << 20

_Indices = tuple[tuple[str, int | None], ...]


def _in_context(row: ContextRow) -> Iterator[Mention]:
    """Mentions in a snapshot, of the devices of its process and its CPU."""
    runs = frozenset(() if row.run is None else (row.run,))
    counted: dict[str, int] = {}
    for text in row.device_properties:
        # In the order of their indices, one type after the other (`cachescope.capture`).
        kind = text.split("(", 1)[0]
        index = counted[kind] = counted.get(kind, -1) + 1
        if mention := of_properties(text, "snapshot", index=index, runs=runs):
            yield mention
    if mention := of_properties(row.accelerator_properties or "", "isolation context", runs=runs):
        yield mention
    if row.platform is not None:
        settings = json.loads(row.settings or "{}")
        capability = settings.get("torch.backends.cpu.get_cpu_capability()")
        kept = (("cpu_capability", str(capability)),) if capability else ()
        arch = _machine(row.platform)
        yield Mention("snapshot", "cpu", runs=runs, host=row.host, arch=arch, properties=kept)


def _machine(platform: str) -> str | None:
    """The machine in ``platform.platform()``, such as ``x86_64``."""
    found = re.search(r"x86_64|AMD64|aarch64|arm64|ppc64le|s390x|riscv64", platform)
    return found[0] if found else None


def _in_runs(runs: Iterable[RunRow]) -> Iterator[Mention]:
    """Mentions in the scripts that run a graph again, which torch records of every graph that it compiles."""
    for row in runs:
        yield from (of_name(name, "traces", runs=frozenset({row.run})) for name in row.gpus)


def _in_hash_details(
    lookups: Iterable[LookupRow], entries: Iterable[EntryRow], details: HashDetails
) -> Iterator[Mention]:
    """Mentions in keys: the name in ``system_info``, and the devices of their inputs."""
    of_set: dict[int, set[int]] = {}
    for row in lookups:
        if row.detail_set is not None:
            of_set.setdefault(row.detail_set, set()).add(row.run)
    stored = {row.detail_set for row in entries if row.detail_set is not None} - of_set.keys()
    is_of_devices = [_DEVICE_FIELD.fullmatch(field) is not None for field in details.fields]
    # Most keys of a job name the same devices.
    named = cache(partial(_in_set, details))
    for code, runs in [*of_set.items(), *((code, set[int]()) for code in sorted(stored))]:
        same = tuple(one for one in details.sets[code] if is_of_devices[details.field_codes[one]])
        place = "keys of lookups" if runs else "keys of entries"
        yield from _mentions(*named(same), frozenset(runs), place)


def _in_set(details: HashDetails, codes: Iterable[int]) -> tuple[str | None, _Indices]:
    """The name in a set of hash details, and the types and indices of devices."""
    found = [detail for code in codes if (detail := parse_component(details.components[code]))]
    named = [detail.value_text for detail in found if detail.field == "system_info[device]"]
    name = next((match["name"] for text in named if (match := _SYSTEM_NAME.match(text))), None)
    indices: dict[tuple[str, int | None], None] = {}
    for detail in found:
        if detail.field == "default_cuda_device_index" and detail.value_text.isdecimal():
            indices.setdefault(("cuda", int(detail.value_text[:6])))
        for device_type, index in _TENSOR_DEVICE.findall(detail.value_text):
            indices.setdefault((device_type, int(index) if index else None))
    return name, tuple(indices)


def _mentions(name: str | None, indices: _Indices, runs: frozenset[int], place: str) -> Iterator[Mention]:
    if name is not None:
        yield of_name(name, place, runs=runs)
    for device_type, at in indices:
        if name is not None and device_type != "cpu":
            yield of_name(name, place, runs=runs, index=at)
        else:
            yield Mention(place, device_type, runs=runs, index=at)


def _in_entries(entries: Iterable[EntryRow]) -> Iterator[Mention]:
    """Mentions in files of a cache directory; a file is opened again only if it may add to the frame."""
    targets: dict[tuple[str, str], str] = {}
    types: dict[str, None] = {}
    seen: set[str | None] = set()  # keys of generated code
    for file in entries:
        if file.cache == AUTOTUNE and file.name is not None:
            # What it holds, without how many, and of which versions.
            yield of_name(file.name, (file.detail or "").partition(" ")[2])
        arch = _ARCH.match(file.detail or "") if file.cache == TRITON else None
        for device_type in file.device_types:
            if arch is not None:
                # There are many kernels for one target; one of them is enough.
                targets.setdefault((device_type, arch[1]), file.path)
            else:
                types.setdefault(device_type)
        if file.path.endswith("metadata.json"):
            yield from _in_aoti(_object(file.path))
        for metadata in metadata_in(file.path) if file.cache == AOTINDUCTOR else ():
            yield from _in_aoti(metadata)
        is_code = file.cache == CODE and file.status == "ok" and file.path.endswith(".py")
        if is_code and file.cache_key not in seen:
            seen.add(file.cache_key)
            yield from _in_code(_content(file.path), "generated code")
        for entry in (file, *(entries_inside(file.path, Reading()) if file.cache in BUNDLES else ())):
            if entry.source_code is not None and entry.code_key not in seen:
                seen.add(entry.code_key)
                yield from _in_code(entry.source_code.encode("utf-8", "replace"), "entries")
    for (backend, name), path in targets.items():
        yield of_target(backend, name, _warp_size(path), "Triton targets")
    yield from (Mention("entries", device_type) for device_type in types)


def _in_code(data: bytes, place: str) -> Iterator[Mention]:
    if b"DeviceProperties(" in data:
        for parts in kernel_device_parts(data.decode("utf-8", "backslashreplace")):
            yield of_kernel(parts, place)


def _in_aoti(said: Mapping[str, object]) -> Iterator[Mention]:
    """Mentions in the metadata that AOTInductor writes next to its library.

    Mirrors ``get_device_information`` (torch/_inductor/codecache.py, 2.10 to 2.15).
    """
    metadata = {key: value for key, value in said.items() if key.startswith("AOTI_")}
    if not metadata:
        return
    others = tuple((key, str(metadata[key])) for key in ("AOTI_PLATFORM", "AOTI_CPU_ISA") if key in metadata)
    machine = metadata.get("AOTI_MACHINE")
    yield Mention("AOTI metadata", "cpu", arch=str(machine) if machine else None, properties=others)
    if capability := str(metadata.get("AOTI_COMPUTE_CAPABILITY") or ""):
        # An XPU writes it as a dict without its type.
        device_type = "hip" if capability.startswith("gfx") else "cuda" if capability.isdecimal() else "xpu"
        yield of_kernel({"type": device_type, "cc": capability}, "AOTI metadata")


def _warp_size(path: str) -> int | None:
    target = _object(path).get("target")
    size = target.get("warp_size") if isinstance(target, dict) else None
    return size if isinstance(size, int) and not isinstance(size, bool) else None


def _object(path: str) -> JsonObject:
    try:
        return load_object(_content(path))
    except DamagedContent:
        return {}


def _content(path: str) -> bytes:
    """Read the file again; empty if it is gone by now, or no source has it any more."""
    try:
        data, _ = read_steady(os.path.abspath(path), _MOST_BYTES)
    except (OSError, ValueError):
        return b""
    return data


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
    of_contexts, of_keys = map(_in_context, contexts), _in_hash_details(lookups, entries, details)
    return device_rows(chain(*of_contexts, _in_runs(runs), of_keys, _in_entries(entries)))


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
    return like(
        DeviceRow,
        known,
        device=number,
        name=known.name or _stand_in(device),
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
        **rates,
    )


def _stand_in(device: Device) -> str:
    known = device.known
    if known.type == "cpu":
        return "cpu"
    if known.arch:
        return f"{known.type} {known.arch}"
    return ", ".join(f"{known.type}:{index}" for index in sorted(device.indices)) or known.type
