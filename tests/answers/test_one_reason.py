"""One reason and one number for a lookup, whichever command is asked: `explain`, `diff`, `check`, `time` and the report."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

import cachescope
from cachescope.answers.cards import Cards
from cachescope.answers.check import Check
from cachescope.answers.chosen import Chosen
from cachescope.answers.comparison import ComparedRuns
from cachescope.answers.difference import Difference, difference, side_of_runs
from cachescope.answers.explanation import Explanation
from cachescope.answers.summary import counts_text
from cachescope.answers.time_spent import TimeSpent
from cachescope.report.as_json import explain_object
from cachescope.report.page.markdown import markdown
from cachescope.scope import Scope
from cachescope.wording import duration
from tests.conftest import Recording
from tests.made import CODE, fx, run, scope_of
from tests.readings import read_once
from tests.recordings import Recorded


def diff_gives_the_fields_of_explain(scope: Scope) -> None:
    """For a changed key and the one that it is compared with, which may be on both sides."""
    facts = scope.facts
    between: dict[tuple[int, int], Difference] = {}
    for miss in facts.misses.values():
        if not miss.changed or miss.baseline_lookup is None:
            continue
        row, before = facts.lookups[miss.lookup], facts.lookups[miss.baseline_lookup]
        if row.run == before.run:
            continue
        sides = side_of_runs(scope, [before.run], []), side_of_runs(scope, [row.run], [])
        keys, other_keys = ({seen.cache_key: seen for seen in side} for side in sides)
        if row.cache_key in keys or other_keys[row.cache_key].lookup != row.lookup:
            continue
        found = between.setdefault((before.run, row.run), difference(scope, *sides))
        told = [
            {change.field for change in changes}
            for changes, pairs in found.groups
            for a, b in pairs
            if (a.cache_key, b.cache_key) == (before.cache_key, row.cache_key)
        ]
        others = [b for _, pairs in found.groups for a, b in pairs if a.cache_key == before.cache_key]
        assert told or others, f"diff has no pair for lookup {miss.lookup}"
        if told:
            assert told == [{change.field for change in Explanation.of(scope, miss.lookup).changes}]


def everything_counts_alike(scope: Scope) -> None:
    counts, rates = counts_text(scope), scope.hit_rates().to_dict("records")[0]
    by_run = scope.hit_rates(by="run").set_index("run")
    checked = Check.of(scope, 1.0, 0, None)
    assert checked.headline == counts
    bars = {bar.bar: bar for bar in checked.bars}
    # Where a run compiled and none of its lookups is recorded, nothing is checked.
    assert bars["min_hit_rate"].found in (rates["hits"] / rates["lookups"], None)
    # Each cause of a failed bar with the misses and the time that explain gives it.
    for cause in scope.explained.rows:
        if (line := checked.causes.get(cause.cause)) is not None:
            lost = "" if cause.time_lost_ns is None else f", {duration(cause.time_lost_ns)} lost"
            end = f"run{'s' * (len(cause.runs) > 1)}{lost}"
            assert f"{cause.misses:,} " in line and line.endswith(end), line
    in_json = explain_object(scope)
    reasons = {row["lookup"]: row["reason"] for row in in_json["lookups"]}
    for miss in scope.facts.misses.values():
        assert Explanation.of(scope, miss.lookup).reason == miss.reason == reasons[miss.lookup]
    page = markdown(scope, redact=False)
    assert counts in page
    for card in Cards.of(Chosen(scope), most=3).cards:
        assert card.row.misses == scope.explained.rows[card.row.cause].misses
    for one in TimeSpent.of(scope).runs:
        if one.run in by_run.index:
            row = by_run.loc[one.run]
            assert one.readings.hits <= row.hits
            assert one.readings.hits or not row.hits


def comparing_counts_alike(scope: Scope) -> None:
    by_run = scope.hit_rates(by="run").set_index("run")
    for before, after in list(combinations(by_run.index, 2))[:6]:
        found = ComparedRuns.of(scope, [before], [after])
        for side in (found.before, found.after):
            row = by_run.loc[side.runs[0]]
            assert (side.rate.lookups, side.rate.hits) == (row.lookups, row.hits)


def why_says_what_cards_say(scope: Scope) -> None:
    for card in Cards.of(Chosen(scope)).cards:
        explained = Explanation.of(scope, card.first.lookup)
        assert card.settings == explained.settings
        assert card.advice in (None, explained.advice)


def readings(folder: Path) -> Iterator[Scope]:
    for kind in ("trace", "text", ""):
        if (folder / kind).is_dir() and any((folder / kind).iterdir()):
            try:
                yield read_once(folder / kind)
            except cachescope.errors.SourceError:
                continue


def check_commands_give_one_reason(recorded: Recorded) -> None:
    agree(recorded.folder)


def agree(folder: Path) -> None:
    for scope in readings(folder):
        if not scope.lookups.empty:
            diff_gives_the_fields_of_explain(scope)
            everything_counts_alike(scope)
            comparing_counts_alike(scope)
            why_says_what_cards_say(scope)


@pytest.mark.parametrize(
    "name", ["three_changes", "grad_mode", "edited_program_fx", "recompiles_fx", "two_ranks_cold_paths_fx"]
)
def test_commands_give_one_reason(name: str, recording: Recording) -> None:
    agree(recording("2.13.0", name))


def test_a_key_of_one_rank_is_compared_with_one_that_both_sides_have() -> None:
    """Three ranks find what was baked, but for one with another option."""
    fields = {"gm": CODE, "inductor_config[epilogue_fusion]": "True"}
    other = fields | {"inductor_config[epilogue_fusion]": "False"}
    baked = run(fx("f1", details=fields, at=0, took=5.0))
    ranks = [run(fx("f1", "hit", fields, at=100), rank=rank) for rank in (0, 2)]
    scope = scope_of(baked, *ranks, run(fx("f2", details=other, at=101, took=5.0), rank=1))
    found = difference(scope, side_of_runs(scope, [0], []), side_of_runs(scope, [1, 2, 3], []))
    ((changes, ((before, after),)),) = found.groups
    assert [change.summary for change in changes] == ["True -> False"]
    assert (found.equal, before.cache_key, after.cache_key) == (1, "f1", "f2")
    assert not found.only_before and not found.only_after
