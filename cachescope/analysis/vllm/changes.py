"""In which factors a folder of vLLM differs from the nearest that was there before it, and what to do about that.

Only what is true of vLLM 0.13.0 and 0.33.0 is advised.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import ne
from typing import Final

from cachescope.analysis.differences import FieldChange, field_change
from cachescope.analysis.vllm.factors import (
    CODE,
    COMPILER,
    CONFIGURATION,
    ENVIRONMENT,
    HASHES,
    Named,
    name_of_variable,
    process_kinds,
)
from cachescope.catalogue.vllm_variables import no_longer_counted_by
from cachescope.frames.vllm_folders import VllmChange
from cachescope.grouping import by_key
from cachescope.verdict_kinds import Judged, kind_of
from cachescope.wording import listed, shortened

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


_NAMED: Final = 4
_HASHES: Final = {
    ENVIRONMENT: "Read vLLM's torch_compile_cache beside the log: cache_key_factors.json has the variables.",
    CONFIGURATION: "A configuration is compiled for once: give every engine of one model the same arguments and the same vLLM, or ship a "
    "cache for each configuration.",
    CODE: "Edited files are compiled for once. Where the files are equal, their paths may differ: install vLLM and the model in the "
    "same place on each machine.",
    COMPILER: "vLLM counts torch and the machine; 0.33.0 counts the settings of torch._inductor as well: keep them equal, or ship a cache "
    "for each.",
}


def vllm_advice(miss: Judged, changes: Sequence[FieldChange]) -> str | None:
    """Advice for a cause, from its first miss and what changed in its key; None if nothing is certain."""
    return " ".join(_of_factors([change.field for change in changes])) or kind_of(miss).vllm_advice


def _of_factors(factors: Sequence[str]) -> Iterator[str]:
    variables = [name for one in factors if one not in _HASHES and (name := name_of_variable(one))]
    if variables:
        yield f"Give {listed(variables, _NAMED)} the same value in every engine, if it need not differ."
    ignored = by_key((since, name) for name in variables if (since := no_longer_counted_by(name)) is not None)
    for release, names in ignored.items():
        yield f"vLLM {release} does not count {listed(names, _NAMED)}."
    yield from (_HASHES[one] for one in factors if one in _HASHES)
