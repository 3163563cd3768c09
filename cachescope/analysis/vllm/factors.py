"""The factors of vLLM's folders: the variables of the environment, and the hashes of all else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from cachescope.analysis.process_values import DiffersBy, differs_by
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.vllm import FactorsRow
from cachescope.keys.vllm import FOLDER_NAME, vllm_folder_name

ENVIRONMENT, CONFIGURATION, CODE, COMPILER = "env_hash", "config_hash", "code_hash", "compiler_hash"
HASHES: Final = (CONFIGURATION, CODE, COMPILER)
"""Factors of which vLLM keeps only the hash."""

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


@dataclass(frozen=True, slots=True)
class Named:
    """One folder whose name follows from its factors."""

    name: str
    values: Mapping[str, str]  # the value of each factor: JSON of a variable, else a hash
    written: int | None  # when its factors were first written


def variable(name: str) -> str:
    """The factor that an environment variable is."""
    return f"env[{name}]"


def name_of_variable(factor: str) -> str | None:
    """The variable that a factor is; None if it is a hash."""
    return None if factor in HASHES else factor.removeprefix("env[").removesuffix("]")


def process_kinds(factor: str, before: str, after: str) -> DiffersBy | None:
    """The values of a process by which two values of a variable differ; ``VLLM_DP_RANK`` is a rank as ``DP_RANK`` is."""
    if factor == _BUNDLES and _INDICES.fullmatch(before) and _INDICES.fullmatch(after):
        return DiffersBy(("bundle index",), is_certain=True, is_all=True)
    return differs_by(factor.replace("env[VLLM_", "env[", 1), before, after)


def name_kinds(rows: Sequence[FactorsRow]) -> dict[int, NameIs]:
    """By entry: whether the name of the folder follows from these factors, or from others in it."""
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
        written = _earliest(times.get(row.entry), before.written if before is not None else None)
        hashes = {name: getattr(row, name) for name in HASHES}
        values = {variable(name): json.dumps(value) for name, value in json.loads(row.env).items()}
        found[row.folder] = Named(row.folder, values | hashes, written)
    return sorted(found.values(), key=lambda one: (one.written or 0, one.name))


def _earliest(*times: int | None) -> int | None:
    return min((time for time in times if time is not None), default=None)
