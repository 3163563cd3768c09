"""What is said of a pre-flight: it is known for what it is, its times are its own, and what it cannot know is not known; and what is found by trying settings."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import cachescope
from cachescope.analysis.fixes import HASH_SEED_WAY, Setting
from cachescope.analysis.preflight.predicting import with_predictions
from cachescope.answers import preflight as module
from cachescope.answers.chosen import Chosen
from cachescope.answers.preflight import Fix
from cachescope.answers.read import Read
from cachescope.answers.summary import counts_text
from cachescope.answers.time_spent import TimeSpent
from cachescope.cli import main
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.assemble import Tables, assemble
from cachescope.readers.reading import Reading
from cachescope.readers.sources import read_sources
from cachescope.report.layout import Line
from cachescope.report.page.file import rate_numbers, spent_blocks
from cachescope.report.preflight import fix_lines, fix_object
from cachescope.table import Table
from tests.conftest import Archive


@pytest.fixture(scope="module")
def preflights(archive: Archive) -> Path:
    return archive("preflights/2.13.0")


@pytest.fixture(scope="module")
def sample() -> cachescope.Scope:
    return cachescope.read(cachescope.sample("preflight"))


@pytest.fixture(scope="module")
def tables(preflights: Path) -> Tables:
    reading = Reading()
    read_sources([str(preflights / "as_baked"), str(preflights / "cache")], reading)
    return assemble(reading)


def test_a_pre_flight_beside_its_directory(preflights: Path) -> None:
    scope = cachescope.read(preflights / "as_baked", preflights / "cache")
    assert counts_text(scope).startswith("predicted by a pre-flight: 6 lookups in 1 run: 6 hit, 0 missed")
    assert scope.runs["is_preflight"].tolist() == [True]
    replayed = scope.what_if().frame
    outcomes = [*scope.lookups["outcome"], *replayed["outcome"], *replayed["outcome_after"]]
    assert set(outcomes) == {"would_hit"}


def test_a_pre_flight_alone_knows_no_outcome(preflights: Path) -> None:
    scope = cachescope.read(preflights / "as_baked")
    said = "predicted by a pre-flight: 6 lookups in 1 run: 0 hit, 0 missed, 6 of unknown outcome"
    assert counts_text(scope).startswith(said)


def test_the_changed_fields_are_those_that_were_changed(preflights: Path) -> None:
    for step, changed in {
        "changed": ("cpp_runtime_thread_count", "inductor_config[epilogue_fusion]"),
        "half_fixed": ("inductor_config[epilogue_fusion]",),
    }.items():
        scope = cachescope.read(preflights / step, preflights / "cache")
        assert set(scope.lookups["outcome"]) == {"would_miss"}
        assert set(scope.misses.loc[scope.misses["verdict"] == "key_changed", "changed"]) == {changed}
        assert "(pre-flight, pid " in str(scope.explain())


def test_beside_a_real_run_it_is_counted_as_what_it_is(preflights: Path) -> None:
    scope = cachescope.read(preflights / "changed", preflights / "cache", cachescope.sample("config_flip"))
    assert "; 6 of them predicted by a pre-flight" in counts_text(scope)


@pytest.mark.slow
def test_a_lock_expects_the_keys_of_a_pre_flight(preflights: Path) -> None:
    for step, found in {"as_baked": 6, "changed": 0}.items():
        lock = cachescope.lock(preflights / "cache", expect=preflights / step)
        assert lock.expected is not None and len(lock.expected) == 6
        stored = {(entry.kind, entry.key) for entry in lock.entries()}
        assert len(stored & set(lock.expected)) == found and repr(lock).endswith("6 expected keys>")


# Times: nothing was compiled, so they are no compile's, and no hit would save them.


@pytest.mark.slow
def test_no_reading_says_what_hits_would_save(sample: cachescope.Scope) -> None:
    (one,) = TimeSpent.of(sample).runs
    assert one.is_preflight and (one.could_save_ns, one.stays_ns) == (None, None)
    real = TimeSpent.of(cachescope.read(cachescope.sample("start"))).runs
    assert all(run.could_save_ns is not None and run.stays_ns is not None for run in real)


@pytest.mark.slow
def test_every_form_says_whose_times(sample: cachescope.Scope, capsys: pytest.CaptureFixture[str]) -> None:
    said = "its own times; it compiled nothing"
    path = str(cachescope.sample("preflight"))
    assert main(["time", path]) == 0
    printed = capsys.readouterr().out
    assert said in " ".join(printed.split()) and "could still save" not in printed
    assert main(["time", path, "--json"]) == 0
    (reported,) = json.loads(capsys.readouterr().out)["time"]
    assert (reported["could_save_ns"], reported["stays_ns"]) == (None, None)
    assert any(said in part.text for part in spent_blocks(sample) if isinstance(part, Line))


def test_no_bar_is_drawn_for_a_compile_that_was_none(sample: cachescope.Scope) -> None:
    assert sample.runs["is_preflight"].all() and sample.lookups["end_time"].isna().all()
    assert sample.lookups["time"].notna().all()


def test_the_explorer_says_that_a_rate_is_predicted(sample: cachescope.Scope) -> None:
    assert "0 of 6 lookups, predicted" in rate_numbers(Chosen(sample))[0][2]
    assert "predicted" not in rate_numbers(Chosen(cachescope.read(cachescope.sample("start"))))[0][2]


# Of a key that holds values of tensors, where a pre-flight had none; edited by hand into a recorded one.


def without_values(tables: Tables, cache: str) -> Tables:
    """The same, with a note on the first lookup of a cache that its key holds values."""
    lookups = tables.lookups.frame.copy()
    at = lookups.index[lookups["cache"] == cache][0]
    note = json.loads(lookups.loc[at, "preflight_note"])
    note["lookup"]["without_values"] = True
    lookups.loc[at, "preflight_note"] = json.dumps(note)
    return replace(tables, lookups=Table(LookupRow, frame=lookups))


def test_all_would_hit_where_nothing_is_noted(tables: Tables) -> None:
    assert set(with_predictions(tables).lookups.frame["outcome"]) == {"would_hit"}


def test_a_key_of_aotautograd_that_is_not_sure_leaves_its_graphs_found(tables: Tables) -> None:
    lookups = with_predictions(without_values(tables, "aotautograd")).lookups.frame
    unsure = lookups[lookups["outcome"] == "not_known"]
    assert unsure["cache"].tolist() == ["aotautograd"]
    assert "ran without weights" in unsure["prediction"].item()
    # Under their own keys the graphs are there.
    assert set(lookups.loc[lookups["outcome"] != "not_known", "outcome"]) == {"would_hit"}


def test_a_key_of_a_graph_that_is_not_sure_is_not_known_where_it_is_asked_for(tables: Tables) -> None:
    entries = [row for row in tables.entries.rows if row.cache != "aotautograd"]
    only_graphs = replace(without_values(tables, "fxgraph"), entries=Table(EntryRow, entries))
    lookups = with_predictions(only_graphs).lookups.frame
    (why,) = lookups.loc[lookups["outcome"] == "not_known", "prediction"]
    assert "ran without weights" in why
    assert (lookups["outcome"] == "would_hit").sum() == (lookups["cache"] == "fxgraph").sum() - 1


THREADS = "export OMP_NUM_THREADS=2"
FUSION = "torch._inductor.config.epilogue_fusion = True"
FUSION_AS_OPTION = 'torch.compile(…, options={"epilogue_fusion": True})'
Reads = dict[str, Read]


@pytest.fixture(scope="module")
def reads(archive: Archive) -> Reads:
    folder = archive("preflights/2.13.0")
    steps = ("as_baked", "changed", "half_fixed")
    return {step: cachescope.read(folder / step, folder / "cache") for step in steps}


def fix(reads: Reads, fusion: Sequence[str], fails: Callable[[set[str]], bool] = lambda codes: False) -> Fix:
    """A program that was recorded, in which some lines set back the option; with some it fails."""

    def trial(settings: Sequence[Setting]) -> Read | None:
        codes = {setting.code for setting in settings}
        if fails(codes):
            return None
        if THREADS not in codes:
            return reads["changed"]
        return reads["half_fixed" if codes.isdisjoint(fusion) else "as_baked"]

    found = Fix.of(trial, {})
    assert found is not None
    return found


def codes(found: Fix) -> list[str]:
    return [setting.code for setting in found.settings]


@pytest.mark.slow
def test_both_are_needed(reads: Reads) -> None:
    found = fix(reads, [FUSION])
    assert codes(found) == [THREADS, FUSION]
    assert (found.before.counts["would_hit"], found.after.counts["would_hit"]) == (0, 6)
    assert found.remaining == ()
    # As it is, with both, and with each alone.
    assert found.trials == 4


def test_the_next_way_is_tried_where_the_first_changes_nothing(reads: Reads) -> None:
    assert codes(fix(reads, [FUSION_AS_OPTION])) == [THREADS, FUSION_AS_OPTION]


def failed(found: Fix) -> list[list[str]]:
    return [[setting.code for setting in way] for way in found.failed]


def test_a_way_that_the_program_fails_with_gives_way_to_the_next(reads: Reads) -> None:
    """The threads, which are tried with it, stay as they are."""
    found = fix(reads, [FUSION, FUSION_AS_OPTION], fails=lambda codes: FUSION in codes)
    assert codes(found) == [THREADS, FUSION_AS_OPTION] and failed(found) == [[FUSION]]
    assert found.after.counts["would_hit"] == 6
    shown = "\n".join(line.text for line in fix_lines(found))
    assert f"left out, as the command failed with it: {FUSION}" in shown
    (reported,) = fix_object(found)["failed_with"]
    assert [setting["code"] for setting in reported] == [FUSION]


def test_what_remains_is_told_where_no_way_of_a_field_works(reads: Reads) -> None:
    ways = {FUSION, FUSION_AS_OPTION}
    found = fix(reads, [*ways], fails=lambda codes: not codes.isdisjoint(ways))
    assert failed(found) == [[FUSION], [FUSION_AS_OPTION]]
    # A half that brings no hit is none.
    assert codes(found) == []
    assert sum(one.misses for one in found.remaining) == 6


@pytest.mark.parametrize("fusion", [[FUSION], []])
def test_what_the_program_fails_with_is_never_claimed(reads: Reads, fusion: list[str]) -> None:
    found = fix(reads, fusion, fails=bool)
    assert found.settings == () and found.after.counts == found.before.counts
    assert sum(one.misses for one in found.remaining) == 6


@pytest.mark.parametrize(("variables", "is_luck", "wanted"), [
    ({}, True, []),
    ({}, False, [FUSION]),
    ({"PYTHONHASHSEED": "7"}, True, [FUSION]),
    ({"PYTHONHASHSEED": "random"}, True, []),
])  # fmt: skip
def test_hits_that_come_once_are_not_claimed_where_sets_are_ordered_anew(
    variables: dict[str, str], is_luck: bool, wanted: list[str], reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    fusion = Setting("attribute", *FUSION.split(" = "))
    monkeypatch.setattr(module, "ways_to_set", lambda *sides: (HASH_SEED_WAY, (fusion,)))
    tried: list[Sequence[Setting]] = []

    def trial(settings: Sequence[Setting]) -> Read | None:
        tried.append(settings)
        hits = fusion in settings and not (is_luck and tried.count(settings) > 1)
        return reads["as_baked" if hits else "changed"]

    found = Fix.of(trial, variables)
    assert found is not None and codes(found) == wanted
    assert found.trials == len(tried) and (found.after.counts["would_hit"] == 6) is bool(wanted)


def test_a_half_that_brings_no_hit_is_no_fix(reads: Reads) -> None:
    found = fix(reads, [])
    assert found.settings == () and found.after.counts["would_hit"] == 0


def test_lookups_that_are_not_known_any_more_are_no_fix(reads: Reads) -> None:
    alone = cachescope.read(Path(reads["as_baked"].runs["source"].iloc[0]))
    assert set(alone.lookups["outcome"]) == {"not_known"}
    found = Fix.of(lambda settings: alone if settings else reads["changed"], {})
    assert found is not None and found.settings == ()


def test_a_program_that_fails_as_it_is_has_no_fix() -> None:
    assert Fix.of(lambda settings: None, {}) is None
