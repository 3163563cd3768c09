"""Which functions the ranks of a job compiled with different collectives: what their traces record, and no blame.

A schedule is compared only where it is known to be whole: torch/_inductor/debug.py, `log_collective_schedule`, writes that of each graph with
collectives that Inductor compiles, and nothing of graphs from a cache. Ranks may differ rightly, as the stages of a pipeline do.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cachescope.answers.names import place_name
from cachescope.answers.recording import Recording
from cachescope.frames.compile_rows import CompileRow
from cachescope.grouping import by_key
from cachescope.notebook_cells import code_file
from cachescope.wording import short_names

_BACKWARD: Final = "backward"
# Not a collective; each rank's scheduler decides where it goes.
_WAITS: Final = re.compile(r"\bwait_tensor\b")
_Where = tuple[bool, str, str, int | None, str, int]


@dataclass(frozen=True, slots=True)
class CollectivesApart:
    """One compile of one function that ranks made with different collectives."""

    place: str  # ``forward (model.py:88)``
    compile_id: str
    is_backward: bool  # whether it is the backward graph, compiled by itself
    # The collectives in their order, as torch names them, and the ranks that compiled it with these.
    of_ranks: tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]


def collectives_apart(read: Recording) -> tuple[CollectivesApart, ...]:
    """Of all ranks that were read; nothing unless there are two, and each is one process."""
    ranks = {run: row.rank for run, row in read.facts.runs.items() if row.rank is not None}
    if len(ranks) < 2 or len(set(ranks.values())) < len(ranks):
        # If a job ran twice, ranks of one run would be compared with those of another.
        return ()
    compiles = read.compiles_read[0].rows
    records = _runs_that_record(read, compiles)
    found: dict[_Where, dict[int, CompileRow]] = defaultdict(dict)
    for row in compiles:
        if row.run in ranks and row.run in records and _is_whole(row) and (where := _where(row)) is not None:
            found[where][ranks[row.run]] = row
    files = short_names(row.file for row in compiles if row.file is not None)
    every = (_apart(of_rank, files) for of_rank in found.values())
    return tuple(one for one in every if one is not None)


def _runs_that_record(read: Recording, compiles: Sequence[CompileRow]) -> set[int]:
    """The processes whose torch records collectives: it did, or another process did with the same version."""
    runs = read.facts.runs
    some = {row.run for row in compiles if row.collectives}
    versions = {runs[run].torch_version for run in some} - {None}
    return some | {run for run, row in runs.items() if row.torch_version in versions}


def _is_whole(row: CompileRow) -> bool:
    """Whether Inductor compiled all of it: nothing came from a cache, and it ended well."""
    return row.error is None and row.time_taken_ns is not None and bool(row.lookups) and row.hits == 0


def _where(row: CompileRow) -> _Where | None:
    file = code_file(row.file)
    if row.function is None or file is None or not row.segment:
        return None
    return row.kind == _BACKWARD, row.function, file, row.line, row.compile_id, row.segment


def _apart(of_rank: dict[int, CompileRow], files: dict[str, str]) -> CollectivesApart | None:
    ranks = by_key(
        (tuple(name for name in row.collectives if not _WAITS.search(name)), rank)
        for rank, row in sorted(of_rank.items())
    )
    if len(ranks) < 2:
        return None
    row = next(iter(of_rank.values()))
    of_ranks = tuple((names, tuple(some)) for names, some in ranks.items())
    return CollectivesApart(place_name(row, files) or "", row.compile_id, row.kind == _BACKWARD, of_ranks)
