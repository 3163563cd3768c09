"""Every place that names a device: snapshots, hash details, entries, Triton targets and generated code."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Final

from cachescope.components import parse_component
from cachescope.details import HashDetails
from cachescope.devices.mention import Mention, of_kernel, of_name, of_properties, of_target
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.json_types import JsonObject
from cachescope.keys.device_text import kernel_device_parts
from cachescope.readers.cache_file import DamagedContent, load_object, read_steady
from cachescope.readers.directory.aotinductor import metadata_in
from cachescope.readers.directory.bundles import entries_inside
from cachescope.readers.reading import Reading
from cachescope.terms import AOTINDUCTOR, AUTOTUNE, BUNDLES, CODE, TRITON

_TENSOR_DEVICE: Final = re.compile(r"\bdevice=device\(type='(\w+)'(?:, index=(\d{1,6}))?\)")
_SYSTEM_NAME: Final = re.compile(r"\{.*?'name': (['\"])(?P<name>(?:\\.|(?!\1|\\).)*+)\1[,}]", re.DOTALL)
_DEVICE_FIELD: Final = re.compile(r"system_info\[device\]|example_inputs\[.*|default_cuda_device_index")
_ARCH: Final = re.compile(r"arch ([^,]+)")
_MOST_BYTES: Final = 16 << 20

_Indices = tuple[tuple[str, int | None], ...]


def in_context(row: ContextRow) -> Iterator[Mention]:
    """Mentions in a snapshot, of the devices of its process and its CPU."""
    runs = frozenset(() if row.run is None else (row.run,))
    counted: dict[str, int] = {}
    for text in row.device_properties:
        # In the order of their indices, one type after the other (`cachescope.capture`).
        kind = text.split("(", 1)[0]
        index = counted[kind] = counted.get(kind, -1) + 1
        if mention := of_properties(text, "snapshot", index=index, runs=runs):
            yield mention
    if row.accelerator_properties is not None and (
        mention := of_properties(row.accelerator_properties, "isolation context", runs=runs)
    ):
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


def in_runs(runs: Iterable[RunRow]) -> Iterator[Mention]:
    """Mentions in the scripts that run a graph again, which torch records of every graph that it compiles."""
    for row in runs:
        for name in row.gpus:
            yield of_name(name, "traces", runs=frozenset({row.run}))


def in_hash_details(
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


def in_entries(entries: Iterable[EntryRow]) -> Iterator[Mention]:
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
    for device_type in types:
        yield Mention("entries", device_type)


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
