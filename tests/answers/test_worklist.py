"""What to fix first: every cause is in the list or counted below it, under a name of its own; what is counted of all runs is what is counted run by run."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.answers.cards import MOST, Cards, cause_names, ways
from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import headline
from cachescope.answers.summary import counts_text, footer
from cachescope.columns import rows_of
from cachescope.frames.replay_rows import SensitivityRow
from cachescope.report.blocks import Group, WorkItems
from cachescope.report.layout import Line
from cachescope.report.why_missed import card_text, first_cards
from cachescope.verdict_kinds import kind_of
from cachescope.views.lookups import Lookups
from cachescope.views.state import State
from tests.conftest import Recording
from tests.made import CODE, entry, fx, run, scope_of
from tests.readings import read_once
from tests.recordings import Recorded


def check_every_cause_is_there_under_a_name_of_its_own(recorded: Recorded) -> None:
    scope = read_once(recorded.folder)
    found = Cards.of(Chosen(scope), most=1000)
    works = (*found.works, *found.apart)
    causes = scope.causes
    # Nothing is to be fixed of these; the last line counts them.
    first = causes["verdict"].eq("first_lookup") & causes["kind"].ne("not known")
    others = set(causes["cause"]) - set(causes["cause"][first])
    assert sorted(work.row.cause for work in works) == sorted(others)
    titles = [work.title for work in works]
    assert len(set(titles)) == len(titles)
    misses = scope.misses.set_index("lookup")
    for work in works:
        assert misses.loc[work.first.lookup, "cause"] == work.row.cause
    # What could have been avoided comes first.
    costs = [(work.cost in ("avoidable", "at once"), work.row.time_lost_ns or 0) for work in found.works]
    assert costs == sorted(costs, reverse=True)
    # What changed is named or counted, and what gives a field its earlier value is given where it is not one process's own.
    for work in works:
        names_guard = "a guard of compile" in work.first.reason
        assert work.is_by_guard == (kind_of(work.row).is_of_function and names_guard)
        assert work.changes == (() if work.is_by_guard else scope.explain(work.first.lookup).changes)
        is_set = [change for change in work.changes if change.process_values is None]
        assert is_set or not work.settings


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
    (card,) = Cards.of(Chosen(scope_of(*ranks))).cards
    assert card.row.runs == (0, 1) and card.changes[0].summary.startswith("differs by rank: /rank")
    assert card.other_values == ()


def test_of_inputs_that_changed_otherwise_in_another_run_that_is_said_too() -> None:
    """One run had another dtype, the next another size: neither is blamed for both, and there is advice on either."""
    lookups = []
    for at, (dtype, size) in enumerate([("float32", 8), ("float64", 8), ("float32", 9)]):
        tensor = f"TensorMetadata(dtype=torch.{dtype}, shape=torch.Size([{size}, 4]), stride=(4, 1))"
        details = {"gm": CODE, "example_inputs[0]": tensor, "example_inputs[1]": tensor}
        lookups.append(fx(f"f{at}", details=details, at=at, took=1.0, function="f", file="/model.py", line=1))
    (card,) = Cards.of(Chosen(scope_of(*(run(lookup, cache_dir="/cache") for lookup in lookups)))).cards
    assert card.row.runs == (1, 2) and "float64" in card.changes[0].summary
    assert card.other_values == ((2, "example_inputs[0]: shape [8, 4] -> [9, 4], and 1 more field"),)
    assert ("run 2", card.other_values[0][1]) in card_text(card).changes
    assert card.advice is not None and "dtype changed" in card.advice and "size changed" in card.advice


def test_lines_give_the_changed_fields_their_earlier_values(recording: Recording) -> None:
    """As recording_scenarios.py changed them; no line gives one process the value of another."""
    # What was avoidable comes first.
    one, both = Cards.of(Chosen(cachescope.read(recording("2.13.0", "three_changes")))).works
    place = "just before the first compile (or in mode or options of torch.compile, if set there)"
    line = "torch._inductor.config.epilogue_fusion = True"
    assert one.settings == {place: (line,)}
    # That says what sets it.
    said = card_text(one)
    assert one.advice is None and said.changes == ()
    assert said.title == "epilogue_fusion: True -> False"
    assert said.lines == ((f"do, {place}:", line),)
    # It sets Inductor's option, too.
    assert set().union(*both.settings.values()) == {"torch.use_deterministic_algorithms(False)"}
    # A size is no setting.
    assert both.advice is not None and "An input's size changed." in both.advice
    changes = card_text(both).changes
    assert changes[-1][0] == "deterministic" and len(changes) == 4
    (rank,) = Cards.of(Chosen(cachescope.read(recording("2.13.0", "rank_in_config")))).works
    assert rank.settings == {} and rank.advice is not None and "keep it out of the key" in rank.advice
    # The first change is the title, the other values stand below.
    told = [f"apparently differs by rank: model_rank{rank} -> model_rank{rank + 1}" for rank in range(3)]
    said = card_text(rank)
    assert said.title == f"aot_inductor.output_path: {told[0]}"
    assert [change for _, change in said.changes] == told[1:]


def test_what_is_beyond_the_most_is_counted() -> None:
    every = {"gm": CODE, **{f"x{number}": "0" for number in range(MOST + 2)}}
    changed = [fx(f"f{n}", details={**every, f"x{n}": "1"}, at=1 + n) for n in range(MOST + 2)]
    first, folded, more, _ = first_cards(Chosen(scope_of(run(fx("f", details=every)), *map(run, changed))))
    assert isinstance(first, WorkItems) and isinstance(folded, Group)
    assert folded.is_folded and isinstance(folded.blocks[0], WorkItems)
    assert len(first.cards) + len(folded.blocks[0].cards) == MOST and folded.title == f"{MOST - 3} more"
    assert isinstance(more, Line) and more.text == "2 more causes with 2 misses: see scope.causes."


@pytest.mark.slow
def test_why_there_is_nothing(recording: Recording, tmp_path: Path) -> None:
    cold = cachescope.read(recording("2.13.0", "two_ranks_cold_shapes"))
    assert Cards.of(Chosen(cold), most=20).works == ()
    # Both ranks began at once, and differ in the size of an input: What-if ranks it, with a staggered start.
    (field,) = rows_of(cold.sensitivity(), SensitivityRow)
    assert (field.misses_alone, field.staggered) == (0, 2)
    for kind in ("cold start", "while another run compiled the same graph under another key"):
        assert f"first lookups ({kind}): 2 misses" in footer(Chosen(cold))


def test_the_only_run_that_a_cause_struck_is_named(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "config_flip"))
    (work,) = Cards.of(Chosen(scope), most=20).works
    (run,) = scope.causes["runs"][scope.causes["cause"] == work.row.cause].item()
    assert f"in run {run} (" in work.where


def test_every_cause_has_a_name_of_its_own_and_what_cannot_be_fixed_comes_last(recording: Recording) -> None:
    """Two graphs were edited: the summary of both causes is gm."""
    scope = cachescope.read(recording("2.13.0", "edited_program"))
    assert not scope.causes["summary"].is_unique
    names, causes = zip(*cause_names(scope), strict=True)
    assert len(set(names)) == len(names)
    assert sorted(causes) == sorted(scope.causes["cause"])
    found = Cards.of(Chosen(scope), most=20)
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


def test_a_recompile_is_told_by_its_guard(recording: Recording) -> None:
    cards = Cards.of(Chosen(cachescope.read(recording("2.13.0", "recompiles_dynamic"))))
    (text,) = (card_text(card) for card in cards.cards)
    assert text.title.endswith(": tensor 'x' size mismatch at index 0")
    guard = "a guard of compile 0/0 failed: tensor 'x' size mismatch at index 0. expected 8, actual 12"
    assert text.changes == (("", guard),)
    assert text.code is None
    assert not any("compared with" in line for line in text.told)
    assert "torch._dynamo.mark_dynamic(x, 0)" in (text.advice or "")


SAMPLES = ("config_flip", *(pytest.param(name, marks=pytest.mark.slow) for name in ("four_ranks", "tour")))


@pytest.mark.parametrize("name", SAMPLES)
def test_causes_of_each_run_add_up_to_those_of_all(name: str) -> None:
    scope = cachescope.read(cachescope.sample(name))
    every = Cards.of(Chosen(scope), most=1000)
    misses: Counter[int] = Counter()
    lost: Counter[int] = Counter()
    runs: Counter[int] = Counter()
    for number in scope.runs["run"]:
        for card in Cards.of(Chosen.of_runs(scope, {number}), most=1000).cards:
            cause = card.row.cause
            misses[cause] += card.row.misses
            lost[cause] += card.row.time_lost_ns or 0
            runs[cause] += len(card.row.runs)
    assert every.cards and every.more == 0
    for card in every.cards:
        cause = card.row.cause
        assert card.row.misses == misses[cause]
        assert (card.row.time_lost_ns or 0) == lost[cause]
        assert len(card.row.runs) == runs[cause] and len(card.places) == min(2, card.roots)


def test_what_is_beyond_the_most_cards_is_counted() -> None:
    scope = cachescope.read(cachescope.sample("tour"))
    every, first = Cards.of(Chosen(scope), most=1000), Cards.of(Chosen(scope), most=1)
    assert first.cards == every.cards[:1]
    assert first.more == len(every.cards) - 1 > 0
    assert first.more_misses == sum(card.row.misses for card in every.cards[1:])


def test_ways_of_a_cause_differ_in_their_values() -> None:
    scope = cachescope.read(cachescope.sample("tour"))
    for card in Cards.of(Chosen(scope), most=1000).cards:
        found = ways(scope, card.row.cause, 3)
        texts = [tuple(change.summary for change in one.changes) or one.reason for one in found]
        assert 1 <= len(found) <= 3
        assert len(set(texts)) == len(texts)


def test_the_text_repr_counts_the_entries_of_each_status() -> None:
    scope = cachescope.read(cachescope.sample("entry_truncated"))
    statuses = scope.entries["status"].value_counts().to_dict()
    assert statuses["damaged"] > 0
    assert repr(scope).endswith(f"entries: {sum(statuses.values())}, damaged: {statuses['damaged']}")


@pytest.mark.parametrize("is_other", [False, True])
def test_a_key_that_changed_in_another_directory_names_it(
    is_other: bool, tmp_path: Path, recording: Recording
) -> None:
    """As if each run had its own directory: no key holds the path, so nothing else in the traces differs."""
    for at, trace in enumerate((recording("2.13.0", "config_flip") / "trace").iterdir()):
        text = trace.read_text().replace("/config_flip/cache", f"/config_flip/cache{at if is_other else ''}")
        (tmp_path / trace.name).write_text(text)
    scope = cachescope.read(tmp_path)
    (work,) = Cards.of(Chosen(scope), most=10).works
    assert work.row.fields and ("in another directory (" in str(work.baseline)) == is_other
    # The earlier setting finds the entry only where that lies.
    assert ("by epilogue_fusion and another directory;" in headline(Chosen(scope))) == is_other
    assert str(work.advice).endswith("or copy the cache there.") == is_other


@pytest.mark.parametrize(("at", "later", "is_other"), [(50, None, False), (150, None, True), (50, 200, True)])
def test_what_was_copied_into_the_directory_before_is_in_no_other(
    at: int, later: int | None, is_other: bool
) -> None:
    """As of a mega-cache that was loaded, or a cache that was baked into an image."""
    one, two = {"gm": CODE, "x": "1"}, {"gm": CODE, "x": "2"}
    runs = [
        run(fx("f11", details=one, at=0, took=1), cache_dir="/baked"),
        run(fx("f22", details=two, at=100, took=1), cache_dir="/here"),
        *([] if later is None else [run(fx("f11", details=one, at=later, took=1), cache_dir="/here")]),
    ]
    scope = scope_of(*runs, entries=[entry("fxgraph", "f11", one, at=at, root="/here")])
    work = next(work for work in Cards.of(Chosen(scope), most=10).works if work.row.fields == ("x",))
    assert ("in another directory (/baked)" in str(work.baseline)) == is_other


@pytest.mark.parametrize(("filled", "used", "is_other"), [
    (None, False, True), ("/here", False, False), ("/here", True, True), ("/baked", False, True),
])  # fmt: skip
def test_what_lay_in_a_directory_that_others_had_filled_may_be_what_is_compared(
    filled: str | None, used: bool, is_other: bool
) -> None:
    """As of a copy that is not read itself; what an earlier run of those read had stored in it is known."""
    one, two = {"gm": CODE, "x": "1"}, {"gm": CODE, "x": "2"}
    runs = [
        run(fx("f11", details=one, at=0, took=1), cache_dir="/baked"),
        *([run(fx("f33", details={"gm": "other"}, at=50, took=1), cache_dir="/here")] if used else []),
        run(fx("f22", details=two, at=100, took=1), cache_dir="/here", filled_dir=filled),
    ]
    scope = scope_of(*runs)
    work = next(work for work in Cards.of(Chosen(scope), most=10).works if work.row.fields == ("x",))
    assert ("in another directory (/baked)" in str(work.baseline)) == is_other
    assert ("by x and another directory" in headline(Chosen(scope))) == is_other


def test_a_log_without_a_lookup_beside_others_is_named(tmp_path: Path, recording: Recording) -> None:
    logs = sorted((recording("2.15.0", "cold_warm") / "text").iterdir())
    silent = tmp_path / "second.log"
    silent.write_text(
        "W1129 09:00:18.838000 13445 torch/utils/cpp_extension.py:183] [0/0] No CUDA runtime is found\n"
    )
    assert "no lookup is recorded in" not in counts_text(cachescope.read(logs[0]))
    scope = cachescope.read(logs[0], silent)
    assert counts_text(scope).endswith("; no lookup is recorded in second.log")
    # What that process compiled may have been compiled before.
    assert headline(Chosen(scope)).startswith("No compile is known to have been avoidable: ")
    # Another log of a process that has lookups elsewhere is none of another process.
    (pid,) = {*scope.runs["pid"]}
    silent.write_text(silent.read_text().replace(" 13445 ", f" {pid} "))
    assert "no lookup is recorded in" not in counts_text(cachescope.read(logs[0], silent))


def test_a_process_that_compiled_without_a_lookup_is_counted_beside_others() -> None:
    made = run(fx("f1", details={"gm": CODE}, at=0, took=1))
    scope = scope_of(made, run(looked_up=False))
    assert counts_text(scope).endswith("; no lookup is recorded in 1 other run that compiled")


@pytest.mark.parametrize(("is_stored", "said"), [
    (False, "Nothing was compiled twice: 2.0 s of first compiles"),
    # Another run had compiled it to the end.
    (True, "2.0 s of the 3.0 s compiled after misses were avoidable, by epilogue_fusion; 1.0 s of first compiles"),
])  # fmt: skip
def test_what_had_failed_before_was_not_compiled_before(is_stored: bool, said: str) -> None:
    """As of a compiler that was not there; its setting would find nothing."""
    one, two = ({"gm": CODE, "inductor_config[epilogue_fusion]": value} for value in ("True", "False"))
    stored = [run(fx("f11", details=one, at=0, took=1))] if is_stored else []
    failed = run(fx("f11", details=one, at=50, compile_error="InvalidCxxCompiler: none", compile_ended=True))
    scope = scope_of(*stored, failed, run(fx("f22", details=two, at=100, took=2)))
    assert headline(Chosen(scope)).startswith(said)
    (work,) = (work for work in Cards.of(Chosen(scope), most=10).works if work.row.kind == "")
    assert ("its compile failed: InvalidCxxCompiler: none" in str(work.advice)) is not is_stored
