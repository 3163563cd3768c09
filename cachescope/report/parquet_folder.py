"""Writing a scope as a folder of Parquet files."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa

from cachescope.columns import pandas_type
from cachescope.component_sets import Codes
from cachescope.readers.assemble import Tables
from cachescope.readers.kinds import MANIFEST, is_saved_scope
from cachescope.readers.parquet_folder import FORMAT, SAVED_FRAMES
from cachescope.rows import TEXT

# With a checksum of each page: pages damaged since are not read.
_AS_STORED: Final[Mapping[str, Any]] = {"compression": "zstd", "write_page_checksum": True}

_SETS_AT_ONCE: Final = 4096


def write_scope(tables: Tables, folder: Path) -> None:
    """Write the frames and the hash details; an existing folder is replaced as a whole."""
    if folder.exists() and not is_saved_scope(str(folder)):
        raise FileExistsError(f"{folder} is there and is no saved scope")
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Written next to its place and renamed, so nobody reads half of it.
    work = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for name in SAVED_FRAMES:
            getattr(tables, name).frame.to_parquet(work / f"{name}.parquet", **_AS_STORED)
        details = tables.hash_details
        components = pd.DataFrame({"component": pd.Series(details.components, dtype=pandas_type(TEXT))})
        components.to_parquet(work / "components.parquet", **_AS_STORED)
        _write_sets(details.sets, work / "detail_sets.parquet")
        (work / MANIFEST).write_text(json.dumps({"format": FORMAT}) + "\n")
        if folder.exists():
            shutil.rmtree(folder)
        work.rename(folder)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


def _write_sets(sets: Sequence[Codes], file: Path) -> None:
    """Write the component codes of each set, some sets at a time: a million of them written out take gigabytes."""
    from pyarrow import parquet

    schema = pa.schema({"components": pa.list_(pa.int32())})
    with parquet.ParquetWriter(file, schema, **_AS_STORED) as writer:
        for start in range(0, len(sets), _SETS_AT_ONCE):
            some = sets[start : start + _SETS_AT_ONCE]
            ends = np.cumsum([0, *map(len, some)], dtype=np.int32)
            column = pa.ListArray.from_arrays(pa.array(ends), pa.array(np.concatenate(some)))
            writer.write_table(pa.table([column], schema=schema))
