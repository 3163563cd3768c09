"""What one reading of a recording says, lookup by lookup, in a form that two readings can be compared in."""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

import cachescope

# Under these nothing is blamed.
NOT_KNOWN_KINDS = frozenset({"not known", "not_known", "unknown"})


@dataclass(frozen=True, slots=True)
class Cause:
    verdict: str
    fields: frozenset[str]


@dataclass(slots=True)
class Answer:
    """One lookup and what is said of it; `verdict` and what belongs to it are None of a hit and an unknown outcome."""

    number: int
    run: int
    process: str
    cache: str
    key: str | None
    compile_id: str | None
    time: pd.Timestamp | None
    outcome: str
    details: str
    verdict: str | None = None
    changed: frozenset[str] = frozenset()
    kind: str | None = None
    evidence: str | None = None
    root: bool | None = None
    cause: Cause | None = None
    baseline: int | None = None
    reason: str = ""

    @property
    def is_not_known(self) -> bool:
        """Whether it says that the reason of the miss is not known, and blames nothing."""
        if self.changed:
            return False
        return (
            self.verdict == "details_not_recorded"
            or self.evidence == "not_known"
            or (self.verdict == "entry_unavailable" and self.kind in NOT_KNOWN_KINDS)
        )

    def __str__(self) -> str:
        said = [self.outcome, self.verdict, self.kind, self.evidence, *sorted(self.changed)[:5]]
        more = [f"… {len(self.changed)} fields"] if len(self.changed) > 5 else []
        words = " ".join(str(word) for word in [*said, *more] if word)
        above = "" if self.root or self.root is None else " <"
        return f"{self.cache} {(self.key or 'no key')[:9]} {self.compile_id}: {words}{above}"


@dataclass
class AnswerSet:
    scope: cachescope.Scope
    answers: list[Answer]
    processes: dict[int, str]
    """Of each run, the process it is of: its pid, or the log that tells of no pid."""
    _details: dict[str, dict[str, str] | None] = field(default_factory=dict)

    @cached_property
    def of_run(self) -> dict[int, list[Answer]]:
        found: dict[int, list[Answer]] = defaultdict(list)
        for answer in self.answers:
            found[answer.run].append(answer)
        return found

    @cached_property
    def process_of_log(self) -> dict[str, str]:
        """The process of each log, by its name; the last, if it tells of several."""
        runs = self.scope.runs.itertuples()
        return {_log(path): self.processes[row.run] for row in runs for path in row.sources}

    def compile_of(self, answer: Answer) -> list[Answer]:
        return [one for one in self.of_run[answer.run] if one.compile_id == answer.compile_id]

    def runs_of(self, process: str) -> list[int]:
        """The runs of one process: one, unless its log was doubled."""
        return [run for run, one in self.processes.items() if one == process]

    def details_of(self, key: str | None) -> dict[str, str] | None:
        """The hash of each field of a key; None where no source has its details."""
        if key is None:
            return None
        if key not in self._details:
            try:
                frame = self.scope.hash_details(cache_key=key)
            except cachescope.NotFoundError:
                self._details[key] = None
            else:
                self._details[key] = dict(zip(frame["field"], frame["detail_hash"], strict=True))
        return self._details[key]

    def difference(self, one: str | None, other: str | None) -> frozenset[str] | None:
        """The fields in which two keys differ; None where that cannot be known."""
        before, after = self.details_of(one), self.details_of(other)
        if before is None or after is None:
            return None
        return frozenset(name for name in before | after if before.get(name) != after.get(name))

    def graph_of(self, key: str | None) -> str | None:
        details = self.details_of(key)
        return None if details is None else details.get("gm")


def read_answers(*sources: Path, whole: AnswerSet | None = None) -> AnswerSet:
    """Read sources, and ask for everything that the comparison needs.

    A log that has no pid is of the process that it is of in the `whole` recording, where a trace tells the pid.
    """
    scope = cachescope.read(*sources)
    known = {} if whole is None else whole.process_of_log
    runs = {row.run: _process(row, known) for row in scope.runs.itertuples()}
    causes = {row.cause: Cause(row.verdict, frozenset(row.fields)) for row in scope.causes.itertuples()}
    answers = [_lookup(row, runs) for row in scope.lookups.itertuples()]
    by_number = {answer.number: answer for answer in answers}
    for row in scope.misses.itertuples():
        _miss(by_number[row.lookup], row, causes)
    return AnswerSet(scope, answers, runs)


def _process(run: Any, known: dict[str, str]) -> str:
    if not pd.isna(run.pid):
        return str(run.pid)
    log = _log(run.sources[0])
    return known.get(log, log)


def _log(path: str) -> str:
    return Path(path).name.partition(".")[0]


def _lookup(row: Any, runs: dict[int, str]) -> Answer:
    key, compile_id, time = _known(row.cache_key), _known(row.compile_id), _known(row.time)
    process = runs[row.run]
    return Answer(row.lookup, row.run, process, row.cache, key, compile_id, time, row.outcome, row.details)


def _miss(answer: Answer, row: Any, causes: dict[int, Cause]) -> None:
    answer.verdict = row.verdict
    answer.changed = frozenset(row.changed)
    # A first lookup of which it is not known whether it is one says so by its evidence.
    answer.kind = None if answer.verdict == "first_lookup" else _known(getattr(row, "kind", None))
    answer.evidence = _known(getattr(row, "evidence", None))
    answer.root = _known(row.root)
    answer.cause = causes.get(row.cause)
    answer.baseline = _known(row.baseline_lookup)
    answer.reason = row.reason


def _known(value: Any) -> Any:
    return None if value is None or pd.isna(value) else value
