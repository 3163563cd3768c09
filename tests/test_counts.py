"""Every count that is shown, over every recording: against torch's own counters, and against the frames."""

import contextlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.analysis.what_if.browser_replay import ReplayCodes
from cachescope.analysis.what_if.sensitivity import SAFETIES
from cachescope.answers.cards import Cards, cause_titles
from cachescope.answers.chosen import Chosen
from cachescope.cli import main
from cachescope.columns import rows_of
from cachescope.frames.replay_rows import CauseSaving, SensitivityRow, WhatIfCause
from cachescope.report.as_json import explain_object
from cachescope.report.blocks import Group, Replayable, shortened
from cachescope.report.check_forms import check_object
from cachescope.report.layout import Line
from cachescope.report.page.replay import replay_parts
from cachescope.report.terminal import terminal_lines
from cachescope.report.what_if_forms import cause_lines, warning_lines
from cachescope.report.why_missed import answer_blocks, cost_text
from cachescope.scope import Scope
from cachescope.views.what_if import WhatIfView
from cachescope.wording import duration
from tests.conftest import Recording
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


def worklist_agrees(scope: Scope, savings: list[CauseSaving]) -> None:
    """The same causes, at the same cost."""
    found = Cards.of(Chosen(scope), most=20)
    works = {work.row.cause: work for work in (*found.works, *found.apart)}
    assert works.keys() == {row.cause for row in savings}
    lost = dict(zip(scope.causes["cause"], scope.causes["time_lost_ns"], strict=True))
    for row in savings:
        assert row.time_lost_ns is None or row.time_lost_ns == lost[row.cause]
        if row.time_lost_ns is not None:
            assert cost_text(works[row.cause]).startswith(duration(row.time_lost_ns))


def nothing_goes_unsaid(scope: Scope, savings: list[CauseSaving]) -> None:
    """A miss hits without the fields, or it is said why not; and the ranking has whatever helps."""
    ranking = rows_of(scope.sensitivity(), SensitivityRow)
    for row in savings:
        assert (row.hits_after >= row.misses) == (row.why is None), row
        of_it = [one for one in ranking if set(one.fields) <= set(row.fields)]
        if row.hits_after:
            assert any(one.misses_alone for one in of_it), row
        if row.fields and row.staggered:
            assert any(one.staggered for one in of_it), row
    classes = [SAFETIES.index(one.safety) for one in ranking]
    assert classes == sorted(classes)
    for one in ranking:
        assert one.misses_alone or one.staggered


def toggles_agree(scope: Scope, savings: list[CauseSaving]) -> None:
    """Asked for one by one, it is the same."""
    for row in savings:
        if row.fields:
            found = scope.what_if(without=row.fields)
            (asked,) = (one for one in rows_of(found.by_cause, WhatIfCause) if one.cause == row.cause)
            assert (asked.hits_after, asked.unknown) == (row.hits_after, row.unknown)
            assert (asked.time_won_ns, asked.why) == (row.time_won_ns, row.why)


def titles_of(scope: Scope) -> dict[int, str]:
    """What the worklist calls the causes."""
    found = Cards.of(Chosen(scope), most=20)
    return {work.row.cause: work.title for work in (*found.works, *found.apart)}


def command_agrees(scope: Scope, folder: Path, savings: list[CauseSaving]) -> None:
    """The command names every cause, its cost, and why its misses stay."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        assert main(["what-if", str(folder)]) == 0
    printed = " ".join(output.getvalue().split())
    titles = titles_of(scope)
    for row in savings:
        lost = "" if row.time_lost_ns is None else rf" (?:Time lost: )?{duration(row.time_lost_ns)}\b"
        assert re.search(rf"{re.escape(titles[row.cause])}{lost}", printed)
        assert row.why is None or row.why in printed


def pane_agrees(scope: Scope, savings: list[CauseSaving]) -> None:
    """The pane lists the causes as the worklist calls them, as `what-if` has them."""
    view = WhatIfView(scope)
    titles = titles_of(scope)
    assert view.by_cause.total == len(savings)
    for row, cells in zip(savings, view.by_cause.rows, strict=False):
        assert cells[0] == titles[row.cause][:300]
        assert cells[1] == ("–" if row.time_lost_ns is None else duration(row.time_lost_ns))
        assert row.why is None or row.why in cells


def report_agrees(scope: Scope) -> None:
    """The toggles of the report say what those of the pane say."""
    if not (parts := replay_parts(scope)):
        return
    (group,) = parts
    assert isinstance(group, Group) and isinstance(group.blocks[0], Replayable)
    beside = {i["name"]: i["saves"] for one in WhatIfView(scope).tree.groups for i in (one, *one["fields"])}
    codes = ReplayCodes.of(scope.replay)
    names = {"form": [form.name for form in codes.forms], "field": codes.fields}
    for form in group.blocks[0].groups:
        for toggle in (form, *form.fields):
            if not toggle.name:
                continue
            kind, place = toggle.name.split()
            name = names[kind][int(place)]
            assert toggle.saves == beside[name]
            found = scope.what_if(without=name)
            assert toggle.warnings == tuple(shortened(line.text, 300) for line in warning_lines(found))
            lines = cause_lines(found, cause_titles(Chosen(scope), scope.explained.rows))
            assert toggle.causes == tuple(shortened(line.text, 300) for line in lines)


def agrees(folder: Path) -> None:
    """One truth of what is lost and what would help."""
    scope = read_once(folder)
    if scope.lookups.empty:
        return
    savings = rows_of(scope.cause_savings(), CauseSaving)
    worklist_agrees(scope, savings)
    nothing_goes_unsaid(scope, savings)
    toggles_agree(scope, savings)
    command_agrees(scope, folder, savings)
    pane_agrees(scope, savings)
    report_agrees(scope)


def check_what_is_lost(recorded: Recorded) -> None:
    agrees(recorded.folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two_ranks_cold_paths", "dynamic_guards"])
def test_one_truth_of_what_is_lost_and_what_would_help(name: str, recording: Recording) -> None:
    """Of ranks at once, and of guards."""
    agrees(recording("2.13.0", name))
