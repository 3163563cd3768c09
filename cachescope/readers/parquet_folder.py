"""Scopes saved by `Scope.save`: a folder of Parquet files and one JSON file that says what they are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import pandas as pd

from cachescope import frames
from cachescope.details import HashDetails
from cachescope.errors import SourceError
from cachescope.readers.assemble import Tables

MANIFEST: Final = "cachescope.json"
FORMAT: Final = 2
SAVED_FRAMES: Final = ("runs", "lookups", "entries", "contexts", "problems", "kernels", "autotune")


def is_saved_scope(path: str) -> bool:
    """Whether a folder was written by `Scope.save`."""
    # Not by pathlib, which raises where the folder may not be looked into.
    return os.path.isfile(os.path.join(path, MANIFEST))


def read_saved_scope(path: str) -> Tables:
    """Read a saved scope back, code for code.

    Raises
    ------
    SourceError
        If a file of it is missing or damaged, or another version of cachescope wrote it.
    """
    folder = Path(path)
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            found = manifest.get("format") if isinstance(manifest, dict) else None
            raise SourceError(
                path, f"was saved in format {found}; this cachescope reads {FORMAT}: read the sources again"
            )
        loaded = {name: _frame(folder, name) for name in SAVED_FRAMES}
        details = HashDetails()
        components = pd.read_parquet(folder / "components.parquet")["component"].tolist()
        sets = pd.read_parquet(folder / "detail_sets.parquet")["components"].tolist()
        details.restore(components, sets)
    except (OSError, ValueError, KeyError) as error:
        raise SourceError(path, f"a saved scope that cannot be read: {error}") from error
    return Tables(**loaded, hash_details=details)


def _frame(folder: Path, name: str) -> pd.DataFrame:
    declared = frames.FRAMES[name]
    frame = pd.read_parquet(folder / f"{name}.parquet")
    columns: dict[str, Any] = {}
    for column in declared.columns:
        series = frame[column.name]
        if column.dtype == "object":
            # Parquet knows lists; the frames promise tuples.
            columns[column.name] = pd.Series([tuple(value) for value in series], dtype=object)
        else:
            columns[column.name] = series.astype(column.dtype)  # type: ignore[call-overload]
    return pd.DataFrame(columns)
