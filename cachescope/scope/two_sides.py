"""Two sides beside each other: what differs between them, and whether one would find the entries of the other."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from cachescope.columns import records
from cachescope.errors import CachescopeError, NotFoundError
from cachescope.scope.opened import Opened
from cachescope.scope.read import read
from cachescope.scope.scope import Scope
from cachescope.terms import CACHES, MEGA_CACHE

if TYPE_CHECKING:
    from cachescope.analysis.prediction import ProcessFields
    from cachescope.report.comparison import Comparison
    from cachescope.report.sides import Side


def compare(before: str | Path, after: str | Path, within: Scope | None = None) -> Comparison:
    """What differs between two runs, directories or snapshots, or between a snapshot and a directory.

    Parameters
    ----------
    before, after : path or str
        Two paths: logs, cache directories, snapshots, or directories of them. With `within`: keys (or enough
        of their beginnings), numbers of lookups, or ``run:N``.
    within : Scope, optional
        Where to look the two up, instead of reading them.

    Returns
    -------
    Comparison
        With a text and an HTML repr, ``.frame`` (the fields that differ), ``.graphs``, ``.contexts`` where a
        side is a snapshot, and ``.predictions`` where one side is a directory and the other a process.

    Raises
    ------
    SourceError
        If a source cannot be read.
    NotFoundError
        If a name stands for nothing in `within`.

    Examples
    --------
    >>> import cachescope
    >>> scope = cachescope.read(cachescope.sample("config_flip"))
    >>> cachescope.compare("run:0", "run:1", within=scope).frame["field"].tolist()
    ['inductor_config[epilogue_fusion]']
    """
    from cachescope.report.sides import side_below, side_named

    names = (os.fspath(before), os.fspath(after))
    if within is not None:
        return compare_sides(within, side_named(within, names[0]), side_named(within, names[1]))
    scope = read(*names)
    return compare_sides(scope, side_below(scope, names[0]), side_below(scope, names[1]))


def compare_sides(scope: Scope, before: Side, after: Side) -> Comparison:
    """What differs between two sides of one scope."""
    from cachescope.report.comparison import Comparison
    from cachescope.report.difference import difference

    names = (before.name, after.name)
    both_have_keys = before.keys and after.keys
    return Comparison(
        *names,
        graphs=difference(scope, before.keys, after.keys, names) if both_have_keys else None,
        contexts=_contexts(scope, before, after),
        predictions=_predictions(scope, before, after),
    )


def will_hit(
    directory: str | Path | Scope, process: str | Path | Scope | Mapping[str, Any], run: int | None = None
) -> pd.DataFrame:
    """Whether a process would find each FX and AOTAutograd entry of a cache directory.

    Parameters
    ----------
    directory : path or Scope
        The cache directory, or a mega-cache file (``torch.compiler.save_cache_artifacts``); of a Scope, all
        entries that were read.
    process : path, Scope or mapping
        The snapshot of a process (`cachescope.capture`, or its file), or the logs of one: a path, or a Scope.
    run : int, optional
        Which run of the logs; the last one by default.

    Returns
    -------
    DataFrame
        See ``describe("predictions")``: yes, no or unknown for each entry, whether what would be found is unsafe
        there (made for another CPU, which keys do not say), the fields in the way, and what is taken for granted.
        A prediction assumes the program that made the entry.

    Raises
    ------
    SourceError
        If a source cannot be read.
    NotFoundError
        If there is no such run, or the logs hold none.
    CachescopeError
        If the snapshot does not hold the fields of the keys.

    Examples
    --------
    >>> import cachescope
    >>> made = cachescope.sample("entry_truncated")
    >>> cachescope.will_hit(made, made)["will_hit"].tolist()
    ['yes', 'no', 'yes', 'yes']
    """
    scope = directory if isinstance(directory, Scope) else read(directory)
    known = _snapshot_fields(process) if _is_snapshot(process) else _run_fields(process, run)
    return _predicted(scope, scope.entries, known)


def _predicted(scope: Scope, entries: pd.DataFrame, process: ProcessFields) -> pd.DataFrame:
    """Of a directory its entries; where there are none, those that mega-cache files hold."""
    from cachescope.analysis.prediction import predictions_frame
    from cachescope.readers.source_code import source_of

    details = scope.tables.hash_details
    files = entries.loc[entries["cache"] == MEGA_CACHE, ["entry", "path"]]
    if files.empty or entries["cache"].isin(CACHES).any():
        return predictions_frame(entries, details, process, source_of)
    opened = Opened(files, details)
    found = predictions_frame(opened.entries, details, process, opened.source_of)
    return found.assign(entry=found["entry"].map(opened.file_of).astype(found["entry"].dtype))


def _contexts(scope: Scope, one: Side, other: Side) -> pd.DataFrame | None:
    if not one.snapshots and not other.snapshots:
        return None
    found = [_context_of(scope, side) for side in (one, other)]
    return None if None in found else scope.context_difference(*found)  # type: ignore[arg-type]


def _context_of(scope: Scope, side: Side) -> int | None:
    """The snapshot of a side, else the context of its last run."""
    if side.snapshots:
        return side.snapshots[-1]
    contexts = scope.contexts
    of_runs = contexts.loc[contexts["run"].isin(side.runs), "context"].tolist()
    return of_runs[-1] if of_runs else None


def _predictions(scope: Scope, one: Side, other: Side) -> pd.DataFrame | None:
    from cachescope.analysis.prediction import ProcessFields

    directories = [side for side in (one, other) if len(side.entries)]
    processes = [side for side in (one, other) if not len(side.entries) and (side.snapshots or side.runs)]
    if not directories or not processes:
        return None
    (directory,), (process,) = directories, processes
    if process.snapshots:
        contexts = scope.contexts
        (captured,) = records(contexts[contexts["context"] == process.snapshots[-1]])
        known = ProcessFields.of_snapshot(
            json.loads(captured["key_fields"] or "null"),
            json.loads(captured["settings"] or "{}"),
            captured["key_fields_problem"],
            captured["torch_version"],
            captured["platform"],
        )
    else:
        known = _fields_of_run(scope, process.runs[-1])
    return _predicted(scope, directory.entries, known)


def _is_snapshot(process: str | Path | Scope | Mapping[str, Any]) -> bool:
    from cachescope.readers.snapshot import looks_like_snapshot

    if isinstance(process, Scope):
        return False
    if isinstance(process, Mapping):
        return True
    try:
        with Path(process).open("rb") as file:
            return looks_like_snapshot(file.read(256))
    except OSError:  # a directory, a pattern, or nothing: what reads it says which
        return False


def _snapshot_fields(process: Any) -> ProcessFields:
    from cachescope.analysis.prediction import ProcessFields
    from cachescope.readers.snapshot import read_snapshot

    snapshot = process if isinstance(process, Mapping) else read_snapshot(process)
    fields, problem = snapshot.get("key_fields"), snapshot.get("key_fields_problem")
    settings = snapshot.get("settings") or {}
    version, platform = snapshot.get("torch_version"), snapshot.get("platform")
    known = ProcessFields.of_snapshot(fields, settings, problem, version, platform)
    if not fields and not known.off:
        name = "the snapshot" if isinstance(process, Mapping) else os.fspath(process)
        why = problem or "it is a bare context, or an older cachescope made it"
        raise CachescopeError(f"{name} does not hold the fields of the keys: {why}; capture it again")
    return known


def _run_fields(process: Any, run: int | None) -> ProcessFields:
    scope = process if isinstance(process, Scope) else read(process)
    runs = scope.runs["run"].tolist()
    if not runs or (run is not None and run not in runs):
        if not runs:
            raise NotFoundError("there is no run in what was read, and no snapshot was given")
        raise NotFoundError(f"no run {run}; there are runs 0 to {len(runs) - 1}")
    return _fields_of_run(scope, runs[-1] if run is None else run)


def _fields_of_run(scope: Scope, run: int) -> ProcessFields:
    from cachescope.analysis.history import lookup_rows
    from cachescope.analysis.prediction import ProcessFields

    details = scope.tables.hash_details
    rows = [row for row in lookup_rows(scope.lookups, details) if row.run == run]
    (version,) = (row["torch_version"] for row in records(scope.runs) if row["run"] == run)
    return ProcessFields.of_lookups(rows, details, version)
