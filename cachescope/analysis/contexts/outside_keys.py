"""Facts that affect generated code but are in no key, or in no key of an older torch: one table for all warnings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class OutsideKeys:
    """One such fact of a process.

    Attributes
    ----------
    name : str
        Its name in ``settings`` of a snapshot.
    field : str or None
        The field that keys have for it since 2.13; None if no torch has one.
    is_of_cpu_code : bool
        Whether only code for the CPU depends on it.
    """

    name: str
    field: str | None
    is_of_cpu_code: bool


CPU_CAPABILITY: Final = "torch.backends.cpu.get_cpu_capability()"
OUTSIDE_KEYS: Final = (
    OutsideKeys("torch.get_default_dtype()", "default_dtype", is_of_cpu_code=False),
    OutsideKeys("torch.get_num_threads()", "cpp_runtime_thread_count", is_of_cpu_code=True),
    OutsideKeys(CPU_CAPABILITY, None, is_of_cpu_code=True),
)
# In every key since 2.13, unlike the number of threads, which only keys of C++ code contain.
OF_EVERY_LATER_KEY: Final = "default_dtype"

# ATen's name of a capability, and the bits of the vectors that torch then generates (torch/_inductor/cpu_vec_isa.py,
# `valid_vec_isa_list` and `get_isa_from_cpu_capability`, 2.6 to 2.15).
_VECTOR_WIDTHS: Final = {"AVX512": 512, "AVX2": 256, "SVE256": 256, "ZVECTOR": 256, "VSX": 256}


def vector_width(settings: Mapping[str, str], platform: str) -> int | None:
    """The vector width, in bits, that a process generates code for; 0 if it uses no vectors, None if unknown.

    Parameters
    ----------
    settings, platform
        From a snapshot.

    Examples
    --------
    >>> vector_width({CPU_CAPABILITY: "AVX2"}, "Linux-6.1-x86_64-with-glibc2.36")
    256
    """
    capability = settings.get(CPU_CAPABILITY, "")
    if capability == "DEFAULT":
        if "x86_64" in platform or "AMD64" in platform:
            return 0
        # NEON, for which ATen has no name.
        return 128 if "aarch64" in platform or "arm64" in platform else None
    return _VECTOR_WIDTHS.get(capability)
