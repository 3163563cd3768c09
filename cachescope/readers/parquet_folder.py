"""Scopes saved by `Scope.save`: a folder of Parquet files and one JSON file that describes them."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from cachescope.details import HashDetails
from cachescope.errors import SourceError
from cachescope.frames.described import FRAMES
from cachescope.readers.assemble import Tables
from cachescope.readers.stored import MANIFEST
from cachescope.readers.stored_frames import failures_of, read_batches, read_frames, read_table
from cachescope.table import Table

FORMAT: Final = 7
SAVED_FRAMES: Final = (
    "runs", "lookups", "entries", "contexts", "problems", "kernels", "autotune", "vllm_factors", "vllm_starts", "phases", "compiles", "symbols",
)  # fmt: skip


def read_saved_scope(path: str) -> Tables:
    """Read a saved scope back, with the same codes."""
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
    tables: dict[str, Table[Any]] = {name: Table(FRAMES[name], frame=frame) for name, frame in loaded.items()}
    return Tables(**tables, hash_details=details)  # type: ignore[arg-type] # of frames alone


def _details(folder: Path) -> HashDetails:
    components = read_table(folder / "components.parquet", ["component"])["component"]
    details = HashDetails()
    details.restore(components.to_pylist(), _sets(folder / "detail_sets.parquet"))
    return details


def _sets(file: Path) -> Iterator[array[int]]:
    """The component codes of each set."""
    for batch in read_batches(file, ["components"]):
        lists = batch.column(0)
        if not pa.types.is_list(lists.type) or not pa.types.is_integer(lists.type.value_type):
            raise ValueError("detail_sets.parquet: components has another type")
        codes = lists.flatten()
        if lists.null_count or codes.null_count:
            raise ValueError("detail_sets.parquet: components has missing values")
        # Of 64 bits: none may become the number of a component by being cut.
        numbers, ends = array("q", codes.to_numpy().astype(np.int64).tobytes()), lists.offsets.to_numpy()
        for start, end in pairwise((ends - ends[0]).tolist()):
            yield numbers[start:end]
