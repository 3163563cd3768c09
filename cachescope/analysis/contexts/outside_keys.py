"""Facts that affect generated code but are in no key, or in none of an older torch; and equal keys for which they differ.

Ranks, and boards of one model, share keys by design. So only what changes generated code is compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from cachescope.frames.checks import FalseHit
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.grouping import by_key
from cachescope.terms import COMPILE_FORMS
from cachescope.wording import minor_version, shortened

Key = tuple[str, str]
"""A cache, and a key in it."""

# Parts of the repr of a device's properties that identify the model, not the board (uuid, bus, usable memory).
_MODEL_PART: Final = re.compile(r"\b(major|minor|gcnArchName|multi_processor_count)=('[^']*'|[^,)]*)")
_DEVICE: Final = "accelerator_properties"
_KEYS_OF_TRITON: Final = "triton_version_hash"
_CUT: Final = 60


class OutsideKeys(NamedTuple):
    """One such fact of a process."""

    name: str  # its name in ``settings`` of a snapshot
    field: str | None  # the field that keys have for it since 2.13; None if no torch has one
    is_of_cpu_code: bool  # whether it matters only for CPU code


CPU_CAPABILITY: Final = "torch.backends.cpu.get_cpu_capability()"
OUTSIDE_KEYS: Final = (
    OutsideKeys("torch.get_default_dtype()", "default_dtype", is_of_cpu_code=False),
    OutsideKeys("torch.get_num_threads()", "cpp_runtime_thread_count", is_of_cpu_code=True),
    OutsideKeys(CPU_CAPABILITY, None, is_of_cpu_code=True),
)
# Every key has it since 2.13. The number of threads is only in keys of C++ code.
OF_EVERY_LATER_KEY: Final = "default_dtype"

# ATen's name of a capability, and the bits of the vectors that torch then generates (torch/_inductor/cpu_vec_isa.py,
# `valid_vec_isa_list` and `get_isa_from_cpu_capability`, 2.6 to 2.15).
_VECTOR_WIDTHS: Final = {"AVX512": 512, "AVX2": 256, "SVE256": 256, "ZVECTOR": 256, "VSX": 256}


def vector_width(settings: Mapping[str, str], platform: str) -> int | None:
    """The vector width, in bits, that a process generates code for; 0 if it uses no vectors, None if unknown.

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


class _Fact(NamedTuple):
    kind: str
    name: str
    of_run: Mapping[int, str | None]
    shown: Callable[[str], str] = str  # the part of it that may decide the code
    is_of_cpu_code: bool = False


def different_circumstances(
    of_key: Mapping[Key, Sequence[LookupRow]],
    runs: Sequence[RunRow],
    snapshots: Sequence[ContextRow],
    cpu_keys: Collection[Key] = (),
) -> Iterator[FalseHit]:
    """The keys that were looked up under different circumstances."""
    for fact in _facts(runs, {row.run: row for row in snapshots if row.run is not None}):
        of_run = {run: fact.shown(value) for run, value in fact.of_run.items() if value is not None}
        if len(set(of_run.values())) < 2:
            continue
        for key, lookups in of_key.items():
            if fact.is_of_cpu_code and key not in cpu_keys:
                continue
            mine = {row.run for row in lookups} & of_run.keys()
            sides = by_key((of_run[run], run) for run in sorted(mine))
            if len(sides) > 1:
                yield _doubt(fact.kind, key, fact.name, sides)


def _facts(runs: Sequence[RunRow], captured: Mapping[int, ContextRow]) -> Iterator[_Fact]:
    """Facts that are constant in a process and may decide the code that it generates."""
    yield _Fact("different_versions", "torch_version", {row.run: row.torch_version for row in runs})
    # Torch's keys do not contain Python's version. Patch releases do not change the language.
    of_run = {row.run: row.python_version for row in runs}
    yield _Fact("different_versions", "python_version", of_run, minor_version)
    for form in COMPILE_FORMS:
        values = {run: getattr(row, form) for run, row in captured.items()}
        if form == _DEVICE:
            yield _Fact("different_devices", form, values, device_model)
        else:
            yield _Fact("different_versions", form, values)
    settings = {run: json.loads(row.settings) for run, row in captured.items() if row.settings}
    for fact in OUTSIDE_KEYS:
        known = {run: found.get(fact.name) for run, found in settings.items()}
        yield _Fact("different_settings", fact.name, known, str, fact.is_of_cpu_code)


def device_model(properties: str) -> str:
    """The model in the repr of ``torch.cuda.get_device_properties()``: equal for boards of one model.

    Examples
    --------
    >>> device_model("_CudaDeviceProperties(name='A', major=8, minor=0, total_memory=9MB, uuid=1)")
    'A major=8 minor=0'
    """
    # The name is not escaped and may contain an apostrophe.
    name, found, _ = properties.partition("name='")[2].partition("', major=")
    parts = [f"{part}={value}" for part, value in _MODEL_PART.findall(properties)]
    return " ".join([name, *parts]) if found else properties


def _doubt(kind: str, key: Key, name: str, sides: Mapping[str, Sequence[int]]) -> FalseHit:
    # Triton's key is kilobytes of hashes after the version.
    length = 12 if name == _KEYS_OF_TRITON else _CUT
    shown = " and ".join(f"{shortened(value, length)} ({_runs(runs)})" for value, runs in sides.items())
    return FalseHit(kind, *key, f"one key was looked up by runs whose {name} differs: {shown}", (name,))


def _runs(runs: Sequence[int]) -> str:
    shown = ", ".join(map(str, runs[:4])) + ("…" if len(runs) > 4 else "")
    return f"run {shown}" if len(runs) == 1 else f"runs {shown}"
