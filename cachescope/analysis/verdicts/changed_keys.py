"""Another key for the same graph: what changed in it, of what kind that is, and how far it is known.

Two edits of two graphs both change the field ``gm``, but are two causes. A change of torch changes a hundred fields at
once, but is one cause.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final

from cachescope.analysis.differences import component_change, is_input
from cachescope.analysis.graphs import graph_diff
from cachescope.analysis.history.history import History
from cachescope.analysis.key_distance import Change
from cachescope.analysis.verdicts.baselines import Baseline, Baselines
from cachescope.analysis.verdicts.change_advice import symbols_in
from cachescope.analysis.verdicts.misses import Candidate, Why
from cachescope.analysis.verdicts.option_defaults import default_hashes
from cachescope.analysis.verdicts.recompiles import is_recompiled, place_of, recompile_of
from cachescope.details import HashDetails
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.kept import kept
from cachescope.keys.paths import is_in_remote_cache
from cachescope.terms import Evidence
from cachescope.verdict_kinds import SIZES, UPGRADE
from cachescope.wording import plural

_TORCH_VERSION: Final = "torch_version"
# Numbers that dynamo gives to the variables of a graph: the same edit in another graph has other numbers.
_NUMBERING: Final = re.compile(r"(?<=[a-z])_\d+\b")


class ChangedKeys:
    """Says why a key is another one than the key it is compared with."""

    def __init__(self, history: History, baselines: Baselines) -> None:
        self._history = history
        self._baselines = baselines
        self._kinds = ChangeKinds(history.details, history.runs)
        # A fleet misses in the same few ways.
        self._whys: dict[tuple[Change, int, tuple[Evidence, str]], Why] = {}

    def why(self, at: int, baseline: Baseline, found: Candidate, change: Change, apart: int) -> Why:
        """Why a lookup missed whose key is another one than that of its baseline, which was found at some place."""
        if not change.names:
            return _NO_DETAIL_DIFFERS
        row = self._history.lookups[at]
        is_one_run = isinstance(found, LookupRow) and found.run == row.run
        # The evidence that the key of the baseline has changed into this one.
        if isinstance(found, LookupRow) and is_one_run and is_recompiled(found, row):
            if (again := recompile_of(row, change.names, found)) is not None:
                evidence = _ONE_PROCESS if again.reason is None else GUARD_FAILED
                reason = again.reason or self._what_changed(row, found, change)
                return Why("key_changed", reason, *evidence, change.names, again.kind)
            known = _ONE_PROCESS
        elif change.is_of_graph:
            known = "inferred", f"the graphs are taken for one: {self._baselines.are_alike_by(found, row)}"
        elif isinstance(baseline, int):
            known = _CONCURRENT if self._history.was_running(baseline, at) else _RECORDED
        else:
            known = _REMOTE if is_in_remote_cache(baseline.path) else _BY_TIME
        if is_one_run or change.is_of_torch or change.is_of_graph:
            return self._why(row, found, change, apart, known)
        asked = change, apart, known
        if asked not in self._whys:
            self._whys[asked] = self._why(row, found, change, apart, known)
        return self._whys[asked]

    def _why(
        self, row: LookupRow, found: Candidate, change: Change, apart: int, known: tuple[Evidence, str]
    ) -> Why:
        changed = change.names
        assert found.detail_set is not None and row.detail_set is not None
        sides = found.detail_set, row.detail_set
        runs = (found.run if isinstance(found, LookupRow) else None), row.run
        kind = self._kinds.kind(*sides, runs)
        if _TORCH_VERSION not in changed and (became := self._kinds.sizes_became(*sides)):
            kind = f"{SIZES}{became}: {place_of(row)}"
        if _TORCH_VERSION in changed:
            # The others follow from it.
            changed = tuple(sorted(changed, key=lambda field: field != _TORCH_VERSION))
            follow = plural(
                len(changed) - 1, "other field of the key follows", "other fields of the key follow"
            )
            reason = f"{kind.removeprefix(UPGRADE)}; {follow}"
            if besides := self._kinds.changed_besides(*sides, runs):
                reason += f"; also changed: {_listed(besides)}"
        else:
            reason = self._what_changed(row, found, change)
        if len(changed) < apart:
            reason += f" (compared with the run before it, {apart} fields differ)"
        return Why("key_changed", reason, *known, changed, kind)

    def _what_changed(self, row: LookupRow, found: Candidate, change: Change) -> str:
        changed = change.names
        graph = "another form of the graph" if change.is_of_graph else "the same graph"
        if isinstance(found, LookupRow) and is_recompiled(found, row):
            graph = f"compiled again in one process, after compile {found.compile_id}"
        if change.alone is None:
            return f"{graph}, and {len(changed)} fields of the key differ: {_listed(changed)}"
        return f"{graph}, and one field of the key differs: {changed[0]}, {self._summary(*change.alone)}"

    @kept
    def _summary(self, old: int | None, new: int | None) -> str:
        """What changed in a field, in one line."""
        return component_change(self._history.details, old, new).summary


GUARD_FAILED: Final[tuple[Evidence, str]] = ("recorded", "torch recorded which guard failed")
_ONE_PROCESS: Final[tuple[Evidence, str]] = (
    "recorded",
    "torch's compile ids count the compiles of one function in one process",
)
_CONCURRENT: Final[tuple[Evidence, str]] = (
    "inferred",
    "the processes ran at the same time, and their keys differ by their rank alone",
)
_RECORDED: Final[tuple[Evidence, str]] = "recorded", "torch recorded the hash details of both keys"
_REMOTE: Final[tuple[Evidence, str]] = (
    "inferred",
    "predicted: the program would ask the remote cache that holds the entry",
)
_BY_TIME: Final[tuple[Evidence, str]] = (
    "inferred",
    "by its time of modification the entry had been stored before",
)
_NO_DETAIL_DIFFERS: Final = Why(
    "no_detail_differs",
    "the keys differ and every recorded field is equal: what torch pickles for the key differs "
    "where its list of fields cannot show it",
    "recorded",
    "torch recorded the hash details of both keys",
)


def _listed(changed: tuple[str, ...]) -> str:
    return (
        ", ".join(changed) if len(changed) <= 4 else f"{', '.join(changed[:3])} and {len(changed) - 3} more"
    )


class ChangeKinds:
    """Names the kinds of changed keys; answers are cached."""

    def __init__(self, details: HashDetails, runs: Sequence[RunRow]) -> None:
        self._details = details
        self._runs = {run.run: run for run in runs}

    def kind(self, before: int, after: int, runs: tuple[int | None, int]) -> str:
        """The kind of the change from one set of hash details to another; empty if its fields describe it completely."""
        graph = None
        for field, old, new in self._details.changes(before, after):
            name = self._details.fields[field]
            if name == _TORCH_VERSION:
                return UPGRADE + self._versions(*runs)
            if name == "gm":
                graph = old, new
        return "" if graph is None else self._edit(*graph)

    @kept
    def _edit(self, old: int | None, new: int | None) -> str:
        return _edit_of(self._text(old), self._text(new))

    def sizes_became(self, before: int, after: int) -> str:
        """``symbolic`` where the inputs of a graph have more symbols than before, ``fixed`` where they have fewer; else empty."""
        sides: tuple[list[str], list[str]] = [], []
        for field, *components in self._details.changes(before, after):
            if is_input(self._details.fields[field]):
                for texts, component in zip(sides, components, strict=True):
                    texts.append(self._text(component))
        more = len(symbols_in(sides[1])) - len(symbols_in(sides[0]))
        return "symbolic" if more > 0 else "fixed" if more < 0 else ""

    def changed_besides(self, before: int, after: int, runs: tuple[int | None, int]) -> tuple[str, ...]:
        """Options that had torch's default before an upgrade but not the default of the new torch: the user set them."""
        old_version, new_version = self._version(runs[0]), self._version(runs[1])
        if old_version is None or new_version is None:
            return ()
        return tuple(
            self._details.fields[field]
            for field, old, new in self._details.changes(before, after)
            if self._has_default(field, old, old_version)
            and self._has_default(field, new, new_version) is False
        )

    def _has_default(self, field: int, component: int | None, version: str) -> bool | None:
        defaults = default_hashes(self._details.fields[field], version)
        if component is None or not defaults:
            return None
        return self._details.components[component][1:52] in defaults

    def _versions(self, before: int | None, after: int) -> str:
        """``torch 2.13.0 -> 2.15.0, Python 3.13 -> 3.14``, as far as the logs record them."""
        old, new = (None if run is None else self._runs.get(run) for run in (before, after))
        versions = self._version(before), self._version(after)
        if None in versions:
            text = "another torch" if versions[1] is None else f"another torch -> {versions[1]}"
        elif versions[0] == versions[1]:
            text = f"another build of torch {versions[0]}, or files in it were edited"
        else:
            text = f"torch {versions[0]} -> {versions[1]}"
        pythons = [None if run is None else run.python_version for run in (old, new)]
        if None not in pythons and pythons[0] != pythons[1]:
            text += f", Python {pythons[0]} -> {pythons[1]}"
        return text

    def _version(self, run: int | None) -> str | None:
        found = None if run is None else self._runs.get(run)
        return None if found is None else found.torch_version

    def _text(self, component: int | None) -> str:
        found = self._details.parsed(component)
        return "" if found is None else found.value_text


def _edit_of(before: str, after: str) -> str:
    """A digest of the lines that an edit removed and added; empty if the printed code is equal."""
    lines = graph_diff(before, after, context=0).split("\n")[2:]
    edit = [_NUMBERING.sub("", line) for line in lines if line[:1] in ("+", "-")]
    if not edit:
        return ""
    digest = hashlib.sha256("\n".join(edit).encode("utf-8", "replace")).hexdigest()
    return f"edit {digest[:8]}"
