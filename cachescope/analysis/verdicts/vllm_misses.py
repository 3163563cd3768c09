"""Why vLLM's own lookups missed: by what its log says, by other starts of the same part of a model, and by the folders that were read.

A lookup of vLLM is one start of one part of a model by one rank. Its key is the name of a folder, which vLLM makes of factors;
torch's hash details and compile ids play no part in it, so nothing else here judges it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import cached_property

import numpy as np
import pandas as pd

from cachescope.analysis.differences import FieldChange
from cachescope.analysis.history.history import History
from cachescope.analysis.history.rows import EntryRow
from cachescope.analysis.verdicts.misses import Why
from cachescope.analysis.verdicts.reasons_found import ReasonsFound
from cachescope.analysis.verdicts.vllm_reasons import (
    COLD_START,
    DISABLED,
    NO_FOLDER,
    NO_HASHES,
    PARTLY_STORED,
    SEVERAL_TREES,
    Judged,
    beside_kept,
    beside_logged,
    not_loaded,
    used_before,
)
from cachescope.analysis.vllm.changes import Beside, between
from cachescope.analysis.vllm.factors import Named, named_folders
from cachescope.analysis.vllm.starts import LOGGED, Part, Parts, Started, clock_off
from cachescope.columns import rows_of
from cachescope.frames.directory_rows import EntryRow as EntryFacts
from cachescope.frames.vllm import FactorsRow, StartRow
from cachescope.terms import VLLM


class VllmMisses:
    """Judges the misses of vLLM's own lookups.

    Parameters
    ----------
    starts, factors, entries : DataFrame
        The frames ``vllm_starts``, ``vllm_factors`` and ``entries``.

    Attributes
    ----------
    starts : dict
        The rows of ``vllm_starts``, by lookup.
    changes : dict
        By lookup, what changed in its key; known once they are judged.
    """

    def __init__(self, starts: pd.DataFrame, factors: pd.DataFrame, entries: pd.DataFrame) -> None:
        self.changes: dict[int, tuple[FieldChange, ...]] = {}
        rows = rows_of(starts, StartRow)
        self.starts = {row.lookup: row for row in rows}
        self._factors = factors
        self._entries = entries

    def beside(self, folder: str, baseline: str, other: VllmMisses) -> Beside | None:
        """A folder beside one of another scope, or of the same: in all factors, or in the four hashes; None if one is not known."""
        for mine, before in ((self._factors_of, other._factors_of), (self._hashes_of, other._hashes_of)):
            if folder in mine and baseline in before:
                return between(before[baseline], mine[folder])
        return None

    @cached_property
    def _factors_of(self) -> dict[str, Named]:
        return {one.name: one for one in named_folders(self._factors, self._entries)}

    @cached_property
    def _hashes_of(self) -> dict[str, Named]:
        """The folders of which the four hashes are known, from logs or from files."""
        rows: list[StartRow | FactorsRow] = [*self.starts.values(), *rows_of(self._factors, FactorsRow)]
        hashes = ((row.folder, [getattr(row, name) for name in LOGGED]) for row in rows)
        return {
            folder: Named(folder, dict(zip(LOGGED, values, strict=True)), None)
            for folder, values in hashes
            if folder is not None and None not in values
        }

    def judge(self, history: History, found: ReasonsFound, entries: int) -> list[EntryRow]:
        """Say why each missed.

        Parameters
        ----------
        history : History
        found : ReasonsFound
            What is found out is noted here.
        entries : int
            How many entries other misses are compared with.

        Returns
        -------
        list of EntryRow
            The entries that these are compared with, which are numbered after those.
        """
        if not self.starts:
            return []
        parts = Parts(self._factors, self._entries)
        starts = _with_clock(self._starts(history), parts)
        of_part: dict[Part, list[Started]] = defaultdict(list)
        for start in starts:
            of_part[start.part].append(start)
        compared: dict[int, int] = {}
        for start in starts:
            if start.row.is_disabled:
                found.record(start.at, DISABLED)
            elif start.row.outcome == "compiled":
                judged = _judged(start, of_part[start.part], parts)
                found.record(start.at, judged.why, judged.baseline)
                if judged.entry is not None:
                    number = compared.setdefault(judged.entry, len(compared))
                    found.baseline_entry[start.at] = entries + number
                if judged.changes:
                    self.changes[int(history.lookups.lookup[start.at])] = judged.changes
        return self._compared(compared)

    def _starts(self, history: History) -> list[Started]:
        """Every start, in time order."""
        lookups = history.lookups
        places = lookups.places_of(np.array(list(self.starts), dtype=np.int64))
        columns = (lookups.run[places], lookups.time[places], lookups.end_time[places])
        values = zip(
            places.tolist(), self.starts.values(), *(column.tolist() for column in columns), strict=True
        )
        return sorted((Started.of(*value) for value in values), key=lambda start: start.at)

    def _compared(self, numbers: Collection[int]) -> list[EntryRow]:
        """The rows of entries that misses are compared with."""
        if not numbers:
            return []
        mine = self._entries[self._entries["entry"].isin(list(numbers))]
        by_id = {row.entry: row for row in rows_of(mine, EntryFacts)}
        return [_entry_row(by_id[number]) for number in numbers]


def _with_clock(starts: Sequence[Started], parts: Parts) -> list[Started]:
    """The same, with how far their clock is off that of the folders."""
    kept = ((start, parts.of(start.row, start.part)) for start in starts if start.row.outcome == "compiled")
    off = clock_off(
        (start, found[0].written) for start, found in kept if len(found) == 1 and found[0].written is not None
    )
    return [start._replace(off=off) for start in starts] if off else list(starts)


def _judged(start: Started, others: Sequence[Started], parts: Parts) -> Judged:
    """Why a start compiled; `others` are all starts of the same part."""
    row = start.row
    if row.load_error is not None:
        return not_loaded(row.load_error, _changed(start, others, parts))
    if row.is_partial:
        return PARTLY_STORED
    if row.folder is None:
        return NO_FOLDER
    of_folder = [other for other in others if other.row.folder == row.folder and other is not start]
    return used_before(start, of_folder) or _changed(start, others, parts) or COLD_START


def _changed(start: Started, others: Sequence[Started], parts: Parts) -> Judged | None:
    """In what its key differs from that of an earlier one; None if there is none."""
    row, earlier = start.row, [other for other in others if other.ended_before(start)]
    kept = parts.of(row, start.part)
    if len({one.name_text or (one.beside and one.beside.baseline.name) for one in kept}) > 1:
        return SEVERAL_TREES
    if kept and (text := kept[0].name_text) is not None:
        return Judged(Why("details_not_recorded", text, "not_known", text, kind=VLLM))
    if kept and (found := beside_kept(start, kept[0], earlier)) is not None:
        return found
    if (found := beside_logged(start, earlier)) is not None or kept:
        return found
    has_other = any(other.row.folder not in (None, row.folder) for other in earlier)
    return NO_HASHES if has_other or parts.has(start.part) else None


def _entry_row(row: EntryFacts) -> EntryRow:
    key, damage = row.cache_key or "", row.damage
    facts = (row.entry, row.cache, key, row.root, row.path, row.modified_time, row.status, damage)
    return EntryRow(
        *facts, guards_expr=None, time_taken_ns=None, code_key=None, direction=None, detail_set=None, gm=None
    )
