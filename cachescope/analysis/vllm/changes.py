"""In which factors a folder of vLLM differs from the nearest that was there before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import ne
from typing import Final

from cachescope.analysis.differences import FieldChange, field_change
from cachescope.analysis.vllm.factors import CONFIGURATION, ENVIRONMENT, HASHES, Named, process_kinds
from cachescope.frames.vllm_folders import VllmChange
from cachescope.wording import shortened

_HASH_TEXTS: Final = {
    "config_hash": "the configuration differs (the model, its settings, vLLM's version); vLLM keeps only its hash",
    "code_hash": "the files that were traced differ, in their text or in their paths: the model's, or torch's among them; "
    "vLLM keeps only their hash",
    "compiler_hash": "torch, its settings or the machine differ; vLLM keeps only their hash",
    ENVIRONMENT: "the environment variables that vLLM counts differ; the log has only their hash, cache_key_factors.json their values",
}
_NOT_COUNTED: Final = "not counted"
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class Beside:
    """A folder, and the nearest that was there before."""

    folder: Named
    baseline: Named
    is_order_known: bool  # whether the times of modification show that the baseline was there before
    changed: tuple[str, ...]  # the factors in which they differ


def nearest(folders: Sequence[Named]) -> list[Beside]:
    """For each folder but the first, the nearest before it.

    One of the same configuration is nearer than any other: another configuration may be another model. Then the fewest
    factors differ; of several such, the latest.
    """
    varying, codes = coded(folders)
    found = []
    of_config = varying.index(CONFIGURATION) if CONFIGURATION in varying else None
    for number in range(1, len(folders)):
        own = codes[number]
        best: tuple[bool, int] | None = None
        at = 0
        for earlier in range(number - 1, -1, -1):
            other = codes[earlier]
            is_of_other = of_config is not None and other[of_config] != own[of_config]
            distance = is_of_other, sum(map(ne, other, own))
            if best is None or distance < best:
                best, at = distance, earlier
        folder, before = folders[number], folders[at]
        is_known = None not in (folder.written, before.written) and folder.written != before.written
        pairs = zip(varying, own, codes[at], strict=True)
        changed = tuple(name for name, mine, theirs in pairs if mine != theirs)
        found.append(Beside(folder, before, is_known, changed))
    return found


def between(baseline: Named, folder: Named) -> Beside:
    """Two folders side by side, whichever was there before."""
    names = dict.fromkeys((*baseline.values, *folder.values))
    changed = [name for name in names if baseline.values.get(name) != folder.values.get(name)]
    return Beside(folder, baseline, False, tuple(sorted(changed, key=lambda name: (name in HASHES, name))))


Codes = tuple[int, ...]
"""Of a folder, a code for the value of each varying factor."""


def coded(folders: Sequence[Named]) -> tuple[list[str], list[Codes]]:
    """The factors that take several values, and a code for the value of each in each folder."""
    names = dict.fromkeys(name for folder in folders for name in folder.values)
    varying, columns = [], []
    for name in sorted(names, key=lambda name: (name in HASHES, name)):
        values = [folder.values.get(name) for folder in folders]
        if values.count(values[0]) < len(values):
            number = {value: code for code, value in enumerate(dict.fromkeys(values))}
            varying.append(name)
            columns.append([number[value] for value in values])
    return varying, list(zip(*columns, strict=True)) if columns else [()] * len(folders)


def changes_of(beside: Beside) -> Iterator[VllmChange]:
    """Each factor in which a folder differs from its baseline."""
    names = beside.folder.name, beside.baseline.name
    for factor in beside.changed:
        if factor in _HASH_TEXTS:
            yield VllmChange(*names, factor, None, None, (), _HASH_TEXTS[factor])
            continue
        before, after = (one.values.get(factor) for one in (beside.baseline, beside.folder))
        kinds = None if before is None or after is None else process_kinds(factor, before, after)
        text = f"{factor}: {_short(before)} → {_short(after)}" + (f" ({kinds.words})" if kinds else "")
        yield VllmChange(*names, factor, before, after, kinds.kinds if kinds else (), text)


def field_changes_of(beside: Beside) -> tuple[FieldChange, ...]:
    """The same, as changes of the fields of a key are."""
    sides = beside.baseline.values, beside.folder.values
    return tuple(_field_change(factor, *(side.get(factor) for side in sides)) for factor in beside.changed)


def hash_change(factor: str, before: str | None = None, after: str | None = None) -> FieldChange:
    """The change of a factor of which only the hash is known."""
    kind = "opaque" if None in (before, after) else "value"
    return FieldChange(factor, kind, before, after, _HASH_TEXTS[factor])


def _field_change(factor: str, before: str | None, after: str | None) -> FieldChange:
    if factor in _HASH_TEXTS:
        return hash_change(factor, before, after)
    change = field_change(factor, before, after)
    kinds = None if before is None or after is None else process_kinds(factor, before, after)
    if kinds is None:
        return change
    return replace(change, summary=f"{kinds.words}: {change.summary}", process_values=kinds)


def all_changes(folders: Sequence[Named]) -> list[VllmChange]:
    """Each factor in which a folder differs from the nearest earlier one."""
    return [change for beside in nearest(folders) for change in changes_of(beside)]


def _short(value: str | None) -> str:
    return _NOT_COUNTED if value is None else shortened(value, _LONGEST)
