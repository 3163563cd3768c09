"""The machine of this process, asked without torch: what does not answer is not known."""

from __future__ import annotations

import os
import platform
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from cachescope.locking.installed import Installed, installed_torch, installed_triton
from cachescope.locking.lock import Machine

# The driver's own text: one folder for each board, with its model. Of a board that is cut into MIG instances torch says
# the instance.
_DRIVER: Final = Path("/proc/driver/nvidia")
_VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_CPUS: Final = Path("/proc/cpuinfo")
_VECTORS: Final = ("avx", "fma", "amx", "f16c", "sse4", "asimd", "sve")
_MOST_OF_A_FILE: Final = 1 << 20


def this_machine() -> tuple[Machine, dict[str, str]]:
    """What is known of this machine, and why the rest is not, by the name of what is not known."""
    with ThreadPoolExecutor(1) as pool:
        triton_future = pool.submit(installed_triton)
        return machine_with(installed_torch(), triton_future.result())


def machine_with(torch: Installed, triton: Installed) -> tuple[Machine, dict[str, str]]:
    """What is known of this machine beside the torch and the Triton that are installed, as `this_machine` says it."""
    devices, no_devices = devices_here()
    machine = Machine(
        python_version=platform.python_version(),
        architecture=platform.machine(),
        torch_version=torch.version,
        torch_key=torch.key,
        cuda=torch.cuda,
        hip=torch.hip,
        triton_version=triton.version,
        triton_key=triton.key,
        devices=devices,
        cpu_features=cpu_features(),
    )
    return machine, _unknown(torch, triton, no_devices)


def _unknown(torch: Installed, triton: Installed, devices: str | None) -> dict[str, str]:
    problems = {"torch": torch.problem, "triton": triton.problem, "device": devices}
    return {name: problem for name, problem in problems.items() if problem is not None}


def devices_here(driver: Path = _DRIVER) -> tuple[tuple[str, ...] | None, str | None]:
    """The models of the GPUs of this machine, in the order of their places on the bus; or why they are not known."""
    boards = sorted(driver.glob("gpus/*/information"))
    if not boards:
        return None, "no NVIDIA driver is seen here"
    if os.environ.get(_VISIBLE, "0").strip() in ("", "-1"):
        return None, f"{_VISIBLE} hides the boards"
    if any(driver.glob("capabilities/gpu*/mig/gi*")):
        return None, "a board here is divided into MIG instances, which only torch can identify"
    names = [_model(board) for board in boards]
    if None in names:
        return None, "the driver does not say its models"
    return tuple(name for name in names if name is not None), None


def _model(board: Path) -> str | None:
    for line in _head(board).splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "Model":
            return value.strip() or None
    return None


def cpu_features(cpus: Path = _CPUS) -> tuple[str, ...] | None:
    """The vector instructions of this CPU; None if the system does not list them."""
    for line in _head(cpus).splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return tuple(sorted(one for one in set(value.split()) if one.startswith(_VECTORS)))
    return None


def _head(path: Path) -> str:
    try:
        with open(path, "rb", buffering=0) as file:
            data = file.read(_MOST_OF_A_FILE) or b""
    except OSError:
        return ""
    return os.fsdecode(data).encode("utf-8", "replace").decode("utf-8")
