"""Which lookup of one reading is which of another."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import pandas as pd

from tests.wild.answers import Answer, AnswerSet

# A log that is thinned tells a lookup by its end instead of its beginning.
_SAME_MOMENT = pd.Timedelta(seconds=1)


def matches(said: AnswerSet, true: AnswerSet, copies: int = 1) -> dict[int, Answer]:
    """Of the number of each lookup of one reading, the same lookup of another: of the same process, cache and key.

    None of the other is that of more than so many copies: a process that restarts under one pid looks its keys up anew.
    """
    found: dict[int, Answer] = {}
    taken: Counter[int] = Counter()
    for run, answers in said.of_run.items():
        in_other = [
            answer
            for one in true.runs_of(said.processes[run])
            for answer in true.of_run.get(one, ())
            if taken[answer.number] < copies
        ]
        for here, there in _grouped(answers, in_other):
            for one, other in _aligned(here, there):
                found[one.number] = other
                taken[other.number] += 1
    return found


def _grouped(said: Iterable[Answer], true: Iterable[Answer]) -> list[tuple[list[Answer], list[Answer]]]:
    """Lookups of equal cache and key, those of either reading."""
    groups: dict[tuple[str, str | None], tuple[list[Answer], list[Answer]]] = defaultdict(lambda: ([], []))
    for which, answers in enumerate((said, true)):
        for answer in answers:
            groups[answer.cache, answer.key][which].append(answer)
    return list(groups.values())


def _aligned(said: list[Answer], true: list[Answer]) -> list[tuple[Answer, Answer]]:
    """The pairs of one order in both that agree best; compile ids must, where both are known."""
    best: list[list[tuple[int, list[tuple[Answer, Answer]]]]] = [
        [(0, []) for _ in range(len(true) + 1)] for _ in range(len(said) + 1)
    ]
    for i in range(len(said) - 1, -1, -1):
        for j in range(len(true) - 1, -1, -1):
            choices = []
            if said[i].compile_id in (None, true[j].compile_id) or true[j].compile_id is None:
                score, pairs = best[i + 1][j + 1]
                choices.append((score + _likeness(said[i], true[j]), [(said[i], true[j]), *pairs]))
            choices += [best[i + 1][j], best[i][j + 1]]
            best[i][j] = max(choices, key=lambda choice: choice[0])
    return best[0][0][1]


def _likeness(one: Answer, other: Answer) -> int:
    """Being a pair at all weighs more than any agreement, and the moment more than what is said of it."""
    is_one_moment = (
        one.time is not None and other.time is not None and abs(one.time - other.time) < _SAME_MOMENT
    )
    return (
        20
        + 8 * is_one_moment
        + 4 * (one.outcome == other.outcome)
        + 2 * (one.verdict == other.verdict)
        + (one.changed == other.changed)
    )
