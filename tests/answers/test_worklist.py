"""What to fix first: every cause is in the list or counted below it, under a name of its own."""

from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.analysis.verdicts.change_advice import field_advice
from cachescope.answers.cards import Cards, advice_by_field, cause_names, nothing_to_fix
from cachescope.answers.chosen import Chosen
from cachescope.answers.explanation import Explanation
from cachescope.answers.summary import footer
from cachescope.columns import rows_of
from cachescope.frames.replay_rows import SensitivityRow
from cachescope.report.cards import changes_of, notes_of
from cachescope.views.lookups import Lookups
from cachescope.views.state import State
from tests.conftest import Recording
from tests.made import CODE, fx, run, scope_of
from tests.readings import read_once
from tests.recordings import Recorded


def check_every_cause_is_there_under_a_name_of_its_own(recorded: Recorded) -> None:
    scope = read_once(recorded.folder)
    found = Cards.of(scope, most=1000)
    works = (*found.works, *found.apart)
    causes = scope.causes
    # Nothing is to be fixed of these; the last line counts them.
    first = causes["verdict"].eq("first_lookup") & causes["kind"].ne("not known")
    assert sorted(work.row.cause for work in works) == sorted(
        set(causes["cause"]) - set(causes["cause"][first])
    )
    titles = [work.title for work in works]
    assert len(set(titles)) == len(titles)
    misses = scope.misses.set_index("lookup")
    for work in works:
        assert misses.loc[work.first.lookup, "cause"] == work.row.cause
    costs = [work.share or 0 for work in found.works]
    assert costs == sorted(costs, reverse=True)
    assert sum(work.share or 0 for work in works) <= 1 + 1e-9
    # What is said beside the fields is what is said of the cause as a whole, which stops after four sentences.
    advice = causes.set_index("cause")["advice"]
    for work in found.works:
        beside = " ".join([work.besides or "", *(one for field in work.fields for one in field.advice)])
        whole = advice[work.row.cause] or "" if work.fields and not work.more_changes else ""
        for sentence in whole.split(". "):
            is_of_several = sentence.startswith("Of the other fields") or "options of" in sentence
            assert sentence.rstrip(".") in beside or is_of_several


def test_shares_are_of_all_the_time_that_was_lost(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "bypass_custom_pass"))
    found = Cards.of(scope, most=20)
    lost = scope.lookups["time_taken_ns"][scope.lookups["outcome"] != "hit"].sum()
    (one,), (apart,) = found.works, found.apart
    for work in (one, apart):
        of_cause = scope.misses["lookup"][scope.misses["cause"] == work.row.cause]
        mine = scope.lookups.set_index("lookup")["time_taken_ns"][of_cause].sum()
        assert work.share == pytest.approx(mine / lost)
    # What passes the cache by costs most, and stands below all the same.
    assert apart.share > 6 * one.share  # type: ignore[operator]
    wanted = [("post_grad_custom_post_pass", "nothing-pass-1 -> nothing-pass-2")]
    assert [(work.field, work.change) for work in one.fields] == wanted
    assert [(text.name, text.change) for text in changes_of(one)] == [
        ("", "nothing-pass-1 -> nothing-pass-2")
    ]


@pytest.mark.slow
def test_every_changed_field_is_named_or_counted(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "three_changes"))
    costliest = Cards.of(scope, most=20).works[0]
    changes = scope.explain(costliest.first.lookup).changes
    assert len(costliest.fields) + costliest.more_changes == len(changes) == 4
    # The part of the name that all options share is left out.
    assert changes_of(costliest)[-1].name == "deterministic"


def test_each_field_has_its_own_advice_line_and_safety(recording: Recording) -> None:
    both, one = Cards.of(cachescope.read(recording("2.13.0", "three_changes")), most=20).works
    said = {text.name: text for text in changes_of(both)}
    # As recording_scenarios.py changed them.
    assert said["deterministic_algorithms_settings"].lines == ("torch.use_deterministic_algorithms(False)",)
    assert said["deterministic"].lines == ("torch._inductor.config.deterministic = False",)
    assert said["example_inputs[0]"].left_out == "Not safe to leave out of the key: it is what is compiled."
    # What is the same of several stands at the last of them.
    options = [text.left_out for text in changes_of(both) if text.name != "example_inputs[0]"]
    assert options[:-1] == ["", ""] and options[-1] == (
        "deterministic_algorithms, deterministic_algorithms_settings, deterministic: "
        "not safe to leave out of the key: torch's code generation reads it."
    )
    assert said["deterministic_algorithms_settings"].advice[0] == "As for deterministic_algorithms."
    (epilogue,) = changes_of(one)
    assert epilogue.lines == ("torch._inductor.config.epilogue_fusion = True",)
    assert epilogue.lead == "To get the earlier value, just before the first compile:"
    assert epilogue.advice == (
        'Set by options={"epilogue_fusion": …} of torch.compile or by torch._inductor.config.epilogue_fusion; '
        "keep it equal in every process.",
    )
    assert epilogue.left_out == "Not safe to leave out of the key: torch's code generation reads it."
    assert both.besides is None and one.besides is None


def test_no_line_gives_one_process_the_value_of_another(recording: Recording) -> None:
    (work,) = Cards.of(cachescope.read(recording("2.13.0", "rank_in_config")), most=20).works
    told = changes_of(work)[0]
    assert not told.lines and "keep it out of the key" in told.advice[0]
    assert told.left_out == "Not known whether the key could do without it."


def test_what_is_on_several_fields_stands_below_them(recording: Recording) -> None:
    (work,) = Cards.of(cachescope.read(recording("2.13.0", "autograd_config")), most=20).works
    assert work.besides == "The FX graphs below were found, so little was compiled again."
    assert work.fields[0].advice[0].startswith("Set in torch._functorch.config")


def test_other_values_of_the_same_field_are_told(recording: Recording) -> None:
    (work,) = Cards.of(cachescope.read(recording("2.13.0", "rank_in_config")), most=20).works
    assert work.title == "aot_inductor.output_path"
    assert [text.change for text in changes_of(work)] == [
        f"apparently differs by rank: model_rank{rank} -> model_rank{rank + 1}" for rank in range(3)
    ]


def test_two_ranks_that_differ_by_their_rank_are_listed_once() -> None:
    """Of two graphs, each rank was first with one: the second value is the first one the other way round."""
    named: dict[str, Any] = {"took": 10.0, "function": "f", "file": "/model.py", "line": 1}
    ranks = []
    for rank, moments in enumerate([(0, 3), (1, 2)]):
        lookups = []
        for graph, at in enumerate(moments):
            details = {"gm": f"{CODE}{graph}", "x": f"/rank{rank}"}
            lookups.append(fx(f"f{graph}{rank}", details=details, at=at, compile_id=f"{graph}/0", **named))
        ranks.append(run(*lookups, rank=rank, cache_dir="/cache"))
    (card,) = Cards.of(scope_of(*ranks)).cards
    assert card.row.runs == (0, 1) and card.changes[0].summary.startswith("differs by rank: /rank")
    assert card.other_values == ()


@pytest.mark.slow
def test_what_is_beyond_the_most_is_counted() -> None:
    found = Cards.of(cachescope.read(cachescope.sample("tour")), most=1)
    assert len(found.works) == 1 and found.more > 0
    assert (
        notes_of(found)[0] == f"{found.more} more causes with {found.more_misses} misses: see scope.causes."
    )


@pytest.mark.slow
def test_why_there_is_nothing(recording: Recording, tmp_path: Path) -> None:
    assert nothing_to_fix(Chosen(cachescope.read(cachescope.sample("whole_directory")))).startswith(
        "No lookup"
    )
    cold = cachescope.read(recording("2.13.0", "two_ranks_cold_shapes"))
    assert Cards.of(cold, most=20).works == ()
    # Both ranks began at once, and differ in the size of an input: What-if ranks it, with a staggered start.
    (field,) = rows_of(cold.sensitivity(), SensitivityRow)
    assert (field.misses_alone, field.staggered) == (0, 2)
    assert nothing_to_fix(Chosen(cold)) == (
        "Every miss is a first lookup, with nothing earlier to compare with. 2 were made while another run was compiling "
        "the same graph under another key: Compare shows what differs, What-if what a staggered start would do."
    )
    for kind in ("cold start", "while another run compiled the same graph under another key"):
        assert f"first lookups ({kind}): 2 misses" in footer(cold)


def test_the_only_run_that_a_cause_struck_is_named(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "config_flip"))
    (work,) = Cards.of(scope, most=20).works
    (run,) = scope.causes["runs"][scope.causes["cause"] == work.row.cause].item()
    assert f"in run {run} (" in work.where


def test_every_cause_has_a_name_of_its_own_and_what_cannot_be_fixed_comes_last(recording: Recording) -> None:
    """Two graphs were edited: the summary of both causes is gm."""
    scope = cachescope.read(recording("2.13.0", "edited_program"))
    assert not scope.causes["summary"].is_unique
    names, causes = zip(*cause_names(scope), strict=True)
    assert len(set(names)) == len(names)
    assert sorted(causes) == sorted(scope.causes["cause"])
    found = Cards.of(scope, most=20)
    titles = [work.title for work in (*found.works, *found.apart)]
    assert list(names[: len(titles)]) == titles and names[-1] == "first lookups (cold start)"


def test_long_names_of_causes_stay_apart_where_they_are_cut() -> None:
    """Two options of one long module: their names differ behind the 80 characters that the filter of Lookups shows."""
    options = [f"inductor_config[{'a_very_long_module_name.' * 4}{end}]" for end in ("one", "two")]
    same = dict.fromkeys(options, "1")
    named: dict[str, Any] = {"took": 0.5, "function": "f", "file": "/model.py", "line": 1}
    runs = []
    for number in range(2):
        lookups = []
        for graph, option in enumerate(options):
            details = {"gm": f"{CODE}{graph}", **same, option: str(number)}
            told = {"details": details, "at": 20.0 * number + graph, "compile_id": f"{graph}/0"}
            lookups.append(fx(f"f{number}{graph}", **told, **named))
        runs.append(run(*lookups, cache_dir="/cache"))
    scope = scope_of(*runs)
    assert scope.causes["verdict"].eq("key_changed").sum() == 2
    labels = [label for label, _ in Lookups(scope, State()).children[0].children[-2].options]
    assert len(set(labels)) == len(labels) == 4
    assert max(map(len, labels)) == 80


OPTIONS = ["inductor_config[epilogue_fusion]", "inductor_config[max_fusion_size]"]


@pytest.mark.slow
def test_advice_on_several_fields_stands_beside_each(recording: Recording) -> None:
    found = []
    for name in ("config_flip", "tour", "training", "four_graphs", "two_services"):
        scope = cachescope.read(recording("2.13.0", name))
        for lookup in scope.misses["lookup"].tolist():
            explained = Explanation.of(scope, lookup)
            parts = advice_by_field(scope, explained)
            if not parts:
                continue
            assert " ".join(sentence for _, sentence in parts) == explained.advice
            changed = {change.field for change in explained.changes}
            for fields, sentence in parts:
                assert set(fields) <= changed
                # What is said of an option is what the list of fields says of it.
                assert not [i for i in fields if i in OPTIONS and field_advice(i) != sentence]
            found.append(len(parts))
    assert found
