"""Scopes saved by `Scope.save`: a folder of Parquet files and one JSON file that describes them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

from cachescope.details import HashDetails
from cachescope.errors import SourceError
from cachescope.readers.assemble import Tables
from cachescope.readers.stored_frames import failures_of, read_frames, read_table

MANIFEST: Final = "cachescope.json"
FORMAT: Final = 3
SAVED_FRAMES: Final = ("runs", "lookups", "entries", "contexts", "problems", "kernels", "autotune", "phases")


def is_saved_scope(path: str) -> bool:
    """Whether a folder was written by `Scope.save`."""
    # Not pathlib: it raises if the folder may not be listed.
    return os.path.isfile(os.path.join(path, MANIFEST))


def read_saved_scope(path: str) -> Tables:
    """Read a saved scope back, with the same codes.

    Raises
    ------
    SourceError
        If one of its files is missing or damaged, or if another version of cachescope wrote it.
    """
    folder = Path(path)
    with failures_of(path, "a saved scope"):
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            found = manifest.get("format") if isinstance(manifest, dict) else None
            raise SourceError(
                path, f"was saved in format {found}; this cachescope reads {FORMAT}: read the sources again"
            )
        details = _details(folder)
        loaded = read_frames(folder, SAVED_FRAMES, len(details.sets))
    return Tables(**loaded, hash_details=details)  # type: ignore[arg-type] # all of them are frames


def _details(folder: Path) -> HashDetails:
    components = read_table(folder / "components.parquet", ["component"])["component"]
    sets = read_table(folder / "detail_sets.parquet", ["components"])["components"]
    details = HashDetails()
    details.restore(components.to_pylist(), sets.to_pylist())
    return details
