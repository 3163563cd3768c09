"""Every count that is shown, over every recording: against torch's own counters, and against the frames."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cachescope
from cachescope.report.as_json import explain_object
from cachescope.report.check_forms import check_object
from cachescope.report.layout import Line
from cachescope.report.terminal import terminal_lines
from cachescope.report.why_missed import answer_blocks
from tests.readings import read_once
from tests.recordings import Recorded
from tests.score import of_cachescope, scored
from tests.truth import processes

TOLD = ("counted", "found", "right")
# `cachescope record` has a trace written.
TRACED = ("trace", "trace and directory", "all")
MISSED = ("full_miss", "guard_miss")


def read_scopes(folder: Path) -> Iterator[tuple[str, cachescope.Scope]]:
    """A recording read each way in which it is complete."""
    caches = [folder / path.name for path in sorted(folder.glob("cache*"))]
    steps = json.loads((folder / "scenario.json").read_text())["steps"]
    yield "trace", read_once(folder / "trace")
    yield "trace and directory", read_once(folder / "trace", *caches)
    if all("TORCH_LOGS" in step.get("environment", {}) for step in steps):
        yield "text", read_once(folder / "text")
        yield "text and directory", read_once(folder / "text", *caches)
        yield "all", read_once(folder / "trace", folder / "text", *caches)


def check_every_count(recorded: Recorded) -> None:
    true = processes(recorded.folder, recorded.version, recorded.name)
    scores = {}
    for way, scope in read_scopes(recorded.folder):
        scores[way] = scored(of_cachescope(explain_object(scope)), true)
        # A directory beside a log brings no lookup and takes none; how many each tells is in test_accuracy.py.
        alone = scores[way.removesuffix(" and directory")]
        assert [scores[way][name] for name in TOLD] == [alone[name] for name in TOLD], way
        assert not scores[way]["wrong"], scores[way].wrong
        outcomes = Counter(scope.lookups["outcome"])
        hold_frames(scope, outcomes)
        if outcomes:
            hold_answer(scope, outcomes)
            hold_objects(scope, outcomes)
        if way in TRACED:
            every = frozenset(scope.runs["run"])
            for runs in {every, *(frozenset({run}) for run in every)}:
                hold_record(scope, runs)


def shown_of(outcomes: Counter[str]) -> tuple[int, int, int, int]:
    """Lookups, hits, misses, and what was bypassed or disabled."""
    missed = sum(outcomes[outcome] for outcome in MISSED)
    return outcomes.total(), outcomes["hit"], missed, outcomes["bypass"] + outcomes["disabled"]


def hold_frames(scope: cachescope.Scope, outcomes: Counter[str]) -> None:
    (rate,) = scope.hit_rates().to_dict("records")
    assert tuple(rate[name] for name in ("lookups", "hits", "misses", "bypasses")) == shown_of(outcomes)
    for by in ("run", "cache"):
        groups = scope.hit_rates(by=[by])
        assert groups[["lookups", "hits", "misses", "bypasses"]].sum().tolist() == list(shown_of(outcomes))
    # A lookup whose end was not seen is not known to have missed.
    not_hit = scope.lookups[~scope.lookups["outcome"].isin(["hit", "unknown"])]
    assert scope.misses["lookup"].tolist() == not_hit["lookup"].tolist()
    of_cause = Counter(scope.misses["cause"])
    assert dict(zip(scope.causes["cause"], scope.causes["misses"], strict=True)) == dict(of_cause)
    outcome_of = dict(zip(scope.lookups["lookup"], scope.lookups["outcome"], strict=True))
    for miss in scope.misses.itertuples():
        is_miss = outcome_of[miss.lookup] in MISSED
        assert is_miss == (miss.verdict not in ("bypassed", "disabled"))


def hold_answer(scope: cachescope.Scope, outcomes: Counter[str]) -> None:
    """The terminal's answer, all causes shown."""
    lines = terminal_lines(answer_blocks(scope, most=len(scope.causes)))
    assert counts_said(lines) == shown_of(outcomes)
    assert counts_of_causes(lines) == shown_of(outcomes)[2:]
    few = terminal_lines(answer_blocks(scope, most=1))
    (rest,) = [int(m[1]) for one in few if (m := re.search(r"more causes? with (\d+) miss", one.text))] or [0]
    assert sum(counts_of_causes(few)) + rest == sum(shown_of(outcomes)[2:])


def hold_objects(scope: cachescope.Scope, outcomes: Counter[str]) -> None:
    """What --json prints of explain and check, and the text of check."""
    reported = explain_object(scope)
    assert Counter(row["outcome"] for row in reported["lookups"]) == outcomes
    assert rate_of(reported) == shown_of(outcomes)
    assert sum(cause["misses"] for cause in reported["causes"]) == sum(shown_of(outcomes)[2:])
    checked = scope.check(min_hit_rate=1.0)
    assert headline_counts(checked.headline) == shown_of(outcomes)
    assert rate_of(check_object(checked, scope)) == shown_of(outcomes)
    if checked.bars[0].found is not None and not checked.passed:
        shown = [count for line in checked.causes.values() for count in re.findall(_OF_CAUSE, line)[-1:]]
        assert added_up(shown) == shown_of(outcomes)[2:]


def hold_record(scope: cachescope.Scope, runs: frozenset[int]) -> None:
    """What `cachescope record` prints of its own runs among others."""
    outcomes = Counter(scope.lookups[scope.lookups["run"].isin(runs)]["outcome"])
    lines = terminal_lines(answer_blocks(scope, runs, most=len(scope.causes)))
    if not outcomes:
        assert any("no lookup of this run is recorded" in line.text for line in lines)
        return
    assert counts_said(lines) == shown_of(outcomes)
    assert counts_of_causes(lines) == shown_of(outcomes)[2:]


_HEADLINE = re.compile(
    r"(\d+) lookups?.*?: (\d+) hit, (\d+) missed(?:, (\d+) bypassed or disabled)?(?:, \d+ unknown)?"
)
_OF_CAUSE = r"(\d+) (miss|misses|bypassed|disabled)\b"


def headline_counts(text: str) -> tuple[int, ...]:
    match = _HEADLINE.search(text)
    assert match is not None, text
    return tuple(int(count or 0) for count in match.groups())


def counts_said(lines: list[Line]) -> tuple[int, ...]:
    """The counts of an answer, in its first line that has them."""
    return headline_counts(next(line.text for line in lines if _HEADLINE.search(line.text)))


def counts_of_causes(lines: list[Line]) -> tuple[int, int]:
    """Misses, and what was bypassed or disabled: in each card, and first lookups below them."""
    shown = [found for line in lines if (found := re.search(rf"(?:^|· ){_OF_CAUSE}", line.right))]
    for line in lines:
        shown += re.finditer(rf"first lookups[^:]*: {_OF_CAUSE}", line.text)
    return added_up([(found[1], found[2]) for found in shown])


def added_up(shown: list[tuple[str, str]]) -> tuple[int, int]:
    total: Counter[str] = Counter()
    for count, word in shown:
        total[word] += int(count)
    return total["miss"] + total["misses"], total["bypassed"] + total["disabled"]


def rate_of(reported: dict[str, Any]) -> tuple[int, ...]:
    return tuple(reported["hit_rates"][name] for name in ("lookups", "hits", "misses", "bypasses"))
