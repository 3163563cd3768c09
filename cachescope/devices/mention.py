"""What one place reports of one device, in the same words however torch wrote it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cachescope.keys.device_text import device_parts

_MIB: Final = 1 << 20
_WHOLE: Final = re.compile(r"\d{1,15}")
_MEBIBYTES: Final = re.compile(r"(\d{1,12})MB")
_GFX: Final = re.compile(r"gfx\w+(?::[\w+:-]*)?")
_PCI: Final = ("pci_domain_id", "pci_bus_id", "pci_device_id")
# The columns of the frame; everything else goes to `properties`.
_KNOWN: Final = frozenset(
    {"name", "major", "minor", "gcnArchName", "total_memory", "multi_processor_count", "gpu_subslice_count"}
    | {"uuid", "L2_cache_size", "warp_size", "type", "index", "cc", *_PCI}
)


@dataclass(frozen=True, slots=True)
class Mention:
    """One mention of a device: the place in words, and what it reports.

    `index` and `runs` locate the device; the facts describe it.
    """

    place: str
    type: str
    name: str | None = None
    runs: frozenset[int] = frozenset()
    index: int | None = None
    host: str | None = None
    compute_capability: str | None = None
    arch: str | None = None
    memory_bytes: int | None = None
    sm_count: int | None = None
    l2_bytes: int | None = None
    warp_size: int | None = None
    uuid: str | None = None
    pci: str | None = None
    properties: tuple[tuple[str, str], ...] = ()


FACTS: Final = tuple("compute_capability arch memory_bytes sm_count l2_bytes warp_size uuid pci".split())  # noqa: SIM905


def of_properties(
    text: str, place: str, *, index: int | None = None, runs: frozenset[int] = frozenset()
) -> Mention | None:
    """The mention in ``repr(torch.cuda.get_device_properties())``, of CUDA, ROCm or XPU; None for any other text."""
    parts = device_parts(text)
    if not parts:
        return None
    gfx = parts.get("gcnArchName")
    is_xpu = text.startswith("_Xpu")
    # On CUDA the attribute gcnArchName is the name of the device.
    is_hip = gfx is not None and _GFX.fullmatch(gfx) is not None
    major, minor = _whole(parts.get("major")), _whole(parts.get("minor"))
    is_capability = not (is_hip or is_xpu or major is None or minor is None)
    capability = f"{major}.{minor}" if is_capability else None
    return Mention(
        place,
        "xpu" if is_xpu else "hip" if is_hip else "cuda",
        name=parts["name"],
        runs=runs,
        index=index,
        compute_capability=capability,
        arch=gfx if is_hip else capability and f"sm_{capability.replace('.', '')}",
        memory_bytes=_bytes(parts.get("total_memory")),
        # `DeviceProperties.create` (torch/_inductor/runtime/hints.py) counts the same on XPU.
        sm_count=_whole(parts.get("multi_processor_count") or parts.get("gpu_subslice_count")),
        l2_bytes=_bytes(parts.get("L2_cache_size")),
        warp_size=_whole(parts.get("warp_size")),
        uuid=plain_uuid(parts.get("uuid")),
        pci=_pci(parts),
        properties=_others(parts, "type") if is_xpu else _others(parts),
    )


def of_kernel(parts: Mapping[str, str], place: str) -> Mention:
    """The mention in ``DeviceProperties(…)`` of generated code."""
    device_type, cc = parts.get("type", "unknown"), parts.get("cc", "")
    is_number = _WHOLE.fullmatch(cc) is not None and device_type == "cuda"
    name = re.search(r"'name': '(.*?)'", cc)
    others = _others(parts)
    return Mention(
        place,
        device_type,
        name=name[1] if name else None,
        index=_whole(parts.get("index")),
        compute_capability=f"{cc[:-1]}.{cc[-1]}" if is_number and len(cc) > 1 else None,
        arch=f"sm_{cc}" if is_number else cc if _GFX.fullmatch(cc) else None,
        sm_count=_whole(parts.get("multi_processor_count")),
        warp_size=_whole(parts.get("warp_size")),
        properties=others if is_number or not cc or _GFX.fullmatch(cc) else (*others, ("cc", cc)),
    )


def of_name(
    name: str, place: str, *, runs: frozenset[int] = frozenset(), index: int | None = None
) -> Mention:
    """The mention in ``system_info[device]``: a name; on ROCm the architecture instead.

    Mirrors ``CacheBase.get_system`` (torch/_inductor/codecache.py, 2.4 to 2.15).
    """
    if _GFX.fullmatch(name):
        return Mention(place, "hip", runs=runs, index=index, arch=name)
    return Mention(place, "xpu" if name.startswith("Intel") else "cuda", name=name, runs=runs, index=index)


def of_target(backend: str, arch: str, warp_size: int | None, place: str) -> Mention:
    """The mention in the target of a Triton kernel (``GPUTarget``, triton/backends/compiler.py)."""
    capability = None
    if backend == "cuda" and _WHOLE.fullmatch(arch) and len(arch) > 1:
        capability, arch = f"{arch[:-1]}.{arch[-1]}", f"sm_{arch}"
    return Mention(place, backend, compute_capability=capability, arch=arch, warp_size=warp_size)


def plain_uuid(uuid: str | None) -> str | None:
    """A uuid as torch spells it, without the ``GPU-`` of NVML."""
    return uuid.removeprefix("GPU-").lower() if uuid else None


def pci_text(domain: int, bus: int, device: int) -> str:
    """Domain, bus and device as drivers print them."""
    return f"{domain:04x}:{bus:02x}:{device:02x}"


def _pci(parts: Mapping[str, str]) -> str | None:
    domain, bus, device = (_whole(parts.get(key)) for key in _PCI)
    return None if domain is None or bus is None or device is None else pci_text(domain, bus, device)


def _others(parts: Mapping[str, str], *also: str) -> tuple[tuple[str, str], ...]:
    return tuple((key, value) for key, value in parts.items() if key not in _KNOWN or key in also)


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and _WHOLE.fullmatch(text) and text.isascii() else None


def _bytes(text: str | None) -> int | None:
    match = _MEBIBYTES.fullmatch(text or "")
    return int(match[1]) * _MIB if match and match[1].isascii() else None
