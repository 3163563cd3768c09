"""Why vLLM's own lookups missed: by its log, other starts of the same part of a model, and the folders that were read.

A lookup of vLLM is one start of one part of a model by one rank. Its key is the name of a folder, which vLLM derives from
factors. torch's hash details and compile ids play no part in it, so it is judged only here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from operator import attrgetter, ne
from typing import Final, NamedTuple

from cachescope.analysis.differences import FieldChange
from cachescope.analysis.history.history import History
from cachescope.analysis.verdicts.misses import Miss, VerdictsSoFar, Why
from cachescope.analysis.verdicts.since_baseline import ChangedSince, by_fields
from cachescope.analysis.vllm.factors import (
    CODE,
    CONFIGURATION,
    Beside,
    Named,
    between,
    field_changes_of,
    hash_change,
    named_folders,
)
from cachescope.analysis.vllm.folders import reason_of
from cachescope.analysis.vllm.starts import LOGGED, Parts, Started, StoredPart, clock_off, part_of
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.vllm import FactorsRow, StartRow
from cachescope.grouping import by_key
from cachescope.terms import VLLM, Evidence
from cachescope.verdict_kinds import NOT_KNOWN
from cachescope.wording import duration

# `_verify_source_unchanged` of vllm/compilation/decorators.py (0.13.0 and 0.33.0).
_SOURCE_CHANGED: Final = "Source code has changed since the last compilation"
_OTHER_MODEL: Final = "vLLM keeps only the hash of the configuration, so it may be another model"
_OF_CONFIGURATION: Final = LOGGED.index(CONFIGURATION)
_OF_FACTORS: Final = "vLLM wrote the factors of both folders"


class Judged(NamedTuple):
    """Why a start compiled, the index of the lookup or else the entry that it is compared with, and what changed."""

    why: Why
    baseline: int | EntryRow | None = None
    changes: tuple[FieldChange, ...] = ()


def _not_recorded(reason: str, why: str) -> Judged:
    return Judged(Why("details_not_recorded", reason, "not_known", why, kind=VLLM))


def _unavailable(reason: str, evidence: Evidence, why: str, kind: str, baseline: int | None = None) -> Judged:
    return Judged(Why("entry_unavailable", reason, evidence, why, kind=kind), baseline)


DISABLED: Final = Why(
    "disabled",
    "vLLM's compile cache was switched off",
    "recorded",
    "vLLM says that it is switched off",
    kind=VLLM,
)
PARTLY_STORED: Final = _unavailable(
    "some of what had been compiled was loaded, and some of it was not there and was compiled",
    "recorded",
    "vLLM logged both",
    "partly stored",
)
NO_FOLDER: Final = _not_recorded(
    "its log does not name the folder, so nothing says what was in its key",
    'the line "Using cache directory" is missing (vLLM writes it at the level INFO)',
)
NO_HASHES: Final = _not_recorded(
    "this part of a model is in another folder as well, and nothing says what the name of this one was made of: read vLLM's "
    "torch_compile_cache beside its log, or set VLLM_LOGGING_LEVEL=DEBUG",
    "cache_key_factors.json of this folder was not read, and the hashes were not logged",
)
SEVERAL_TREES: Final = _not_recorded(
    "several caches that were read have this folder, and nothing says which of them this process used",
    "none of them is where the log says that the folder is",
)
COLD_START: Final = Judged(
    Why(
        "first_lookup",
        "nothing earlier to compare with: this rank had not compiled this part of a model before, as far as was read",
        "inferred",
        "no earlier start and no folder that was there before was read",
        kind=VLLM,
    )
)
_EDITED: Final = Why(
    "key_changed",
    "a whole compiled model was there for all other factors, and the files that it was compiled from had changed since",
    "recorded",
    "vLLM compared the files with those that the model was compiled from, and says so",
    (CODE,),
)


def not_loaded(error: str, changed: Judged | None) -> Judged:
    """Why an existing whole compiled model was not used; `changed` is what its folder says."""
    if error.startswith(_SOURCE_CHANGED):
        if changed is not None and changed.why.changed == (CODE,):
            return changed._replace(why=_EDITED)
        return Judged(_EDITED, changes=(hash_change(CODE),))
    reason = f"a whole compiled model was there and could not be loaded: {error}"
    if changed is not None and changed.why.changed:
        reason += f"; of its graphs, {changed.why.reason}"
    return _unavailable(reason, "recorded", "vLLM wrote the error", "load error")


def used_before(start: Started, others: Sequence[Started]) -> Judged | None:
    """What became of a folder that other starts named; None if none of them had used it before."""
    row = start.row
    here = [other for other in others if other.row.path == row.path]
    if before := [other for other in here if other.is_stored and other.ended_before(start)]:
        if (error := before[-1].row.save_error) is not None:
            reason = f"run {before[-1].run} had used the same folder and could not save the whole compiled model: {error}"
            why = "vLLM wrote the error; that nothing else was there that this start could have used, is not said"
            return _unavailable(reason, "inferred", why, "not saved", before[-1].at)
        why = "why what it had stored was not used, the log does not say"
        reason = f"run {before[-1].run} had used the same folder, and it was compiled again: {why}"
        return _unavailable(reason, "not_known", why, NOT_KNOWN, before[-1].at)
    if racing := [other for other in here if other.run != start.run and other.was_running_at(start)]:
        reason = f"run {racing[0].run} had begun to compile into the same folder and had not ended"
        why = "by the times in the logs, which are whole seconds"
        return Judged(Why("compiled_concurrently", reason, "inferred", why), racing[0].at)
    if here and any(one.times is None for one in (start, *here)):
        reason = "several starts named this folder, and the logs have no times: which was first is not known"
        return Judged(Why("first_lookup", reason, "not_known", reason, kind=NOT_KNOWN))
    if elsewhere := [one for one in others if one not in here and one.is_stored and one.ended_before(start)]:
        there = elsewhere[-1]
        reason = f"the same folder had been made in another directory: {there.row.path}, not {row.path}"
        why = "the logs name both directories"
        return _unavailable(reason, "recorded", why, "another directory", there.at)
    return None


def beside_kept(start: Started, kept: StoredPart, earlier: Sequence[Started]) -> Judged | None:
    """How the factors of its folder differ from those of the nearest folder that existed before.

    That two folders differ tells why there are two. That one of them was new to this start takes more: that it wrote the
    factors itself, or that no earlier start of the same part is known to have used the folder and another one used the other.
    """
    made = start.made(kept.file.modified_time)
    if made == "before":
        why = (
            "its factors were written before, by their time of modification (unless the log is of another time zone), and no log "
            "of the start that wrote them was read"
        )
        reason = f"its folder had been there before this start, and what was in it was not used: {why}"
        return _unavailable(reason, "not_known", why, NOT_KNOWN)
    beside = kept.beside
    if beside is None:
        return None
    name = beside.baseline.name
    used = [one for one in earlier if one.row.folder == name and one.is_stored]
    if used:
        kind: Evidence = "recorded" if made == "by it" else "inferred"
        which = _made_here(start) if made == "by it" else "no earlier start into this one was read"
        text = f"{_OF_FACTORS}; run {used[-1].run} had used the other before, and {which}"
        return changed_from(beside, (kind, text), used[-1].at)
    if made == "by it" and beside.is_order_known:
        text = f"{_OF_FACTORS}; by their times of modification the other was there before, and {_made_here(start)}"
        return changed_from(beside, ("inferred", text), kept.baseline)
    reason = f"the nearest folder is {name}; whether it was there before this start is not known"
    why = "no log of a start that used it before was read, and times of modification do not tell"
    return Judged(Why("first_lookup", reason, "not_known", why, kind=NOT_KNOWN))


def _made_here(start: Started) -> str:
    off = f" (the log's clock is {duration(abs(start.off))} off that of the files)" if start.off else ""
    return f"this one was made by this start{off}"


def beside_logged(start: Started, earlier: Sequence[Started]) -> Judged | None:
    """Which of the four hashes differ from those of the nearest earlier start that logged them, by the rule of `nearest`."""
    own, folder = start.hashes, start.row.folder
    known = [one for one in earlier if one.hashes and one.is_stored and one.row.folder not in (None, folder)]
    if own is None or not known:
        return None

    def distance(one: Started) -> int:
        differs: list[bool] = list(map(ne, one.hashes or own, own))
        return sum(differs) + len(own) * differs[_OF_CONFIGURATION]

    before = min(reversed(known), key=distance)
    mine, other = (
        Named(one.row.folder or "", dict(zip(LOGGED, one.hashes or own, strict=True)), one.began)
        for one in (start, before)
    )
    changed = tuple(name for name in LOGGED if mine.values[name] != other.values[name])
    text = "vLLM logged the hashes of both, and the other start had ended before"
    return changed_from(Beside(mine, other, True, changed), ("recorded", text), before.at)


def changed_from(
    beside: Beside, evidence: tuple[Evidence, str], baseline: int | EntryRow | None
) -> Judged | None:
    """The verdict for a key that differs from another in some factors: not known if they may be of two models."""
    kind, text = evidence
    changed = beside.changed
    if not changed:
        return None
    if CONFIGURATION in changed and CODE in changed:
        reason = (
            "both the configuration and the files that were traced differ from those of the nearest folder, "
            f"{beside.baseline.name}"
        )
        return Judged(Why("first_lookup", reason, "not_known", _OTHER_MODEL, kind=NOT_KNOWN))
    if CONFIGURATION in changed:
        kind, text = "inferred", f"{text}; {_OTHER_MODEL}"
    reason = f"folder {beside.folder.name} beside {beside.baseline.name}: {reason_of(beside)}"
    return Judged(Why("key_changed", reason, kind, text, changed), baseline, field_changes_of(beside))


class VllmMisses:
    """Judges the misses of vLLM's own lookups."""

    def __init__(
        self, starts: Iterable[StartRow], factors: Sequence[FactorsRow], entries: Sequence[EntryRow]
    ) -> None:
        self.starts = {row.lookup: row for row in starts}
        self._factors = factors
        self._entries = entries

    def beside(self, folder: str, baseline: str, other: VllmMisses) -> Beside | None:
        """A folder beside another one, of this scope or another: by all factors, or by the four hashes; None if one of them is not known."""
        for mine, before in ((self._factors_of, other._factors_of), (self._hashes_of, other._hashes_of)):
            if folder in mine and baseline in before:
                return between(before[baseline], mine[folder])
        return None

    @cached_property
    def _factors_of(self) -> dict[str, Named]:
        return {one.name: one for one in named_folders(self._factors, self._entries)}

    @cached_property
    def _hashes_of(self) -> dict[str, Named]:
        """The folders whose four hashes are known, from logs or from files."""
        rows: list[StartRow | FactorsRow] = [*self.starts.values(), *self._factors]
        hashes = ((row.folder, [getattr(row, name) for name in LOGGED]) for row in rows)
        return {
            folder: Named(folder, dict(zip(LOGGED, values, strict=True)), None)
            for folder, values in hashes
            if folder is not None and None not in values
        }

    def judge(self, history: History, found: VerdictsSoFar) -> dict[int, tuple[FieldChange, ...]]:
        """Say why each missed, and return what changed in the key, by lookup."""
        changes: dict[int, tuple[FieldChange, ...]] = {}
        parts = Parts(self._factors, self._entries)
        in_order = sorted((Started.of(row, history) for row in self.starts.values()), key=attrgetter("at"))
        starts = _with_clock(in_order, parts)
        of_part = by_key((start.part, start) for start in starts)
        for start in starts:
            if start.row.is_disabled:
                found.record(start.at, DISABLED)
            elif start.row.outcome == "compiled":
                judged = _judged(start, of_part[start.part], parts)
                found.record(start.at, judged.why, judged.baseline)
                changes[start.row.lookup] = judged.changes
        return changes


def _with_clock(starts: Sequence[Started], parts: Parts) -> list[Started]:
    """Every start, with the offset of its clock from that of the folders."""
    kept = ((start, parts.of(start.row, start.part)) for start in starts if start.row.outcome == "compiled")
    off = clock_off(
        (start, written)
        for start, found in kept
        if len(found) == 1 and (written := found[0].file.modified_time) is not None
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
    """How its key differs from that of an earlier start; None if there is none."""
    row, earlier = start.row, [other for other in others if other.ended_before(start)]
    kept = parts.of(row, start.part)
    if len({one.name_text or (one.beside and one.beside.baseline.name) for one in kept}) > 1:
        return SEVERAL_TREES
    if kept and (text := kept[0].name_text) is not None:
        return _not_recorded(text, text)
    if kept and (found := beside_kept(start, kept[0], earlier)) is not None:
        return found
    if (found := beside_logged(start, earlier)) is not None or kept:
        return found
    has_other = any(other.row.folder not in (None, row.folder) for other in earlier)
    return NO_HASHES if has_other or parts.has(start.part) else None


def vllm_changed_since(misses: Iterable[Miss], mine: VllmMisses, before: VllmMisses) -> list[ChangedSince]:
    """What changed for first starts among `misses` whose part `before` has only in other folders."""
    firsts = [miss for miss in misses if miss.row.cache == VLLM and miss.why.what.is_first]
    of_part = by_key((part_of(one), one) for one in before.starts.values() if one.outcome != "not_known")
    found = []
    for miss in firsts:
        row = mine.starts[miss.row.lookup]
        if (beside := _nearest(row, of_part[part_of(row)], mine, before)) is not None:
            found.append((miss, beside.changed, beside))
    return by_fields(found, field_changes_of)


def _nearest(
    row: StartRow, others: Sequence[StartRow], mine: VllmMisses, before: VllmMisses
) -> Beside | None:
    """The folder of another start that differs in the fewest factors; None if the folder is one of theirs, or none is known."""
    folders = {one.folder for one in others if one.folder is not None}
    if row.folder is None or row.folder in folders:
        return None
    known = [one for name in sorted(folders) if (one := mine.beside(row.folder, name, before)) is not None]
    # As for starts of one scope: with another configuration and other code it may be another model.
    of_model = [one for one in known if one.changed and not {CONFIGURATION, CODE} <= set(one.changed)]
    return min(of_model, key=lambda one: (CONFIGURATION in one.changed, len(one.changed)), default=None)
