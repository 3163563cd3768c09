"""What a live torch reports of the devices of this machine, and what its own benchmarking measures on one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from cachescope.capture.torch_modules import torch_module
from cachescope.errors import CachescopeError

# Attributes missing from the text torch prints; versions add to them (2.10, 2.11).
_BEYOND_THE_TEXT: Final = (
    "warp_size clock_rate memory_clock_rate memory_bus_width shared_memory_per_block "  # noqa: SIM905
    "shared_memory_per_multiprocessor max_threads_per_multi_processor regs_per_multiprocessor".split()
)
_COPY_BYTES: Final = 1 << 30
_MATMUL_SIZE: Final = 8192
# Attribute of torch, and the dtype as datasheets write it. fp32 is what torch computes by default, without TF32.
_MATMULS: Final = (("float16", "fp16"), ("bfloat16", "bf16"), ("float32", "fp32"))


@dataclass(frozen=True, slots=True)
class TorchDevice:
    """One device: its torch type, its index, torch's text for it and attributes that are not in the text."""

    type: str
    index: int
    text: str
    attributes: tuple[tuple[str, str], ...]


Measured = tuple[str, str | None, float]
"""One rate: what it is of, its dtype, and GB/s of a copy (read and write together) or TFLOPS of a matmul."""


def torch_devices(torch: Any = None) -> list[TorchDevice]:
    """The devices torch can use; raises `CachescopeError` if torch is not installed, or fails to import."""
    torch = torch_module("torch", "it is asked for devices") if torch is None else torch
    found = []
    for name in ("cuda", "xpu"):
        backend = getattr(torch, name, None)
        if backend is None or not backend.is_available():
            continue
        for index in range(backend.device_count()):
            properties = backend.get_device_properties(index)
            beyond = ((key, getattr(properties, key, None)) for key in _BEYOND_THE_TEXT)
            attributes = tuple((key, str(value)) for key, value in beyond if value is not None)
            found.append(TorchDevice(name, index, repr(properties), attributes))
    return found


def measure(
    device: TorchDevice, torch: Any = None, benchmark: Callable[..., float] | None = None
) -> list[Measured]:
    """Measure the copy bandwidth and matmul rates of one device; `benchmark` takes a function and returns milliseconds."""
    # By default with `benchmarker.benchmark_gpu` (torch/_inductor/runtime/benchmarking.py, 2.6 to 2.15), which max-autotune uses:
    # the shortest of many runs, with the level-2 cache emptied before each.
    torch = torch_module("torch", "it measures devices") if torch is None else torch
    benchmark = _benchmark_gpu() if benchmark is None else benchmark
    place = torch.device(device.type, device.index)
    getattr(torch, device.type).set_device(device.index)
    return [_copy(torch, place, benchmark), *(_matmul(torch, place, benchmark, *names) for names in _MATMULS)]


def _benchmark_gpu() -> Callable[..., float]:
    try:
        from torch._inductor.runtime import benchmarking
    except ImportError as error:
        raise CachescopeError(f"this torch has no torch._inductor.runtime.benchmarking: {error}") from error
    benchmark: Callable[..., float] = benchmarking.benchmarker.benchmark_gpu
    return benchmark


def _copy(torch: Any, place: Any, benchmark: Callable[..., float]) -> Measured:
    source = torch.empty(_COPY_BYTES, dtype=torch.uint8, device=place)
    target = torch.empty_like(source)
    return "copy", None, 2 * _COPY_BYTES / benchmark(lambda: target.copy_(source)) / 1e6


def _matmul(torch: Any, place: Any, benchmark: Callable[..., float], name: str, dtype: str) -> Measured:
    left, right = (
        torch.randn(_MATMUL_SIZE, _MATMUL_SIZE, dtype=getattr(torch, name), device=place) for _ in range(2)
    )
    return "matmul", dtype, 2 * _MATMUL_SIZE**3 / benchmark(lambda: torch.mm(left, right)) / 1e9
