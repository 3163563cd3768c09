"""The factors of vLLM's folders: variables of the environment, and hashes of everything else.

Here is how a folder differs from the nearest earlier one, and what to do about that: only what is true of vLLM 0.13.0 and
0.33.0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import ne
from typing import Final, Literal, NamedTuple

from cachescope.analysis.differences import FieldChange, field_change
from cachescope.analysis.process_values import DiffersBy, differs_by
from cachescope.catalogue.vllm_variables import no_longer_counted_by
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.vllm import FactorsRow, VllmChange
from cachescope.grouping import by_key
from cachescope.keys.vllm import FOLDER_NAME, vllm_folder_name
from cachescope.verdict_kinds import Judged, kind_of
from cachescope.wording import listed, shortened

ENVIRONMENT, CONFIGURATION, CODE, COMPILER = "env_hash", "config_hash", "code_hash", "compiler_hash"
HASHES: Final = (CONFIGURATION, CODE, COMPILER)
"""Factors of which vLLM keeps only a hash."""

_BUNDLES: Final = "env[VLLM_RAY_BUNDLE_INDICES]"
_INDICES: Final = re.compile(r'"[\d,]{0,1000}"')

NameIs = Literal["recomputed", "given_by_other", "differs", "not_known"]
NAME_TEXTS: Final[Mapping[NameIs, str]] = {
    "recomputed": "the name follows from the factors",
    "given_by_other": "another part of the model, or another rank, gave the folder its name: an engine names one folder, "
    "by what it compiles first",
    "differs": "the name follows from no factors in it: it was renamed, its factors were written by another process or "
    "changed, or this release of vLLM names folders in another way",
    "not_known": "the name is none that vLLM makes of factors: its cache_dir was given, or it was renamed",
}


class Named(NamedTuple):
    """One folder whose name follows from its factors."""

    name: str
    values: Mapping[str, str]  # the value of each factor: JSON of a variable, else a hash
    written: int | None  # when its factors were first written


def name_of_variable(factor: str) -> str | None:
    """The variable of a factor; None if the factor is a hash."""
    return None if factor in HASHES else factor.removeprefix("env[").removesuffix("]")


def process_kinds(factor: str, before: str | None, after: str | None) -> DiffersBy | None:
    """The values of a process in which two values of a variable (None if unset) differ. ``VLLM_DP_RANK`` is a rank, as ``DP_RANK`` is."""
    if before is None or after is None:
        return None
    if factor == _BUNDLES and _INDICES.fullmatch(before) and _INDICES.fullmatch(after):
        return DiffersBy(("bundle index",), is_certain=True, is_all=True)
    return differs_by(factor.replace("env[VLLM_", "env[", 1), before, after)


def name_kinds(rows: Sequence[FactorsRow]) -> dict[int, NameIs]:
    """For each entry, whether the name of its folder follows from these factors, or from others in the folder."""
    recomputed = {
        row.entry
        for row in rows
        if vllm_folder_name(row.env_hash, row.config_hash, row.code_hash, row.compiler_hash) == row.folder
    }
    named = {row.folder for row in rows if row.entry in recomputed}
    found: dict[int, NameIs] = {}
    for row in rows:
        if row.entry in recomputed:
            found[row.entry] = "recomputed"
        elif row.folder in named:
            found[row.entry] = "given_by_other"
        else:
            is_made = row.folder is not None and FOLDER_NAME.fullmatch(row.folder) is not None
            found[row.entry] = "differs" if is_made else "not_known"
    return found


def named_folders(rows: Sequence[FactorsRow], entries: Iterable[EntryRow]) -> list[Named]:
    """The folders whose names follow from their factors, in the order in which these were written.

    All rows that give a folder its name have the same factors, whatever the rank: the first represents them.
    """
    kinds = name_kinds(rows)
    times = {entry.entry: entry.modified_time for entry in entries}
    found: dict[str, Named] = {}
    for row in rows:
        if kinds[row.entry] != "recomputed" or row.folder is None:
            continue
        before = found.get(row.folder)
        every = times.get(row.entry), None if before is None else before.written
        written = min((time for time in every if time is not None), default=None)
        hashes = {name: getattr(row, name) for name in HASHES}
        values = {f"env[{name}]": json.dumps(value) for name, value in json.loads(row.env).items()}
        found[row.folder] = Named(row.folder, values | hashes, written)
    return sorted(found.values(), key=lambda one: (one.written or 0, one.name))


_HASH_TEXTS: Final = {
    "config_hash": "the configuration differs (the model, its settings, vLLM's version); vLLM keeps only its hash",
    "code_hash": "the files that were traced differ, in their text or in their paths: the model's, or torch's among them; "
    "vLLM keeps only their hash",
    "compiler_hash": "torch, its settings or the machine differ; vLLM keeps only their hash",
    ENVIRONMENT: "the environment variables that vLLM counts differ; the log has only their hash, cache_key_factors.json their values",
}
_NOT_COUNTED: Final = "not counted"
_LONGEST: Final = 200


class Beside(NamedTuple):
    """A folder, and the nearest one that existed before."""

    folder: Named
    baseline: Named
    is_order_known: bool  # whether modification times show that the baseline existed before
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
        distances = [
            (of_config is not None and other[of_config] != own[of_config], sum(map(ne, other, own)))
            for other in codes[:number]
        ]
        folder, before = folders[number], folders[min(reversed(range(number)), key=distances.__getitem__)]
        is_known = None not in (folder.written, before.written) and folder.written != before.written
        found.append(between(before, folder)._replace(is_order_known=is_known))
    return found


def between(baseline: Named, folder: Named) -> Beside:
    """Two folders side by side, whichever came first."""
    names = dict.fromkeys((*baseline.values, *folder.values))
    changed = [name for name in names if baseline.values.get(name) != folder.values.get(name)]
    return Beside(folder, baseline, False, tuple(sorted(changed, key=lambda name: (name in HASHES, name))))


Codes = tuple[int, ...]
"""For a folder, a code for the value of each varying factor."""


def coded(folders: Sequence[Named]) -> tuple[list[str], list[Codes]]:
    """The factors with several values, and a code for each value in each folder."""
    names = dict.fromkeys(name for folder in folders for name in folder.values)
    varying, columns = [], []
    for name in sorted(names, key=lambda name: (name in HASHES, name)):
        values = [folder.values.get(name) for folder in folders]
        number = {value: code for code, value in enumerate(dict.fromkeys(values))}
        if len(number) > 1:
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
        kinds = process_kinds(factor, before, after)
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
    kinds = process_kinds(factor, before, after)
    if kinds is None:
        return change
    return change._replace(summary=f"{kinds.words}: {change.summary}", process_values=kinds)


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
