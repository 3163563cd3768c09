"""Whether what a damaged recording says is still true: every lookup beside the same one in the whole recording."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from cachescope.keys.key_fields import IS_INFERENCE
from tests.wild.answers import Answer, AnswerSet, Cause
from tests.wild.damages import Damage

# Of lookups that are compared, for the counts.
SAME, NOT_KNOWN, GONE, NOT_COMPARABLE = "same", "not known", "gone", "said of less"
# A kind that leaves open which of others it is.
_EITHER = {"gone or damaged": ("deleted", "damaged")}


@dataclass(slots=True)
class Report:
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[str, str]] = field(default_factory=list)
    """Class, and what is said beside what is true."""


@dataclass
class Judge:
    """Compares two readings."""

    # The recording read as it is, and as it is after the damage.
    _whole: AnswerSet
    _damaged: AnswerSet
    _damage: Damage
    # What the sources that the damage does not spoil say by themselves.
    _floor: AnswerSet | None
    # How often the logs still say, in a line or record that is whole, what became of a key.
    _left: Counter[str]
    _report: Report = field(default_factory=Report)

    def report(self) -> Report:
        self._judge_runs()
        for run in self._damaged.of_run:
            process = self._damaged.processes[run]
            for said in self._damaged.of_run[run]:
                true = self._matches.get(said.number)
                if true is not None:
                    self._judge_answer(said, true)
                else:
                    self._wrong("a lookup too many", said, None, f"process {process}")
            self._judge_order(run)
        self._judge_lost()
        return self._report

    def _wrong(self, what: str, said: Answer | None, true: Answer | None, more: str = "") -> None:
        text = f"{said} | {said.reason}" if said is not None else "nothing"
        whole = "" if true is None else f"; the whole recording: {true} | {true.reason}"
        self._report.wrong.append((what, f"says {text}{whole}" + (f" ({more})" if more else "")))

    # Which lookup is which.

    @cached_property
    def _matches(self) -> dict[int, Answer]:
        """Of the number of each lookup of the damaged reading, the same lookup of the whole one."""
        return matches(self._damaged, self._whole, self._damage.copies)

    @cached_property
    def _found(self) -> dict[int, Answer]:
        """Of the number of each lookup of the whole reading, the same lookup of the damaged one."""
        by_number = {answer.number: answer for answer in self._damaged.answers}
        return {true.number: by_number[number] for number, true in self._matches.items()}

    # Runs, order, and lookups that are not there.

    def _judge_runs(self) -> None:
        counted = Counter(self._damaged.processes[run] for run in self._damaged.of_run)
        for process, runs in counted.items():
            expected = len(self._whole.runs_of(process)) * self._damage.copies
            if runs > expected:
                self._wrong("a run too many", None, None, f"{runs} runs of process {process}, not {expected}")
        # A trace, which has no copy here, is one of the two with one of the copies.
        if self._damage.copies > 1 and not self._has_trace:
            for process in set(self._whole.processes.values()):
                if counted[process] < self._damage.copies * len(self._whole.runs_of(process)):
                    self._wrong("two processes taken for one", None, None, f"process {process}")

    @property
    def _has_trace(self) -> bool:
        sources = [path for paths in self._whole.scope.runs["sources"] for path in paths]
        return any(Path(path).parent.name == "trace" for path in sources)

    def _judge_order(self, run: int) -> None:
        if self._damage.loses_lines:
            return
        true = [self._matches.get(said.number) for said in self._damaged.of_run[run]]
        numbers = [answer.number for answer in true if answer is not None]
        if numbers != sorted(numbers):
            self._wrong("another order", None, None, f"run {run}: {numbers}")

    def _judge_lost(self) -> None:
        times_found = Counter(true.number for true in self._matches.values())
        for true in self._whole.answers:
            if times_found[true.number]:
                continue
            if not self._damage.loses_lines or self._in_floor(true) is not None:
                self._wrong("a lookup lost", None, true)
            else:
                self._report.counts[GONE] += 1
        if self._damage.loses_lines:
            known = Counter(a.key for a in self._damaged.answers if a.key and a.outcome != "unknown")
            for key, count in self._left.items():
                if known[key] < count:
                    more = f"{key[:9]}: {count} outcomes are still in the logs, {known[key]} are known"
                    self._wrong("less than the lines say", None, None, more)

    def _in_floor(self, true: Answer) -> Answer | None:
        if self._floor is None:
            return None
        return self._floor_matches.get(true.number)

    @cached_property
    def _floor_matches(self) -> dict[int, Answer]:
        assert self._floor is not None
        by_number = {answer.number: answer for answer in self._floor.answers}
        return {true.number: by_number[at] for at, true in matches(self._floor, self._whole).items()}

    # One lookup.

    def _judge_answer(self, said: Answer, true: Answer) -> None:
        if said.outcome != true.outcome and not self._may_be_outcome(said, true):
            self._wrong(f"outcome {true.outcome} reported as {said.outcome}", said, true)
        elif said.outcome == "unknown" != true.outcome:
            self._judge_floor(said, true)
        elif said.verdict is None or self._is_same(said, true):
            self._report.counts[SAME] += 1
        elif said.is_not_known:
            self._judge_floor(said, true)
        elif self._is_true_of_less(said, true) or self._is_race_of_copies(said, true):
            self._report.counts[NOT_COMPARABLE] += 1
        else:
            self._wrong(self._class_of(said, true), said, true)

    def _may_be_outcome(self, said: Answer, true: Answer) -> bool:
        if said.outcome == "unknown":
            return bool(self._damage.spoils)
        # Text logs call both a miss; which it was is inferred from hash details and entries.
        is_guard = (true.outcome, said.outcome) == ("guard_miss", "full_miss")
        return is_guard and (said.is_not_known or self._is_true_of_less(said, true))

    def _judge_floor(self, said: Answer, true: Answer) -> None:
        """What is not known any more must be something that only the spoiled sources said."""
        by_itself = self._in_floor(true)
        is_said = by_itself is not None and by_itself.outcome == true.outcome
        if said.outcome != "unknown" and by_itself is not None:
            is_same = (by_itself.verdict, by_itself.changed) == (true.verdict, true.changed)
            is_said &= is_same and not by_itself.is_not_known and not self._damage.casts_doubt
            # Where lines have no time, nothing says which of two copies looked first; and where a log has no details, as
            # 2.15's of FX keys, nothing says whether the other copy looked for the same graph before.
            has_details = said.verdict != "details_not_recorded"
            is_said &= self._damage.copies == 1 or (said.time is not None and has_details)
        if is_said:
            self._wrong("not known, though other sources say it", said, true)
        else:
            self._report.counts[NOT_KNOWN] += 1

    def _is_same(self, said: Answer, true: Answer) -> bool:
        if (said.verdict, said.changed) != (true.verdict, true.changed):
            return False
        are_known = said.kind is not None and true.kind is not None and not said.is_not_known
        # Without the graphs that Dynamo traced it is not told whether their code is the same.
        is_open = said.kind == "" and IS_INFERENCE in said.changed
        is_either = is_open or true.kind in _EITHER.get(said.kind or "", ())
        if are_known and said.kind != true.kind and not is_either:
            return False
        return self._is_cause_same(said, true)

    def _is_cause_same(self, said: Answer, true: Answer) -> bool:
        """It is put down to what it was put down to, or to itself where nothing is blamed that it followed from."""
        if said.cause == true.cause:
            return True
        if said.root == true.root:
            # What it follows from is judged by itself.
            return said.cause in self._causes_of_compile(said)
        parents = [one for one in self._whole.compile_of(true) if one.root]
        parents_found = [self._found.get(one.number) for one in parents]
        others = [one for one in parents_found if one is not None]
        return bool(said.root) and not any(one.verdict is not None and not one.is_not_known for one in others)

    def _causes_of_compile(self, said: Answer) -> list[Cause | None]:
        return [one.cause for one in self._damaged.compile_of(said)]

    # What is true of the part that is left.

    def _is_true_of_less(self, said: Answer, true: Answer) -> bool:
        """Whether the earlier lookup that the whole recording goes by is not there any more, and what is said is true.

        ``first_lookup`` where every earlier lookup of this key and of this graph is gone; ``key_changed`` where the
        fields are those in which this key differs from the one it is compared with, and the graph is the same unless
        the whole recording says that it changed.
        """
        if not self._damage.loses_lines and not self._damage.spoils:
            return False
        if true.verdict in (None, "first_lookup", "bypassed", "disabled"):
            return False
        earlier = self._evidence_for(true)
        if said.verdict == "first_lookup":
            return not any(one.number in self._found for one in earlier)
        if said.verdict != "key_changed" or (
            true.verdict == "key_changed" and self._has_details(true.baseline)
        ):
            return False
        if said.baseline is None:
            # What was compared with a lookup that is gone is compared with the entry that it stored; for AOTAutograd with the graphs below.
            return true.verdict == "key_changed" and frozenset() < said.changed <= true.changed
        if true.verdict != "key_changed" and any(
            one.key == true.key and one.number in self._found for one in earlier
        ):
            return False
        baseline = self._matches.get(said.baseline)
        same_graph = "gm" not in said.changed or "gm" in true.changed
        is_true = baseline is not None and self._whole.difference(baseline.key, true.key) == said.changed
        return is_true and same_graph

    def _has_details(self, whole_number: int | None) -> bool:
        found = None if whole_number is None else self._found.get(whole_number)
        return found is not None and found.details not in ("not_recorded", "incomplete")

    def _evidence_for(self, true: Answer) -> list[Answer]:
        """The earlier lookups of the same cache that looked for the same key, the same graph, or are its baseline."""
        graph = self._whole.graph_of(true.key)
        return [
            one
            for one in self._whole.answers
            if one.cache == true.cache
            and one.number != true.number
            and _is_earlier(one, true)
            and (
                one.number == true.baseline
                or (one.key is not None and one.key == true.key)
                or (graph is not None and self._whole.graph_of(one.key) == graph)
            )
        ]

    def _is_race_of_copies(self, said: Answer, true: Answer) -> bool:
        """A copy of a process looks for the same keys at the same moments: two that race."""
        of_one = ("first_lookup", "key_changed", "details_not_recorded", "entry_unavailable")
        is_race = said.verdict == "compiled_concurrently" and true.verdict in of_one
        return self._damage.copies > 1 and is_race

    def _class_of(self, said: Answer, true: Answer) -> str:
        if said.verdict != true.verdict:
            return f"{true.verdict} reported as {said.verdict}"
        if said.changed != true.changed:
            return "other fields blamed"
        if not self._is_cause_same(said, true):
            return "another cause"
        return f"{said.verdict}: {true.kind} reported as {said.kind}"


def _is_earlier(one: Answer, other: Answer) -> bool:
    if one.number < other.number:
        return True
    return one.time is not None and other.time is not None and one.time <= other.time


# A log that is thinned tells a lookup by its end instead of its beginning.
_SAME_MOMENT = pd.Timedelta(seconds=1)


def matches(said: AnswerSet, true: AnswerSet, copies: int = 1) -> dict[int, Answer]:
    """Of the number of each lookup of one reading, the same lookup of another: of the same process, cache and key.

    None of the other is that of more than so many copies: a process that restarts under one pid looks its keys up anew.
    """
    found: dict[int, Answer] = {}
    taken: Counter[int] = Counter()
    for run, answers in said.of_run.items():
        every = [answer for one in true.runs_of(said.processes[run]) for answer in true.of_run.get(one, ())]
        in_other = [answer for answer in every if taken[answer.number] < copies]
        for here, there in _grouped(answers, in_other):
            for one, other in _aligned(here, there):
                found[one.number] = other
                taken[other.number] += 1
    return found


def _grouped(said: Iterable[Answer], true: Iterable[Answer]) -> list[tuple[list[Answer], list[Answer]]]:
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
    said = 4 * (one.outcome == other.outcome) + 2 * (one.verdict == other.verdict)
    return 20 + 8 * is_one_moment + said + (one.changed == other.changed)
