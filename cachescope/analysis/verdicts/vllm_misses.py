"""Why vLLM's own lookups missed: by what its log says, by other starts of the same part of a model, and by the folders that were read.

A lookup of vLLM is one start of one part of a model by one rank. Its key is the name of a folder, which vLLM makes of factors;
torch's hash details and compile ids play no part in it, so nothing else here judges it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

from cachescope.analysis.differences import FieldChange
from cachescope.analysis.history.history import History
from cachescope.analysis.verdicts.misses import Miss, VerdictsSoFar, Why
from cachescope.analysis.verdicts.since_baseline import ChangedSince
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
from cachescope.analysis.vllm.changes import Beside, between, field_changes_of
from cachescope.analysis.vllm.factors import CODE, CONFIGURATION, Named, named_folders
from cachescope.analysis.vllm.starts import LOGGED, Parts, Started, clock_off, part_of
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.vllm import FactorsRow, StartRow
from cachescope.grouping import by_key
from cachescope.terms import VLLM
from cachescope.verdict_kinds import kind_of


class VllmMisses:
    """Judges the misses of vLLM's own lookups."""

    def __init__(
        self, starts: Iterable[StartRow], factors: Sequence[FactorsRow], entries: Sequence[EntryRow]
    ) -> None:
        # By lookup, what changed in its key; known once they are judged.
        self.changes: dict[int, tuple[FieldChange, ...]] = {}
        self.starts = {row.lookup: row for row in starts}
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
        rows: list[StartRow | FactorsRow] = [*self.starts.values(), *self._factors]
        hashes = ((row.folder, [getattr(row, name) for name in LOGGED]) for row in rows)
        return {
            folder: Named(folder, dict(zip(LOGGED, values, strict=True)), None)
            for folder, values in hashes
            if folder is not None and None not in values
        }

    def judge(self, history: History, found: VerdictsSoFar) -> None:
        """Say why each missed."""
        if not self.starts:
            return
        parts = Parts(self._factors, self._entries)
        starts = _with_clock(self._starts(history), parts)
        of_part = by_key((start.part, start) for start in starts)
        entries = {entry.entry: entry for entry in self._entries}
        for start in starts:
            if start.row.is_disabled:
                found.record(start.at, DISABLED)
            elif start.row.outcome == "compiled":
                judged = _judged(start, of_part[start.part], parts)
                entry = None if judged.entry is None else entries[judged.entry]
                found.record(start.at, judged.why, judged.baseline if entry is None else entry)
                if judged.changes:
                    self.changes[start.row.lookup] = judged.changes

    def _starts(self, history: History) -> list[Started]:
        """Every start, in time order."""
        found = []
        for row in self.starts.values():
            at = history.index_of[row.lookup]
            lookup = history.lookups[at]
            found.append(Started.of(at, row, lookup.run, lookup.time, lookup.end_time))
        return sorted(found, key=lambda start: start.at)


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


def vllm_changed_since(misses: Iterable[Miss], mine: VllmMisses, before: VllmMisses) -> list[ChangedSince]:
    """What changed for first starts among `misses` whose part `before` has in other folders only."""
    firsts = [miss for miss in misses if miss.row.cache == VLLM and kind_of(miss.why).is_first]
    found: dict[tuple[str, ...], list[Miss]] = defaultdict(list)
    nearest_of: dict[tuple[str, ...], Beside] = {}
    for miss in firsts:
        row = mine.starts[miss.row.lookup]
        others = [
            one
            for one in before.starts.values()
            if part_of(one) == part_of(row) and one.outcome != "not_known"
        ]
        beside = _nearest(row, others, mine, before)
        if beside is not None:
            found[beside.changed].append(miss)
            nearest_of.setdefault(beside.changed, beside)
    return [
        ChangedSince(
            fields,
            field_changes_of(nearest_of[fields]),
            same[0].cause,
            tuple(miss.row.lookup for miss in same),
        )
        for fields, same in found.items()
    ]


def _nearest(
    row: StartRow, others: Sequence[StartRow], mine: VllmMisses, before: VllmMisses
) -> Beside | None:
    """The folder of another start that differs in the fewest factors; None if the folder is one of theirs, or none is known."""
    folders = {one.folder for one in others if one.folder is not None}
    if row.folder is None or row.folder in folders:
        return None
    known = [one for name in sorted(folders) if (one := mine.beside(row.folder, name, before)) is not None]
    # As of starts of one scope: with another configuration and other code it may be another model.
    of_model = [one for one in known if one.changed and not {CONFIGURATION, CODE} <= set(one.changed)]
    return min(of_model, key=lambda one: (CONFIGURATION in one.changed, len(one.changed)), default=None)
