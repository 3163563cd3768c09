"""Compares two sides: what differs between them, and whether one would find the entries of the other."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from cachescope.analysis.contexts.process_fields import ProcessFields
from cachescope.answers.comparison import predictions, run_fields
from cachescope.answers.difference import side_below, side_named
from cachescope.columns import frame_of
from cachescope.errors import CachescopeError
from cachescope.frames.sharing_rows import PredictionRow
from cachescope.report.comparison import Comparison
from cachescope.scope.read import read
from cachescope.scope.scope import Scope


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
        With a text and an HTML repr, ``.frame`` (the fields that differ), ``.graphs``, ``.contexts`` if a
        side is a snapshot, and ``.predictions`` if one side is a directory and the other a process.

    Raises
    ------
    SourceError
        If a source cannot be read.
    NotFoundError
        If a name is not found in `within`.

    Examples
    --------
    >>> import cachescope
    >>> scope = cachescope.read(cachescope.sample("config_flip"))
    >>> cachescope.compare("run:0", "run:1", within=scope).frame["field"].tolist()
    ['inductor_config[epilogue_fusion]']
    """
    names = (os.fspath(before), os.fspath(after))
    if within is not None:
        return Comparison.of(within, side_named(within, names[0]), side_named(within, names[1]))
    scope = read(*names)
    return Comparison.of(scope, side_below(scope, names[0]), side_below(scope, names[1]))


def will_hit(
    directory: str | Path | Scope, process: str | Path | Scope | Mapping[str, Any], run: int | None = None
) -> pd.DataFrame:
    """Whether a process would find each FX and AOTAutograd entry of a cache directory.

    Parameters
    ----------
    directory : path or Scope
        The cache directory, or a mega-cache file (``torch.compiler.save_cache_artifacts``); for a Scope, all
        entries that were read.
    process : path, Scope or mapping
        The snapshot of a process (`cachescope.capture`, or its file), or its logs: a path, or a Scope.
    run : int, optional
        Which run of the logs; the last one by default.

    Returns
    -------
    DataFrame
        See ``describe("predictions")``: yes, no or unknown for each entry, whether a found entry would be unsafe
        there (made for a different CPU, which keys do not contain), the differing fields, and the assumptions.
        A prediction assumes the program that made the entry.

    Raises
    ------
    SourceError
        If a source cannot be read.
    NotFoundError
        If there is no such run, or the logs contain none.
    CachescopeError
        If the snapshot does not contain the fields of the keys.

    Examples
    --------
    >>> import cachescope
    >>> made = cachescope.sample("entry_truncated")
    >>> cachescope.will_hit(made, made)["will_hit"].tolist()
    ['yes', 'no', 'yes', 'yes']
    """
    scope = directory if isinstance(directory, Scope) else read(directory)
    if isinstance(process, Mapping):
        known = ProcessFields.of_snapshot(process)
    else:
        known = run_fields(process if isinstance(process, Scope) else read(process), run)
    if known.problem is not None and not known.hashes:
        name = os.fspath(process) if isinstance(process, str | Path) else "the snapshot"
        message = f"{name} does not hold the fields of the keys: {known.problem}; capture it again"
        raise CachescopeError(message)
    return frame_of(predictions(scope, scope.tables.entries.rows, known), PredictionRow)
