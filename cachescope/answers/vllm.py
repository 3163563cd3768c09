"""Why vLLM compiled again, as far as its ``torch_compile_cache`` shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from cachescope.analysis.vllm.folders import fragments, ranks_apart
from cachescope.answers.recording import Recording
from cachescope.frames.vllm import FolderRow, FragmentRow, RankRow, StartRow
from cachescope.grouping import by_key


@dataclass(frozen=True, slots=True)
class Again:
    """Folders that exist for the same reason."""

    factors: tuple[str, ...]  # in which factors each differs from the nearest folder that was there before
    folders: tuple[FolderRow, ...]  # one row of each


@dataclass(frozen=True, slots=True)
class Apart:
    """Folders of ranks that differ from those of other ranks in the same factors."""

    factors: tuple[str, ...]
    is_of_a_rank: bool  # whether each differs in nothing but what each rank has of its own
    folders: tuple[tuple[RankRow, ...], ...]  # the rows of each folder: one for each factor


@dataclass(frozen=True, slots=True)
class Started:
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


@dataclass(frozen=True, slots=True, eq=False)
class VllmFolders:
    """Why vLLM compiled again."""

    named: int  # folders whose name follows from their factors
    # Those of them that another had been there before, by what differs; the reason of most folders comes
    # first.
    again: tuple[Again, ...]
    # Factors without which there would be fewer folders; what leaves the fewest comes first.
    fragments: tuple[FragmentRow, ...]
    # Ranks that have a folder of their own, by what differs; what no rank has of its own comes first.
    apart: tuple[Apart, ...]
    # One row of each folder of which it is not known what its name was made of, but those of
    # ``torch_aot_compile``.
    unknown: tuple[FolderRow, ...]
    ranks: dict[
        str, list[str]
    ]  # by folder, those in it of the ranks: ``rank_0_0``, also with a device in a fork
    sglang: tuple[FolderRow, ...]  # one row of each folder of SGLang
    packages: int  # folders of ``torch_aot_compile``
    starts: tuple[Started, ...]  # what its logs say

    @classmethod
    def of(cls, read: Recording) -> Self | None:
        """Of all that was read; None if no folder of vLLM was, nor a log."""
        rows, starts = read.folders_of_vllm, starts_of_vllm(read)
        if not rows and not starts:
            return None
        named = {row.folder: row for row in reversed(rows) if row.name_is == "recomputed"}
        others = {row.folder: row for row in reversed(rows) if row.folder not in named}
        sglang = tuple(row for row in others.values() if row.name_is == "of_torch")
        return cls(
            named=len(named),
            again=_again([row for row in rows if named.get(row.folder) is row and row.baseline is not None]),
            fragments=tuple(
                row for row in fragments(read.named_of_vllm) if row.folders_without < row.folders
            ),
            apart=_apart_ranks(ranks_apart(read.tables.vllm_factors.rows, read.named_of_vllm)),
            unknown=tuple(
                row for row in others.values() if row.prefix is not None and row.name_is != "of_torch"
            ),
            ranks=by_key(
                (row.folder, row.path.rpartition(f"{row.folder}/")[2].partition("/")[0]) for row in rows
            ),
            sglang=sglang,
            packages=sum(row.prefix is None for row in others.values()),
            starts=starts,
        )


def _again(rows: list[FolderRow]) -> tuple[Again, ...]:
    return tuple(
        Again(changed, tuple(row for row in rows if row.changed == changed))
        for changed, _ in Counter(row.changed for row in rows).most_common()
    )


def _apart_ranks(rows: Iterable[RankRow]) -> tuple[Apart, ...]:
    folders = by_key((row.folder, row) for row in rows).values()
    alike = by_key(
        ((all(row.is_of_a_rank for row in found), tuple(row.factor for row in found)), tuple(found))
        for found in folders
    )
    return tuple(
        Apart(factors, is_of_a_rank, tuple(folders))
        for (is_of_a_rank, factors), folders in sorted(alike.items(), key=lambda item: item[0][0])
    )
