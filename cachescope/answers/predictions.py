"""Which entries of what was read a process would find, and what is known of a process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

from cachescope.analysis.contexts.prediction import predictions_of
from cachescope.analysis.contexts.process_fields import ProcessFields
from cachescope.answers.recording import Recording
from cachescope.details import HashDetails
from cachescope.errors import NotFoundError
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.sharing_rows import PredictionRow
from cachescope.readers.assemble import entry_rows
from cachescope.readers.directory.bundles import entries_inside
from cachescope.readers.directory.file_contents import source_of
from cachescope.readers.reading import Reading
from cachescope.terms import BUNDLES, CACHES


def predictions(read: Recording, entries: Sequence[EntryRow], process: ProcessFields) -> list[PredictionRow]:
    """The entries of a directory; if there are none, those in mega-cache files."""
    details = read.tables.hash_details
    files = [row for row in entries if row.cache in BUNDLES]
    if not files or any(row.cache in CACHES for row in entries):
        return predictions_of(entries, details, process, source_of)
    inside, file_of = _inside(files, details)
    # A file holds the source of its entries itself.
    found = predictions_of(entry_rows(inside), details, process, lambda file: file.source_code)
    return [replace(row, entry=file_of[row.entry]) for row in found]


def _inside(files: Iterable[EntryRow], details: HashDetails) -> tuple[list[EntryRow], list[int]]:
    """The entries that mega-cache files hold, and for each the number of its file."""
    inside: list[EntryRow] = []
    file_of: list[int] = []
    for file in files:
        found = entries_inside(file.path, Reading(details=details))
        inside += found
        file_of += [file.entry] * len(found)
    return inside, file_of


def predictions_of_run(read: Recording, run: int) -> list[PredictionRow]:
    """Whether the process of a run would find each entry that was read."""
    return predictions(read, read.tables.entries.rows, run_fields(read, run))


def run_fields(read: Recording, run: int | None = None) -> ProcessFields:
    """What the lookups of a run, by default the last one, and its snapshot say of its process; without runs, the last snapshot."""
    runs, captured = read.facts.runs, read.tables.contexts.rows
    if not runs and captured:
        return context_fields(read, captured[-1].context)
    if not runs:
        raise NotFoundError("there is no run in what was read, and no snapshot was given")
    if run is not None and run not in runs:
        raise NotFoundError(f"no run {run}; there are runs 0 to {len(runs) - 1}")
    of_torch = [one for one in runs if one not in read.of_vllm_alone]
    if run is None and not of_torch:
        raise NotFoundError("no run that was read asked torch's caches, and no snapshot was given")
    number = of_torch[-1] if run is None else run
    rows = [row for row in read.history.lookups if row.run == number]
    known = ProcessFields.of_lookups(rows, read.tables.hash_details, runs[number].torch_version)
    own = [row.context for row in read.all_contexts.rows if row.run == number and row.settings]
    return known.with_captured(context_fields(read, own[0])) if own else known


def context_fields(read: Recording, context: int) -> ProcessFields:
    """What a captured context says of its process."""
    captured = read.all_contexts.rows[context]
    as_json = {name: json.loads(getattr(captured, name) or "{}") for name in ("key_fields", "settings")}
    return ProcessFields.of_snapshot(asdict(captured) | as_json)
