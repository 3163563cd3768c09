"""How two devices differ: in type, index, model, architecture or only in the board."""

from __future__ import annotations

import re
from typing import Final

from cachescope.keys.device_text import device_parts

# Properties that identify a board among others of its model.
OF_THE_BOARD: Final = ("uuid", "pci_bus_id", "pci_device_id", "pci_domain_id")
_DEVICE: Final = re.compile(r"\bdevice\(type='(?P<type>\w+)'(?:, index=(?P<index>\d+))?\)")
_SYSTEM: Final = re.compile(r"\{'name': (?P<quote>['\"])(?P<name>.*?)(?P=quote)[,}]", re.DOTALL)
_ARCH: Final = re.compile(r"gfx\w+(?::[\w+:-]*)?")


def device_difference(before: str, after: str) -> str | None:
    """How the device differs between two values of one field; None if they name no device, or equal ones.

    Parameters
    ----------
    before, after : str
        Texts of ``accelerator_properties`` (``repr(torch.cuda.get_device_properties())``), of
        ``system_info[device]``, or any text that contains a tensor's ``device``.

    Examples
    --------
    >>> device_difference("device(type='cuda', index=0)", "device(type='cuda', index=1)")
    'another index: cuda:0 -> cuda:1'
    >>> device_difference("{'name': 'NVIDIA A10'}", "{'name': 'NVIDIA L4'}")
    'another model: NVIDIA A10 -> NVIDIA L4'
    """
    if (old := device_parts(before)) and (new := device_parts(after)):
        return _of_properties(old, new)
    if (here := _DEVICE.search(before)) and (there := _DEVICE.search(after)):
        return _of_tensors(here, there)
    if (was := _SYSTEM.match(before)) and (is_ := _SYSTEM.match(after)):
        return _of_names(was["name"], is_["name"])
    return None


def _of_tensors(old: re.Match[str], new: re.Match[str]) -> str | None:
    if old["type"] != new["type"]:
        return f"another type: {_spelled(old)} -> {_spelled(new)}"
    if old["index"] != new["index"]:
        return f"another index: {_spelled(old)} -> {_spelled(new)}"
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
