"""The parts of models that vLLM's own logs say to have been compiled or loaded."""

from __future__ import annotations

from typing import NamedTuple

from cachescope.answers.recording import Recording
from cachescope.frames.vllm import StartRow


class Started(NamedTuple):
    """A part of a model that vLLM's log says to have been compiled or loaded."""

    row: StartRow
    run: int
    unsaved_by: int | None  # the run that could not save the whole model, where its graphs alone were loaded


def starts_of_vllm(read: Recording) -> tuple[Started, ...]:
    """Of all logs that were read."""
    found, unsaved = [], dict[tuple[str | None, int | None, str | None], int]()
    for row in read.tables.vllm_starts.rows:
        run, of_rank = read.facts.lookups[row.lookup].run, (row.folder, row.rank, row.prefix)
        are_graphs = row.outcome == "loaded" and row.path is not None
        found.append(Started(row, run, unsaved.get(of_rank) if are_graphs else None))
        if row.save_error is not None:
            unsaved.setdefault(of_rank, run)
    return tuple(found)
