"""Every count that is shown, over every recording: against torch's own counters, and against the frames."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from scenarios import UNTRACED_FX_MISSES
from wild import unsaved

import cachescope
from cachescope.answers.why import Why
from cachescope.report.as_json import explain_object
from cachescope.report.check_forms import check_object
from cachescope.report.layout import Line
from cachescope.report.why_missed import answer_lines
from tests.readings import read_once
from tests.recordings import Recorded

Counts = dict[str, int]
# `cachescope record` has a trace written.
TRACED = ("trace", "trace and directory", "all")
MISSED = ("full_miss", "guard_miss")
# What torch's counters and the outcomes of lookups are called.
COUNTERS = {"fxgraph": ("inductor", "fxgraph_cache"), "aotautograd": ("aot_autograd", "autograd_cache")}
OUTCOMES = {"hit": "hit", "full_miss": "miss", "guard_miss": "miss", "bypass": "bypass"}
# 2.6 logs an AOTAutograd bypass only where it would save; 2.15 and the others say all.
UNTOLD_BYPASSES = {("2.6.0", "bypass_custom_pass"): {"autograd_cache_bypass"}}


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


def torch_counted(counters: dict[str, dict[str, int]]) -> Counts:
    """What torch counted of one process."""
    found = {
        f"{name}_{state}": counters.get(group, {}).get(f"{name}_{state}", 0)
        for group, name in COUNTERS.values()
        for state in ("hit", "miss", "bypass")
    }
    return {name: count for name, count in found.items() if count}


def counted(lookups: pd.DataFrame) -> Counts:
    """The lookups of one process in torch's words; torch counts a result that it could not save as a bypass too."""
    counts: Counter[str] = Counter()
    for row in lookups.itertuples():
        if row.outcome in OUTCOMES:
            counts[f"{COUNTERS[row.cache][1]}_{OUTCOMES[row.outcome]}"] += 1
        counts[f"{COUNTERS[row.cache][1]}_bypass"] += isinstance(row.save_bypass, str)
    return {name: count for name, count in counts.items() if count}


def counters_of_runs(folder: Path, scope: cachescope.Scope) -> Iterator[tuple[int, Counts]]:
    """What torch counted of each run, which is told by its trace, by its pid, or by its log where that has none."""
    paths = sorted((folder / "steps").glob("*.json"))
    reports = {path.stem: json.loads(path.read_text()) for path in paths}
    of_pid = {report["pid"]: report for report in reports.values()}
    steps = json.loads((folder / "scenario.json").read_text())["steps"]
    of_trace = {name: reports.get(step["step"]) for step in steps for name in step.get("trace", ())}
    if not of_trace and len(of_pid) < len(reports) == len(scope.runs):
        # Containers have one pid: the steps of these ran one after the other.
        yield from zip(
            scope.runs["run"], (torch_counted(report["counters"]) for report in reports.values()), strict=True
        )
        return
    for run in scope.runs.itertuples():
        names = [Path(source).name for source in run.sources]
        traced = next((of_trace[name] for name in names if name in of_trace), None)
        # A process that was ended by a signal may have left no report.
        named = next((reports[stem] for name in names if (stem := Path(name).stem) in reports), None)
        report = traced or (named if pd.isna(run.pid) else of_pid.get(run.pid))
        if report is not None:
            yield run.run, torch_counted(report["counters"])


def check_every_count(recorded: Recorded) -> None:
    for way, scope in read_scopes(recorded.folder):
        hold_torchs_counters(recorded.folder, scope, (recorded.version, recorded.name), way)
        outcomes = Counter(scope.lookups["outcome"])
        hold_frames(scope, outcomes)
        if outcomes:
            hold_answer(scope, outcomes)
            hold_objects(scope, outcomes)
        if way in TRACED:
            every = frozenset(scope.runs["run"])
            for runs in {every, *(frozenset({run}) for run in every)}:
                hold_record(scope, runs)


def hold_torchs_counters(folder: Path, scope: cachescope.Scope, case: tuple[str, str], way: str) -> None:
    """The lookups of each run, and of all of them, by cache and outcome."""
    lookups = scope.lookups
    untold = UNTOLD_BYPASSES.get(case, set()) if way.startswith("text") else set()
    untraced = _untraced(case) if way.startswith("trace") else {}
    seen: Counts = Counter()
    for run, expected in counters_of_runs(folder, scope):
        seen.update(expected)
        expected = {counter: count for counter, count in expected.items() if counter not in untold}
        expected = dict(Counter(expected) - untraced.get(run, Counter()))
        mine = lookups[lookups["run"] == run]
        reported = counted(mine)
        if set(mine["outcome"]) >= {"unknown"}:
            # One whose end was not seen stands for one that torch counted, or for none where an exception ended it.
            unseen = Counter(COUNTERS[cache][1] for cache in mine["cache"][mine["outcome"] == "unknown"])
            more = Counter(expected) - Counter(reported)
            assert not Counter(reported) - Counter(expected), (way, run)
            for _, name in COUNTERS.values():
                assert sum(n for counter, n in more.items() if counter.startswith(name)) <= unseen[name]
        else:
            assert reported == expected, (way, run)
    assert seen == _counted_by_all(folder), way


def _untraced(case: tuple[str, str]) -> dict[int, Counter[str]]:
    """The misses of each run that its trace does not tell of: those whose compile failed or did not end, too."""
    found = {
        run: Counter(fxgraph_cache_miss=count) for run, count in UNTRACED_FX_MISSES.get(case, {}).items()
    }
    for run, lines in enumerate(unsaved.expectation(*case)):
        caches = [line.split()[1] for line in lines if line.startswith("text ")]
        if caches:
            found[run] = Counter(
                "autograd_cache_miss" if letter == "A" else "fxgraph_cache_miss" for letter in caches
            )
    return found


def _counted_by_all(folder: Path) -> Counts:
    """Of all processes together: none was left out, and none was read twice."""
    reports = [json.loads(path.read_text()) for path in (folder / "steps").glob("*.json")]
    total: Counter[str] = Counter()
    for report in reports:
        total.update(torch_counted(report["counters"]))
    return dict(total)


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
    why = Why.of(scope, most=len(scope.causes))
    lines = answer_lines(why)
    assert headline_counts(why.counts or lines[0].text) == shown_of(outcomes)
    assert counts_of_causes(lines) == shown_of(outcomes)[2:]
    few = answer_lines(Why.of(scope, most=1))
    (rest,) = [int(m[1]) for one in few if (m := re.search(r"more causes? of (\d+) lookup", one.text))] or [0]
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
    why = Why.of(scope, runs, most=len(scope.causes))
    if not outcomes:
        assert "no lookup of this run is recorded" in why.headline
        return
    assert headline_counts(why.counts or why.headline) == shown_of(outcomes)
    assert counts_of_causes(answer_lines(why)) == shown_of(outcomes)[2:]


_HEADLINE = re.compile(
    r"(\d+) lookups?.*?: (\d+) hit, (\d+) missed(?:, (\d+) bypassed or disabled)?(?:, \d+ unknown)?"
)
_OF_CAUSE = r"(\d+) (miss|misses|bypassed|disabled)\b"


def headline_counts(text: str) -> tuple[int, ...]:
    match = _HEADLINE.search(text)
    assert match is not None, text
    return tuple(int(count or 0) for count in match.groups())


def counts_of_causes(lines: list[Line]) -> tuple[int, int]:
    """Misses, and what was bypassed or disabled: in each card, and first lookups below them."""
    shown = [found for line in lines if (found := re.search(rf": {_OF_CAUSE}, the first ", line.text))]
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
