"""Writing a scope as a folder of Parquet files."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd

from cachescope.columns import TEXT, pandas_type
from cachescope.readers.assemble import Tables
from cachescope.readers.parquet_folder import FORMAT, MANIFEST, SAVED_FRAMES, is_saved_scope

# With a checksum of each page: pages damaged since are not read.
_AS_STORED: Final[Mapping[str, Any]] = {"compression": "zstd", "write_page_checksum": True}


def write_scope(tables: Tables, folder: Path) -> None:
    """Write the frames and the hash details; an existing folder is replaced as a whole.

    Raises
    ------
    FileExistsError
        If the folder exists and was not written by cachescope.
    """
    if folder.exists() and not is_saved_scope(str(folder)):
        raise FileExistsError(f"{folder} is there and is no saved scope")
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Written next to its place and renamed, so nobody reads half of it.
    work = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for name in SAVED_FRAMES:
            getattr(tables, name).to_parquet(work / f"{name}.parquet", **_AS_STORED)
        details = tables.hash_details
        components = pd.DataFrame({"component": pd.Series(details.components, dtype=pandas_type(TEXT))})
        components.to_parquet(work / "components.parquet", **_AS_STORED)
        sets = pd.DataFrame({"components": pd.Series([s.tolist() for s in details.sets], dtype=object)})
        sets.to_parquet(work / "detail_sets.parquet", **_AS_STORED)
        (work / MANIFEST).write_text(json.dumps({"format": FORMAT}) + "\n")
        if folder.exists():
            shutil.rmtree(folder)
        work.rename(folder)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
