"""The lookups with those of pre-flights replaced by the lookups that a real run would make."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace

from cachescope.analysis.preflight.predicting import PredictedLookup, PredictedRun, World
from cachescope.analysis.preflight.would_find import StoredEntries, stored_by_recorded
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.grouping import by_key
from cachescope.readers.assemble import Tables
from cachescope.table import Table
from cachescope.terms import FXGRAPH, PREDICTED


def with_predictions(tables: Tables) -> Tables:
    """What was read, with the lookups that real runs would make instead of those that pre-flights made."""
    runs = {run.run: run for run in tables.runs.rows if run.is_preflight}
    if not runs:
        return tables
    rows = tables.lookups.rows
    if any(row.prediction is not None for row in rows):
        return tables  # it was saved, and what it was checked against may not be here
    made = [row for row in rows if row.run not in runs]
    # Of an entry its path is the source; of a line without one the dump is.
    with_problems = frozenset(problem.source for problem in tables.problems.rows)
    entries = StoredEntries(tables.entries.rows, tables.cache_roots, tables.listed, with_problems)
    recorded = stored_by_recorded(made, tables.runs.rows) if made and not entries.roots else None
    of_run = by_key((row.run, row) for row in rows)
    predicted: dict[int, list[PredictedLookup]] = {}
    for command in commands(runs.values()):
        world = World(entries, recorded)
        walked = {run.run: PredictedRun(run, of_run[run.run], world) for run in command}
        for one in walked.values():
            one.tell_others()
        predicted |= {number: list(one.lookups()) for number, one in walked.items()}
    lookups = _numbered(of_run, predicted, tables.entries.rows)
    runs_in_it = _with_directory(tables.runs.rows, entries)
    return replace(tables, lookups=Table(LookupRow, lookups), runs=Table(RunRow, runs_in_it))


def commands(preflights: Iterable[RunRow]) -> list[list[RunRow]]:
    """The processes of each command: their traces are in one folder."""
    return list(by_key((os.path.dirname(run.source), run) for run in preflights).values())


def _with_directory(runs: list[RunRow], entries: StoredEntries) -> list[RunRow]:
    """The runs, with pre-flights in the single directory that they are checked against."""
    if len(entries.roots) != 1:
        return runs
    (root,) = entries.roots.values()
    return [replace(run, cache_dir=root) if run.is_preflight else run for run in runs]


def _numbered(
    of_run: Mapping[int, list[LookupRow]],
    predicted: Mapping[int, list[PredictedLookup]],
    entries: Iterable[EntryRow],
) -> list[LookupRow]:
    """All lookups, run by run, with new numbers."""
    saved = {entry.entry: entry.time_taken_ns for entry in entries}
    numbers: dict[int, int] = {}
    out: list[LookupRow] = []
    for run, made in of_run.items():
        if run not in predicted:
            for order, row in enumerate(made):
                numbers[row.lookup] = len(out)
                out.append(replace(row, order=order))
            continue
        for order, one in enumerate(predicted[run]):
            if one.aot is None:
                numbers[one.row.lookup] = len(out)
            out.append(replace(_predicted(one, saved), order=order))
    return [
        replace(
            row, lookup=number, aot_lookup=None if row.aot_lookup is None else numbers.get(row.aot_lookup)
        )
        for number, row in enumerate(out)
    ]


def _predicted(one: PredictedLookup, saved: dict[int, int | None]) -> LookupRow:
    row, found = one.row, one.found
    entry = None if found.candidate is None else found.candidate.entry
    predicted = replace(
        row,
        cache=row.cache if one.aot is None else FXGRAPH,
        cache_key=one.key,
        outcome=PREDICTED.get(found.outcome, found.outcome),
        cache_state=None,
        status_detailed=found.status or (found.outcome if found.outcome in ("hit", "full_miss") else None),
        aot_lookup=None if one.aot is None else one.aot.lookup,
        guards_expr=found.guards,
        # The time of executing the graph instead of compiling it.
        time_taken_ns=None,
        end_time=None,
        time_saved_ns=saved.get(entry) if found.outcome == "hit" and entry is not None else None,
        prediction=found.why,
        predicted_entry=entry,
    )
    if one.key == row.cache_key:
        return predicted
    return replace(predicted, detail_set=None, details="not_recorded", direction=None, is_backward=None)
