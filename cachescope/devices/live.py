"""The devices of this machine: as reported by torch, if it is installed, and by NVML; and its CPU."""

from __future__ import annotations

import importlib
import os
import platform
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from cachescope.capture.devices import Measured, TorchDevice, measure, torch_devices
from cachescope.devices.datasheets import match_datasheet
from cachescope.devices.mention import Mention, of_properties, pci_text, plain_uuid
from cachescope.devices.merged import device_rows
from cachescope.errors import CachescopeError
from cachescope.frames.device_rows import DeviceRow, MeasurementRow

_TORCH: Final = "torch on this machine"
# Takes the place of a run: a torch without uuids (2.4) means the board of that name that NVML reports.
_THIS_PROCESS: Final = frozenset({-1})
# nvml.h: NVML_CLOCK_SM, NVML_CLOCK_MEM.
_CLOCKS: Final = {"max_sm_clock_mhz": 1, "max_memory_clock_mhz": 2}


def this_machine(torch: Any = None, nvml: Any = None) -> tuple[list[DeviceRow], list[str]]:
    """The devices of this machine by torch, NVML and Python, and a remark on each way of asking that returned nothing."""
    cpu = Mention("Python on this machine", "cpu", arch=platform.machine() or None, sm_count=os.cpu_count())
    of_torch, torch_note = torch_mentions(torch)
    of_nvml, nvml_note = nvml_mentions(nvml)
    rows = [replace(row, runs=()) for row in device_rows([*of_torch, *of_nvml, cpu])]
    return rows, list(filter(None, (torch_note, nvml_note)))


def torch_mentions(torch: Any = None) -> tuple[list[Mention], str | None]:
    """What torch reports of each device, or why it reports nothing."""
    try:
        devices = torch_devices(torch)
    except CachescopeError as error:
        return [], str(error)
    mentions = [mention for device in devices if (mention := _of_torch(device))]
    return mentions, None if devices else "torch sees no GPU"


def _of_torch(device: TorchDevice) -> Mention | None:
    mention = of_properties(device.text, _TORCH, index=device.index, runs=_THIS_PROCESS)
    if mention is None:
        return None
    attributes = dict(device.attributes)
    warp = attributes.pop("warp_size", "")
    warp_size = int(warp) if warp.isdecimal() else mention.warp_size
    return replace(mention, warp_size=warp_size, properties=(*mention.properties, *attributes.items()))


def nvml_mentions(nvml: Any = None) -> tuple[list[Mention], str | None]:
    """What NVML reports of each device, or why it reports nothing.

    ``pynvml`` of the package nvidia-ml-py, which the extra ``gpu`` installs.
    """
    if nvml is None:
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError:
            return [], "NVML was not asked: pip install 'cachescope[gpu]'"
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return [], f"NVML reports no device: {error}"
    try:
        return list(_in_nvml(nvml)), None
    except nvml.NVMLError as error:
        return [], f"NVML failed: {error}"
    finally:
        nvml.nvmlShutdown()


def _in_nvml(nvml: Any) -> Iterator[Mention]:
    for number in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(number)
        major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
        yield Mention(
            "NVML on this machine",
            "cuda",
            name=_text(nvml.nvmlDeviceGetName(handle)),
            runs=_THIS_PROCESS,
            # Its numbers are not torch's: CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER change those.
            uuid=plain_uuid(_text(nvml.nvmlDeviceGetUUID(handle))),
            pci=_pci(_text(nvml.nvmlDeviceGetPciInfo(handle).busId)),
            compute_capability=f"{major}.{minor}",
            arch=f"sm_{major}{minor}",
            memory_bytes=int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
            properties=tuple(_clocks(nvml, handle)),
        )


def _clocks(nvml: Any, handle: Any) -> Iterator[tuple[str, str]]:
    """Values that not every board reports."""
    for name, clock in _CLOCKS.items():
        try:
            yield name, str(nvml.nvmlDeviceGetMaxClockInfo(handle, clock))
        except nvml.NVMLError:
            continue


def _text(value: str | bytes) -> str:
    # Through version 11 of the package, bytes.
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def _pci(bus_id: str) -> str | None:
    """``00000000:19:00.0`` in the form of torch's three numbers."""
    try:
        domain, bus, rest = bus_id.split(":")
        return pci_text(int(domain, 16), int(bus, 16), int(rest.split(".")[0], 16))
    except ValueError:
        return None


def measurements(torch: Any = None, benchmark: Any = None) -> list[MeasurementRow]:
    """Every GPU that torch sees, measured, with its datasheet."""
    devices = torch_devices(torch)
    if not devices:
        raise CachescopeError("--measure needs a GPU that torch can use, and there is none here")
    return [row for device in devices for row in _rows(device, measure(device, torch, benchmark))]


def _rows(device: TorchDevice, measured: list[Measured]) -> Iterator[MeasurementRow]:
    mention = of_properties(device.text, _TORCH)
    name = mention.name if mention and mention.name else f"{device.type}:{device.index}"
    sheet = match_datasheet(name, mention.memory_bytes if mention else None).datasheet
    for what, dtype, rate in measured:
        peak = None
        if sheet is not None:
            peak = sheet.bandwidth_gbs if dtype is None else sheet.dense.get(dtype)
        measured_what = what if dtype is None else f"{what} {dtype}"
        yield MeasurementRow(device.index, name, measured_what, rate, peak, rate / peak if peak else None)
