"""The parts of models in the folders that were read, each beside the nearest folder where the same rank kept the same part before.

A rank finds nothing in the folder of another, and an engine nothing of a draft model where only the model itself is kept. So
what a lookup missed is compared with folders that have its own rank and part.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from cachescope.analysis.vllm.changes import Beside, nearest
from cachescope.analysis.vllm.factors import NAME_TEXTS, Named, name_kinds, named_folders
from cachescope.columns import plain_columns, rows_of
from cachescope.frames.vllm import FactorsRow, StartRow
from cachescope.keys.vllm import place_in_tree


class Part(NamedTuple):
    """A part of a model of one rank: what vLLM looks for in a folder."""

    rank: int | None
    dp_rank: int | None
    prefix: str | None


def part_of(start: StartRow) -> Part:
    """The part that a log says was compiled or loaded."""
    if start.path is None:
        return Part(start.rank, None, start.prefix)
    place = place_in_tree(f"{start.path}/")
    return Part(place.rank, place.dp_rank, place.prefix)


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A part in a folder that was read.

    Attributes
    ----------
    entry : int
        Its factors, an id into entries.
    path : str
        The folder of the part.
    written : int or None
        When its factors were written.
    name_text : str or None
        Why it is not known what the name of the folder was made of; None if it is known.
    beside : Beside or None
        The folder and the nearest that had the part before; None if there was none.
    baseline_entry : int or None
        The factors of the part in the latter, an id into entries.
    """

    entry: int
    path: str
    written: int | None
    name_text: str | None
    beside: Beside | None = None
    baseline_entry: int | None = None


class Parts:
    """The parts in all folders that were read.

    Parameters
    ----------
    factors, entries : DataFrame
        The frames ``vllm_factors`` and ``entries``.
    """

    def __init__(self, factors: pd.DataFrame, entries: pd.DataFrame) -> None:
        rows = rows_of(factors, FactorsRow)
        names = name_kinds(rows)
        named = {one.name: one for one in named_folders(factors, entries)}
        files = _files(entries)
        self._kept: dict[tuple[str, Part], list[StoredPart]] = defaultdict(list)
        groups: dict[tuple[str, Part], list[tuple[Named, FactorsRow]]] = defaultdict(list)
        for row in rows:
            path, written = files[row.entry]
            part = Part(row.rank, row.dp_rank, row.prefix)
            if row.folder in named:
                values = named[row.folder].values
                groups[_root(path, row), part].append((Named(row.folder, values, written), row))
            elif row.folder is not None:
                kept = StoredPart(row.entry, path, written, NAME_TEXTS[names[row.entry]])
                self._kept[row.folder, part].append(kept)
        for (_, part), group in groups.items():
            group.sort(key=lambda one: (one[0].written or 0, one[0].name))
            entry_of = {folder.name: row.entry for folder, row in group}
            besides = [None, *nearest([folder for folder, _ in group])]
            for (folder, row), beside in zip(group, besides, strict=True):
                before = None if beside is None else entry_of[beside.baseline.name]
                kept = StoredPart(row.entry, *files[row.entry], None, beside, before)
                self._kept[folder.name, part].append(kept)

    def of(self, start: StartRow, part: Part) -> Sequence[StoredPart]:
        """What was read of the part that a start named; several if trees of several machines have it and none has its path."""
        found = self._kept.get((start.folder or "", part), [])
        same = [one for one in found if start.path is not None and one.path == os.path.normpath(start.path)]
        return same or found

    def has(self, part: Part) -> bool:
        """Whether any folder has a part."""
        return any(one == part for _, one in self._kept)


def _files(entries: pd.DataFrame) -> dict[int, tuple[str, int | None]]:
    """By entry, the folder of a file and when it was written."""
    columns = plain_columns(entries, ["entry", "path", "modified_time"])
    return {
        entry: (os.path.dirname(os.path.abspath(path)), written)
        for entry, path, written in zip(*columns.values(), strict=True)
    }


def _root(path: str, row: FactorsRow) -> str:
    """The tree that a part is in."""
    return path.rpartition(f"/{row.folder}/rank_{row.rank}_{row.dp_rank}")[0]
