"""What max-autotune keeps: timings, ``cache/<system hash>`` (torch 2.6 to 2.15), and CUTLASS operations, ``configs_<8 hex>.json``.

The nesting is op, inputs, precision, choice; torch's docstrings describe it differently.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from cachescope.frames.directory_rows import EntryRow, TimingRow
from cachescope.keys.hashing import system_hash
from cachescope.keys.json_values import UnsupportedValueError
from cachescope.readers.cache_file import DamagedContent, load_json, load_object
from cachescope.readers.json_record import well_formed
from cachescope.readers.reading import Reading

# `triton_key` (triton/runtime/cache.py): the version, followed without a separator by the first of many sha256.
_TRITON_KEY: Final = re.compile(r"([^-]*?)[0-9a-f]{64}(?:-|$)")


def fill_autotune(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Read the timings of one file; its name is the hash of the system they were measured on.

    Mirrors ``PersistentCache`` (torch/_inductor/codecache.py, 2.6 to 2.15) and its ``get_system``.
    """
    content = load_object(data)
    system, cache = content.get("system"), content.get("cache")
    if not isinstance(system, dict) or not isinstance(cache, dict):
        raise DamagedContent("holds no objects `system` and `cache`")
    said = _system(system)
    timings: list[TimingRow] = []
    wrong = _take(cache, entry, said, timings)
    reading.timings += timings
    # torch/_inductor/fx_passes/pad_mm.py keeps there whether to pad, and times, by a text for each multiplication.
    answers = sum(isinstance(value, (bool, float, int)) for value in cache.values())
    entry.detail = f"{answers} answers of pad_mm" if answers else f"{len(timings)} timings of max-autotune"
    versions = ("Triton", said["triton_version"]), (said["runtime"], said["runtime_version"])
    if known := [f"{what} {version[:40]}" for what, version in versions if version is not None]:
        entry.detail += f" ({', '.join(known)})"
    entry.name = said["device_name"]
    try:
        made = system_hash(system)
    except UnsupportedValueError as error:
        raise DamagedContent(f"its system cannot be hashed: {error}") from error
    if made != name:
        raise DamagedContent("system hash differs from the name")
    if wrong:
        raise DamagedContent(wrong)


def _system(system: dict[str, object]) -> dict[str, str | None]:
    """The columns of its rows that say on what they were measured."""
    device, version = system.get("device"), system.get("version")
    device = device if isinstance(device, dict) else {}
    version = version if isinstance(version, dict) else {}
    triton = _text(version.get("triton"))
    found = None if triton is None else _TRITON_KEY.match(triton)
    # On ROCm, torch uses the architecture as the device name, and "hip" in place of "cuda".
    runtime = next((way for way in ("cuda", "hip") if version.get(way) is not None), None)
    return {
        "device_name": _text(device.get("name")),
        "triton_version": triton[:20] if triton is not None and found is None else found and found[1],
        "runtime": runtime,
        "runtime_version": None if runtime is None else _text(version[runtime]),
    }


def _text(value: object) -> str | None:
    return None if value is None else well_formed(str(value))


def _take(
    cache: dict[str, object], entry: EntryRow, system: dict[str, str | None], timings: list[TimingRow]
) -> str | None:
    """Add the timings; return what has the wrong shape, if anything."""
    wrong: list[str] = []

    def items(value: object) -> list[tuple[str, object]]:
        if isinstance(value, dict):
            return list(value.items())
        wrong.append(f"a {type(value).__name__} where op, inputs, precision or choice should be")
        return []

    for op, by_inputs in cache.items():
        if isinstance(by_inputs, (bool, float, int)):
            continue  # an answer of pad_mm
        for inputs, by_precision in items(by_inputs):
            for precision, by_choice in items(by_precision):
                group: list[TimingRow] = []
                for choice, time in items(by_choice):
                    if isinstance(time, bool) or not isinstance(time, (float, int)):
                        wrong.append(f"a timing that is no number: {str(time)[:40]}")
                        continue
                    of = {"op": op, "inputs": inputs, "precision": precision, "choice": choice}
                    told: dict[str, Any] = {name: well_formed(text) for name, text in of.items()} | system
                    measured = _milliseconds(time)
                    row = TimingRow(entry=0, time_ms=measured, is_failed=measured is None, file=entry, **told)
                    group.append(row)
                _choose(group)
                timings += group
    return wrong[0] if wrong else None


def _milliseconds(value: float) -> float | None:
    """A measured time; None for ``Infinity``, which torch stores for a choice that failed."""
    try:
        time = float(value)
    except OverflowError:
        return None
    return time if math.isfinite(time) else None


def _choose(group: list[TimingRow]) -> None:
    """Mark the fastest choice, which ``AlgorithmSelectorCache`` takes, and the margin by which it won."""
    measured = sorted((timing.time_ms, at) for at, timing in enumerate(group) if timing.time_ms is not None)
    if not measured:
        return
    best, at = measured[0]
    group[at].is_chosen = True
    if len(measured) > 1 and best > 0:
        group[at].margin = measured[1][0] / best


def fill_cutlass_configs(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Count the operations.

    Mirrors ``maybe_fetch_ops`` (torch/_inductor/codegen/cuda/cutlass_cache.py 2.7 to 2.10,
    codegen/cutlass/cache.py 2.11+). The name is the request key: `cachescope.keys.cutlass_request_key`.
    """
    operations = load_json(data)
    if not isinstance(operations, list) or not all(isinstance(one, str) for one in operations):
        raise DamagedContent("holds no list of texts")
    for one in operations:
        load_json(one.encode("utf-8", "surrogatepass"))
    entry.detail = f"{len(operations)} operations"
