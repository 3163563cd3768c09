"""The time lost, and what a what-if would save of it, are the same wherever they are shown: the worklist, the command, the pane, the frames."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from cachescope.analysis.what_if.browser_replay import ReplayCodes
from cachescope.analysis.what_if.sensitivity import SAFETIES
from cachescope.answers.cards import Cards, cause_titles
from cachescope.answers.chosen import Chosen
from cachescope.cli import main
from cachescope.columns import rows_of
from cachescope.frames.replay_rows import CauseSaving, SensitivityRow, WhatIfCause
from cachescope.report.blocks import Group, Replayable, shortened
from cachescope.report.cards import cost_text
from cachescope.report.page.replay import replay_parts
from cachescope.report.what_if_forms import cause_lines, warning_lines
from cachescope.scope import Scope
from cachescope.views.what_if import WhatIfView
from cachescope.wording import duration
from tests.conftest import Recording
from tests.readings import read_once
from tests.recordings import Recorded


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
