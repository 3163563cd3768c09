"""Parses the texts that torch prints for a device, and says how two devices differ.

Only keywords count: torch adds and moves properties from version to version.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from cachescope.keys.printed_values import arguments

# The name is not escaped and may contain an apostrophe; the text after it cannot.
_NAME_BEFORE_MAJOR: Final = re.compile(
    r"_CudaDeviceProperties\(name='(?P<name>.*)', (?P<rest>major=.*)\)", re.DOTALL
)
# Other texts have more quoted values, so the first property after the name ends it.
_NAME: Final = re.compile(
    r"_(?:Cuda|Xpu)DeviceProperties\(name='(?P<name>.*?)', (?P<rest>\w+=.*)\)", re.DOTALL
)
_PART: Final = re.compile(r"(?<!\w)(?P<key>\w++)=(?P<value>'[^']*'|\[[^\]]*\]|[^,]*)(?:, |$)")
# Nearly all are flat, and a directory with thousands of kernels contains few distinct ones.
_OF_A_KERNEL: Final = re.compile(r"\bDeviceProperties\((?P<flat>type=[^(){}\n]*\))?")
_KEYWORD: Final = re.compile(r"(\w+)=")
# The longest known text, of an XPU whose `cc` is a dict, has about 1,500 characters.
_LONGEST: Final = 10_000

# Properties that identify a board among others of its model.
OF_THE_BOARD: Final = ("uuid", "pci_bus_id", "pci_device_id", "pci_domain_id")
DEVICE: Final = re.compile(r"\bdevice\(type='(?P<type>\w+)'(?:, index=(?P<index>\d+))?\)")
_SYSTEM: Final = re.compile(r"\{'name': (?P<quote>['\"])(?P<name>.*?)(?P=quote)[,}]", re.DOTALL)
_ARCH: Final = re.compile(r"gfx\w+(?::[\w+:-]*)?")


def device_parts(text: str) -> dict[str, str]:
    """Return the properties by name, as text; empty if it is another text.

    Mirrors the ``__repr__`` of ``_CudaDeviceProperties`` (torch/csrc/cuda/Module.cpp, 2.4 to 2.15) and of
    ``_XpuDeviceProperties`` (torch/csrc/xpu/Module.cpp). Unknown properties are kept.

    >>> device_parts("_CudaDeviceProperties(name='NVIDIA L4', major=8, minor=9, L2_cache_size=48MB)")
    {'name': 'NVIDIA L4', 'major': '8', 'minor': '9', 'L2_cache_size': '48MB'}
    """
    match = _NAME_BEFORE_MAJOR.fullmatch(text) if text.endswith(")") else None
    if match is None and len(text) <= _LONGEST:
        match = _NAME.fullmatch(text)
    if match is None:
        return {}
    rest = match["rest"] if len(match["rest"]) <= _LONGEST else ""
    parts = {part["key"]: part["value"].strip("'") for part in _PART.finditer(rest)}
    return {"name": match["name"], **parts}


def kernel_device_parts(source: str) -> list[dict[str, str]]:
    """The properties of every device in generated code, as text, each distinct set once.

    Mirrors ``DeviceProperties`` (torch/_inductor/runtime/hints.py, 2.5 to 2.15). Its fields were reordered in
    between, so only keywords are read. ``None`` and an empty ``cc`` (a CPU) are left out.

    >>> kernel_device_parts("DeviceProperties(type='cuda', index=0, multi_processor_count=132, cc=90, warp_size=None)")
    [{'type': 'cuda', 'index': '0', 'multi_processor_count': '132', 'cc': '90'}]
    """
    texts = dict.fromkeys(
        match["flat"] or source[match.end() : match.end() + _LONGEST].split("\n", 1)[0]
        for match in _OF_A_KERNEL.finditer(source)
    )
    return list({frozenset(parts): dict(parts) for text in texts if (parts := _keywords(text))}.values())


@lru_cache(maxsize=256)
def _keywords(text: str) -> tuple[tuple[str, str], ...]:
    """The keyword arguments at the start of `text`, up to the closing bracket; empty if there is none."""
    parts: dict[str, str] = {}
    for argument, is_last in arguments(text):
        # Inside a string of generated C++ the quotes have backslashes.
        argument = argument.replace("\\'", "'")
        if match := _KEYWORD.match(argument):
            value = argument[match.end() :].strip("'\"")
            if value not in ("", "None"):
                parts[match[1]] = value
        if is_last:
            return tuple(parts.items()) if "type" in parts else ()
    return ()


def device_difference(before: str, after: str) -> str | None:
    """How the device differs between two values of one field; None if they name no device, or equal ones.

    >>> device_difference("device(type='cuda', index=0)", "device(type='cuda', index=1)")
    'another device index: cuda:0 -> cuda:1'
    >>> device_difference("{'name': 'NVIDIA A10'}", "{'name': 'NVIDIA L4'}")
    'another model: NVIDIA A10 -> NVIDIA L4'
    """
    if (old := device_parts(before)) and (new := device_parts(after)):
        return _of_properties(old, new)
    if (here := DEVICE.search(before)) and (there := DEVICE.search(after)):
        return _of_tensors(here, there)
    if (was := _SYSTEM.match(before)) and (is_ := _SYSTEM.match(after)):
        return _of_names(was["name"], is_["name"])
    return None


def _of_tensors(old: re.Match[str], new: re.Match[str]) -> str | None:
    if old["type"] != new["type"]:
        return f"another kind of device: {_spelled(old)} -> {_spelled(new)}"
    if old["index"] != new["index"]:
        return f"another device index: {_spelled(old)} -> {_spelled(new)}"
    return None


def _spelled(device: re.Match[str]) -> str:
    return device["type"] if device["index"] is None else f"{device['type']}:{device['index']}"


def _of_names(old: str, new: str) -> str | None:
    if old == new:
        return None
    # On ROCm torch uses the architecture as the name (`CacheBase.get_system`, torch/_inductor/codecache.py).
    if _ARCH.fullmatch(old) and _ARCH.fullmatch(new):
        return f"another arch: {old} -> {new}"
    return f"another model: {old} -> {new}"


def _of_properties(old: dict[str, str], new: dict[str, str]) -> str | None:
    if old["name"] != new["name"]:
        return f"another model: {old['name']} -> {new['name']}"
    if (was := _arch(old)) != (is_ := _arch(new)):
        return f"another arch: {was} -> {is_}"
    both = [key for key in old if key in new and old[key] != new[key]]
    rest = [key for key in both if key not in OF_THE_BOARD]
    if any(key in OF_THE_BOARD for key in both):
        # Boards of one model may have different amounts of memory; a part of a board also has fewer units.
        units = [key for key in rest if key == "multi_processor_count"]
        return "same model, another board" + _listed(old, new, units)
    if rest:
        return "same model, other properties" + _listed(old, new, rest)
    only_one = [*(old.keys() - new.keys()), *(new.keys() - old.keys())]
    return f"same model; only one side has {', '.join(sorted(only_one))}" if only_one else None


def _listed(old: dict[str, str], new: dict[str, str], keys: list[str]) -> str:
    return ": " + ", ".join(f"{key} {old[key]} -> {new[key]}" for key in keys) if keys else ""


def _arch(parts: dict[str, str]) -> str:
    return parts.get("gcnArchName") or f"{parts.get('major', '?')}.{parts.get('minor', '?')}"
