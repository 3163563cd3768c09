"""Which entries of what was read a process would find, and what is known of a process."""

from __future__ import annotations

import json

import pandas as pd

from cachescope.analysis.contexts.prediction import predictions_frame
from cachescope.analysis.contexts.process_fields import ProcessFields
from cachescope.answers.opened import Opened
from cachescope.answers.read import Read
from cachescope.columns import rows_of
from cachescope.errors import NotFoundError
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.recorded_rows import RunRow
from cachescope.readers.directory.file_contents import source_of
from cachescope.terms import BUNDLES, CACHES


def predictions(read: Read, entries: pd.DataFrame, process: ProcessFields) -> pd.DataFrame:
    """The entries of a directory; if there are none, those in mega-cache files."""
    details = read.tables.hash_details
    files = entries.loc[entries["cache"].isin(BUNDLES), ["entry", "path"]]
    if files.empty or entries["cache"].isin(CACHES).any():
        return predictions_frame(entries, details, process, source_of)
    opened = Opened(files, details)
    found = predictions_frame(opened.entries, details, process, opened.source_of)
    return found.assign(entry=found["entry"].map(opened.file_of).astype(found["entry"].dtype))


def predictions_of_run(read: Read, run: int) -> pd.DataFrame:
    """Whether the process of a run would find each entry that was read."""
    return predictions(read, read.entries, run_fields(read, run))


def run_fields(read: Read, run: int | None = None) -> ProcessFields:
    """What the lookups of a run, by default the last one, say of its process."""
    runs = read.runs["run"].tolist()
    if not runs:
        raise NotFoundError("there is no run in what was read, and no snapshot was given")
    if run is not None and run not in runs:
        raise NotFoundError(f"no run {run}; there are runs 0 to {len(runs) - 1}")
    of_torch = [one for one in runs if one not in read.of_vllm_alone]
    if run is None and not of_torch:
        raise NotFoundError("no run that was read asked torch's caches, and no snapshot was given")
    number = of_torch[-1] if run is None else run
    details = read.tables.hash_details
    rows = [row for row in read.history.lookups if row.run == number]
    (version,) = (row.torch_version for row in rows_of(read.runs, RunRow) if row.run == number)
    return ProcessFields.of_lookups(rows, details, version)


def context_fields(read: Read, context: int) -> ProcessFields:
    """What a captured context says of its process."""
    contexts = read.contexts
    (captured,) = rows_of(contexts[contexts["context"] == context], ContextRow)
    return ProcessFields.of_snapshot(
        json.loads(captured.key_fields or "null"),
        json.loads(captured.settings or "{}"),
        captured.key_fields_problem,
        captured.torch_version,
        captured.platform,
    )
