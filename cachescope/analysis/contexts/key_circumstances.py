"""Equal keys from processes whose recorded versions or devices differ.

Ranks, and boards of one model, share keys by design: only what changes generated code is compared.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cachescope.analysis.contexts.outside_keys import OUTSIDE_KEYS
from cachescope.terms import COMPILE_FORMS

Row = dict[str, Any]
Key = tuple[str, str]

# Parts of the repr of a device's properties that identify the model, not the board (uuid, bus, usable memory).
_MODEL_PART: Final = re.compile(r"\b(major|minor|gcnArchName|multi_processor_count)=('[^']*'|[^,)]*)")
_DEVICE: Final = "accelerator_properties"
_KEYS_OF_TRITON: Final = "triton_version_hash"
_CUT: Final = 60
# A snapshot is often taken last, when logging has ended.
_AFTERWARDS_NS: Final = 60 * 10**9


@dataclass(frozen=True, slots=True)
class _Fact:
    kind: str
    name: str
    of_run: Mapping[int, str]
    is_of_cpu_code: bool = False


def different_circumstances(
    of_key: Mapping[Key, Sequence[Row]],
    runs: Sequence[Row],
    snapshots: Sequence[Row],
    cpu_keys: Collection[Key] = (),
) -> Iterator[Row]:
    """Rows of the frame false_hits, with the columns that hold a key and its evidence.

    Parameters
    ----------
    of_key : mapping
        The lookups of each key.
    runs, snapshots : sequence of dict
        The rows of runs, and of captured contexts. What is reconstructed from hash details is in the
        key already.
    cpu_keys : collection
        Keys with an entry that holds code for the CPU.
    """
    for fact in _facts(runs, _by_process(snapshots, runs)):
        if len(set(fact.of_run.values())) < 2:
            continue
        for key, lookups in of_key.items():
            if fact.is_of_cpu_code and key not in cpu_keys:
                continue
            sides = _sides({row["run"] for row in lookups}, fact.of_run)
            if len(sides) > 1:
                yield _row(fact.kind, key, fact.name, sides)


def _facts(runs: Sequence[Row], captured: Mapping[int, Row]) -> Iterator[_Fact]:
    """Facts that are constant in a process and may decide the code it generates."""
    of_runs = {row["run"]: row for row in runs}
    yield _fact("different_versions", "torch_version", of_runs, str)
    # Torch's keys do not contain Python's version; patch releases do not change the language.
    yield _fact("different_versions", "python_version", of_runs, _minor)
    for form in COMPILE_FORMS:
        if form == _DEVICE:
            yield _fact("different_devices", form, captured, device_model)
        else:
            yield _fact("different_versions", form, captured, str)
    settings = {run: json.loads(row["settings"]) for run, row in captured.items() if row.get("settings")}
    known = {run: defaultdict(lambda: None, found) for run, found in settings.items()}
    for fact in OUTSIDE_KEYS:
        setting = _fact("different_settings", fact.name, known, str)
        yield replace(setting, is_of_cpu_code=fact.is_of_cpu_code)


def _fact(kind: str, name: str, of_run: Mapping[int, Row], shown: Callable[[str], str]) -> _Fact:
    return _Fact(kind, name, {run: shown(row[name]) for run, row in of_run.items() if row[name] is not None})


def _by_process(snapshots: Sequence[Row], runs: Sequence[Row]) -> dict[int, Row]:
    """The snapshots that a recorded process took of itself, by its run: equal pid, and taken while it ran."""
    found: dict[int, Row] = {}
    for row in snapshots:
        mine = [run["run"] for run in runs if run["run"] == row["run"] or _took(run, row)]
        if len(mine) == 1:
            found[mine[0]] = row
    return found


def _took(run: Row, snapshot: Row) -> bool:
    pid, time = snapshot.get("pid"), snapshot.get("time")
    if pid is None or time is None or run["pid"] != pid or run["start_time"] is None:
        return False
    return bool(run["start_time"] <= time <= (run["end_time"] or run["start_time"]) + _AFTERWARDS_NS)


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


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _sides(runs: set[int], of_run: Mapping[int, str]) -> dict[str, list[int]]:
    sides: dict[str, list[int]] = defaultdict(list)
    for run in sorted(runs & of_run.keys()):
        sides[of_run[run]].append(run)
    return sides


def _row(kind: str, key: Key, name: str, sides: Mapping[str, Sequence[int]]) -> Row:
    shown = " and ".join(f"{_value(name, value)} ({_runs(runs)})" for value, runs in sides.items())
    return {
        "kind": kind,
        "cache": key[0],
        "cache_key": key[1],
        "evidence": f"one key was looked up by runs whose {name} differs: {shown}",
        "fields": (name,),
        "entries": (),
    }


def _value(name: str, value: str) -> str:
    # Triton's key is kilobytes of hashes after the version.
    most = 12 if name == _KEYS_OF_TRITON else _CUT
    return value if len(value) <= most else f"{value[:most]}…"


def _runs(runs: Sequence[int]) -> str:
    shown = ", ".join(map(str, runs[:4])) + ("…" if len(runs) > 4 else "")
    return f"run {shown}" if len(runs) == 1 else f"runs {shown}"
