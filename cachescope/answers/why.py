"""Why it missed: the answer to the question that most people come with."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from cachescope.answers.cards import Cards
from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import headline
from cachescope.answers.explanation import Explanation
from cachescope.answers.recording import Recording
from cachescope.answers.summary import MAY_BE_NO_LOOKUP, counts_text, footer
from cachescope.frames.answer_rows import RankDifference
from cachescope.frames.checks import FalseHit
from cachescope.frames.recorded_rows import ProblemRow
from cachescope.grouping import by_key
from cachescope.verdict_kinds import kind_of

if TYPE_CHECKING:
    from cachescope.answers.directory import PastMisses
    from cachescope.answers.vllm import VllmFolders


@dataclass(frozen=True, slots=True, eq=False)
class Why:
    """Rates, causes, and what is left over; of all that was read, or of some of its runs."""

    headline: str  # what was avoidable
    counts: str  # lookups, hits and misses in one line; empty where the headline says it
    causes: Cards  # the most time lost first
    # Where nothing was looked up in torch's caches: misses read from a directory.
    past: tuple[PastMisses, ...]
    # Fields in which ranks differ from the others; empty where it is asked of some runs.
    rank_differences: tuple[RankDifference, ...]
    # Why vLLM compiled again; None where no folder of vLLM was read, or where it is asked of some runs.
    vllm: VllmFolders | None
    footer: str  # what stays outside the causes
    # By its error, what torch could not compile; and how many compiles there were, 0 if all was compiled.
    failed: dict[str, list[str]]
    compiles: int
    problems: tuple[ProblemRow, ...]
    false_hits: tuple[FalseHit, ...]

    @classmethod
    def of(cls, read: Recording, runs: Collection[int] | None = None, most: int = 10) -> Self:
        """Why it missed.

        Parameters
        ----------
        read : Recording
        runs : collection of int, optional
            Only causes that struck in these runs, and of them only where they did.
        most : int
            Causes that are looked into; the rest is counted.
        """
        chosen = Chosen(read) if runs is None else Chosen.of_runs(read, runs)
        past, vllm = [], None
        if not read.asked_torch:
            from cachescope.answers.directory import past_misses

            past = past_misses(read)
        if runs is None and (read.has_files_of_vllm or len(read.tables.vllm_starts)):
            from cachescope.answers.vllm import VllmFolders

            vllm = VllmFolders.of(read)
        of_runs = [row for row in read.facts.runs.values() if runs is None or row.run in runs]
        failed = dict.fromkeys(text for row in of_runs for text in row.failed_compiles)
        numbers = {row.run for row in of_runs} if failed else set[int]()
        if runs is None or len(chosen):
            said = headline(chosen)
        else:
            said = f"no lookup of this run is recorded: {MAY_BE_NO_LOOKUP}"
        return cls(
            headline=said,
            counts=counts_beside(chosen, said),
            causes=Cards.of(read, chosen, most),
            past=tuple(past),
            rank_differences=tuple(read.differing_ranks.rows) if runs is None else (),
            vllm=vllm,
            footer=footer(read, chosen.causes),
            failed=by_key(map(_error_and_place, failed)),
            compiles=sum(row.run in numbers for row in read.compiles_read[0].rows) if failed else 0,
            problems=tuple(read.facts.problems),
            false_hits=tuple(read.suspected.rows),
        )


def _error_and_place(text: str) -> tuple[str, str]:
    place, _, error = text.partition(": ")
    return _in_short(error), place


def _in_short(error: str) -> str:
    """An error of a compiler without its command (triton/runtime/build.py, `_build`): a call in a temporary folder of its own."""
    before, is_command, command = error.partition("Command '['")
    compiler, _, arguments = command.partition("'")
    _, has_output, rest = arguments.partition("'-o', '")
    output, _, rest = rest.partition("'")
    ends = [at for word in ("' returned", "' died") if (at := rest.find(word)) >= 0]
    if not (is_command and has_output and ends):
        return error
    return f"{before}{compiler} could not build {output.rpartition('/')[2]}: it {rest[min(ends) + 2 :]}"


def counts_beside(chosen: Chosen, said: str) -> str:
    """Lookups, hits and misses in one line; nothing where there are none, or that was said already."""
    counts = counts_text(chosen.read, chosen.rows) if len(chosen) else ""
    return "" if counts == said else counts


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """What is known of a block of code that was recorded: one run, those before it to compare with."""

    why: Why
    looked_up: bool  # whether it made any lookup
    earlier: int  # how many runs it was compared with
    # The costliest cause that has a reason, and its first miss in the block.
    costliest: tuple[str, Explanation] | None

    @classmethod
    def of(cls, read: Recording, run: int) -> Self:
        """Of one run of what was read."""
        why, looked_up = Why.of(read, {run}), any(row.run == run for row in read.facts.lookups.values())
        return cls(why, looked_up, len(read.facts.runs) - 1, _costliest(read, run))


def _costliest(read: Recording, run: int) -> tuple[str, Explanation] | None:
    facts = read.facts
    for cause in facts.causes:
        if kind_of(cause).is_first:
            continue
        for miss in facts.misses_of(cause.cause):
            if miss.root and facts.lookups[miss.lookup].run == run:
                return cause.summary, Explanation.of(read, miss.lookup)
    return None
