"""`scope.check`: which bars are met, what stands against them, and the forms that CI reads."""

import json
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import cachescope
from cachescope.analysis.verdicts.since_baseline import changed_since
from cachescope.columns import pandas_type
from cachescope.frames.described import FRAMES
from cachescope.report.check_forms import Check, check_object, github_lines, junit_text
from cachescope.rows import columns_of
from tests.conftest import Recording
from tests.output_gates import commands_in

pytestmark = pytest.mark.slow  # whole reports are written

FUSION = "inductor_config[epilogue_fusion]"
# What the schema of Jenkins allows (xunit-plugin, junit-10.xsd); others take as much.
COUNTS = {"name", "tests", "failures", "errors", "time"}
JUNIT = {
    "testsuites": COUNTS, "testsuite": COUNTS | {"skipped"}, "testcase": {"name", "classname", "time"},
    "failure": {"message", "type"}, "error": {"message", "type"}, "system-out": set(),
}  # fmt: skip


@pytest.fixture
def flip(recording: Recording) -> cachescope.Scope:
    return cachescope.read(recording("2.13.0", "config_flip") / "trace")


def runs_of(folder: Path, *runs: int, to: Path) -> cachescope.Scope:
    """Only some runs of a recording, in the order of time."""
    scope = cachescope.read(folder / "trace")
    to.mkdir()
    for run in runs:
        shutil.copy(scope.runs["source"][run], to)
    return cachescope.read(to)


def test_time_lost_is_what_hit_rates_say(flip: cachescope.Scope) -> None:
    (lost,) = flip.hit_rates()["time_lost_ns"]
    assert flip.check(max_time_lost_ns=lost).passed
    failed = flip.check(max_time_lost_ns=lost - 1)
    assert not failed.passed
    # What rounds to the same is told apart.
    assert f"found {lost / 1e9:.9g} s" in " ".join(repr(failed).split())


def test_a_warm_run_passes_where_all_runs_do_not(recording: Recording, tmp_path: Path) -> None:
    folder = recording("2.13.0", "cold_warm")
    assert not cachescope.read(folder / "trace").check(min_hit_rate=1).passed
    assert runs_of(folder, 1, 2, to=tmp_path / "warm").check(min_hit_rate=1, max_time_lost_ns=0).passed


def test_the_frame_is_as_declared(flip: cachescope.Scope) -> None:
    frame = flip.check(0.9, 10**9, flip).frame
    declared = {column.name: pandas_type(column.dtype) for column in columns_of(FRAMES["checks"])}
    assert dict(frame.dtypes) == declared
    of_base = ["base_hit_rate", "base_avoidable"]
    assert frame["bar"].tolist() == ["min_hit_rate", "max_time_lost", "no_new_cause", *of_base]


def test_nothing_recorded_meets_no_bar(recording: Recording, flip: cachescope.Scope) -> None:
    nothing = cachescope.read(recording("2.13.0", "config_flip") / "cache")
    checked = nothing.check(min_hit_rate=0, max_time_lost_ns=10**12, against=flip)
    assert checked.frame["passed"].tolist() == [False] * 5 and checked.frame["found"].isna().all()
    assert "nothing to check" in repr(checked)


def test_a_process_whose_caches_were_off_meets_no_bar(recording: Recording, tmp_path: Path) -> None:
    warm = runs_of(recording("2.13.0", "cold_warm"), 1, to=tmp_path / "warm")
    assert warm.check(min_hit_rate=1).passed
    # Compiled, and nothing was looked up: what is left of a trace without its cache artifacts.
    records = re.split(rb"(?m)^(?=[VIW]\d{4} )", Path(warm.runs["source"][0]).read_bytes())
    left = [r for r in records if not re.search(rb'"name": ?"(?:fx_graph|aotautograd|autograd)_cache', r)]
    blind = re.sub(rb"(?m)^([VIW]\d{4} \S+) \d+ ", rb"\1 99999 ", b"".join(left))
    (tmp_path / "warm" / "dedicated_log_torch_trace_blind.log").write_bytes(blind)
    scope = cachescope.read(tmp_path / "warm")
    assert scope.runs["looked_up"].tolist().count(False) == 1
    checked = scope.check(min_hit_rate=0.5)
    assert not checked.passed
    assert "run 1 compiled without a recorded lookup: caches were off" in checked.bars[0].reason


def test_causes_are_known_by_verdict_and_fields_not_by_number(recording: Recording) -> None:
    # Among the causes of three_changes the same field changed, under another number and another cost.
    flip = cachescope.read(recording("2.13.0", "config_flip") / "trace")
    three = cachescope.read(recording("2.13.0", "three_changes") / "trace")
    assert flip.check(against=three).passed
    checked = three.check(against=flip)
    (new,) = [c for c in three.causes.itertuples() if "example_inputs[0]" in c.fields]
    assert checked.bars[0].causes == (new.cause,) and "example_inputs[0]" in repr(checked)


def test_a_changed_config_does_not_pass_for_a_cold_start(recording: Recording, tmp_path: Path) -> None:
    folder = recording("2.13.0", "config_flip")
    cold = runs_of(folder, 0, to=tmp_path / "cold")
    flipped = runs_of(folder, 1, to=tmp_path / "flipped")
    # Alone it has nothing to compare with.
    assert flipped.causes["verdict"].tolist() == cold.causes["verdict"].tolist() == ["first_lookup"]
    checked = flipped.check(against=cold)
    assert not checked.passed
    assert f"against the base {FUSION} True -> False changed" in " ".join(repr(checked).split())


@pytest.mark.parametrize(("checked", "baseline", "passes"), [
    # A cold start like that of the baseline passes, of other graphs too.
    (("cold_warm", 0), ("config_flip", 0), True),
    (("four_graphs", 0), ("config_flip", 0), True),
    # A change that the baseline had is known.
    (("config_flip", 1), ("three_changes", 0, 1, 2), True),
    # Since 2.12 a trace alone has details of FX keys only, and what changed is told all the same.
    (("trace_only", 2), ("trace_only", 0), False),
])  # fmt: skip
def test_what_changed_since_the_baseline_counts(
    checked: tuple[Any, ...], baseline: tuple[Any, ...], passes: bool, recording: Recording, tmp_path: Path
) -> None:
    sides = enumerate((checked, baseline))
    places = [(name, runs, tmp_path / str(at)) for at, (name, *runs) in sides]
    now, before = (runs_of(recording("2.13.0", name), *runs, to=to) for name, runs, to in places)
    assert now.check(against=before).passed == passes


@pytest.mark.parametrize(("checked", "base", "met"), [
    ([2], [2], [True, True, True]),
    ([2], [0], [True, True, True]),
    ([0, 1, 2], [0, 1, 2], [True, True, True]),
    # The base found what these compiled: the cache is gone, or a setting changed.
    ([0], [2], [False, False, False]),
    ([1], [2], [False, False, False]),
    # Two cold starts: nothing that was compiled again had been found.
    ([1], [0], [False, True, True]),
    # Everything counts: of a cold and a warm start half of the lookups hit.
    ([1], [0, 2], [False, False, True]),
])  # fmt: skip
def test_a_start_is_not_worse_than_its_base(
    checked: list[int], base: list[int], met: list[bool], recording: Recording, tmp_path: Path
) -> None:
    folder = recording("2.13.0", "config_flip")
    now, before = (runs_of(folder, *runs, to=tmp_path / str(at)) for at, runs in enumerate((checked, base)))
    bars = now.check(against=before).bars
    assert [bar.passed for bar in bars] == met
    assert bars[1].wanted == before.hit_rates()["hit_rate"][0]
    assert bars[1].found == now.hit_rates()["hit_rate"][0]
    assert all("in the base" in bar.reason for bar in bars[1:])


def test_avoidable_seconds_are_those_of_a_start_and_may_be_a_quarter_more(flip: cachescope.Scope) -> None:
    times = flip.lookups[flip.lookups["cache"] == "fxgraph"].groupby("run")["time_taken_ns"].sum()
    # The base found later what its first start compiled, and the second changed a setting.
    avoidable = (times[0] + times[1]) // 3
    bar = flip.check(against=flip).bars[-1]
    assert (bar.found, bar.wanted) == (avoidable, round(avoidable * 1.25))
    assert "25 % more is allowed" in bar.reason


def test_what_is_not_recorded_is_said_and_meets_no_bar(flip: cachescope.Scope, recording: Recording) -> None:
    folder = recording("2.13.0", "config_flip")
    text, cache = cachescope.read(folder / "text"), cachescope.read(folder / "cache")
    unrecorded = (text, flip, "not recorded: only traces"), (flip, text, "not recorded in the base")
    for now, before, said in unrecorded:
        bar = now.check(against=before).bars[-1]
        assert not bar.passed and said in bar.reason
    bars = flip.check(against=cache).bars
    assert not bars[1].passed and bars[1].reason.startswith("not recorded in the base: nothing to check")
    assert [bar.wanted for bar in bars[1:]] == [None, None]
    assert "no worse than the base" in repr(flip.check(against=cache))
    # Nothing was avoidable where all lookups hit, whatever their times.
    back = cachescope.read(sorted((folder / "text").iterdir())[-1])
    assert back.check(against=text).passed


def test_ranks_may_be_fewer_and_both_are_told(recording: Recording) -> None:
    folder = recording("2.13.0", "four_ranks")
    four = cachescope.read(folder / "trace")
    one = cachescope.read(four.runs[four.runs["rank"] == 2]["source"].iloc[0])
    bar = one.check(against=four).bars[1]
    assert "on ranks 2;" in bar.reason and bar.reason.endswith("on ranks 0-3")


def test_another_call_of_a_graph_on_other_inputs_is_no_change(recording: Recording, tmp_path: Path) -> None:
    folder = recording("2.13.0", "inputs")
    before, after = (runs_of(folder, run, to=tmp_path / str(run)) for run in (0, 1))
    assert {since.fields for since in after.changed_since(before)} == {("example_inputs[0]",)}
    # As if this run had called the graph on the inputs of the baseline as well.
    keys = [*after.lookups["cache_key"], *before.lookups["cache_key"]]
    now, then = after.tables.hash_details, before.tables.hash_details
    assert changed_since(after._judged[0], keys, now, before.lookup_rows, then) == []


@pytest.mark.parametrize(
    "bars", [{}, {"min_hit_rate": 1.1}, {"min_hit_rate": float("nan")}, {"max_time_lost_ns": -1}]
)
def test_a_bar_that_is_none_is_refused(bars: dict[str, float], flip: cachescope.Scope) -> None:
    with pytest.raises(ValueError, match=r"check\(\)|min_hit_rate|max_time_lost_ns"):
        flip.check(**bars)  # type: ignore[arg-type]


def hostile(flip: cachescope.Scope) -> Check:
    """A real check, one of whose causes says what a log could hold."""
    checked = flip.check(min_hit_rate=0.9)
    text = "100 %\r\n::stop-commands::x\x1b[31m\x00 <b>&\ufffe\ud800 a: b, c"
    return Check(checked.bars, checked.headline, dict.fromkeys(checked.causes, text), 1)


def test_github_lines_are_commands_that_nothing_can_leave(flip: cachescope.Scope) -> None:
    lines = github_lines(hostile(flip))
    text = "\n".join(lines)
    assert all(len(line.splitlines()) == 1 for line in lines)
    commands = [line for line in text.splitlines() if line.lstrip().startswith("::")]
    assert [re.match(r"::(\w+) title=([^:,]*)::", c)[1] for c in commands] == ["error", "warning"]  # type: ignore[index]
    (error, _) = commands
    assert "100 %25\\x0d ::stop-commands" in error
    assert "title=cachescope%3A hit rate::wanted at least 90 %25, found 33.3 %25" in error
    assert "\x1b" not in text and "\x00" not in text


def test_junit_parses_and_has_one_case_per_bar(flip: cachescope.Scope) -> None:
    for checked in (flip.check(0.9, 10**12, flip), hostile(flip)):
        root = ElementTree.fromstring(junit_text(checked))
        (suite,) = root
        cases = suite.findall("testcase")
        assert [case.get("name") for case in cases] == [bar.bar for bar in checked.bars]
        assert [case.find("failure") is None for case in cases] == [bar.passed for bar in checked.bars]
        assert int(suite.get("tests") or "") == len(cases)
        assert int(suite.get("failures") or "") == len(suite.findall(".//failure"))
        for element in root.iter():
            assert set(element.attrib) <= JUNIT[element.tag]
    failure = suite.find(".//failure")
    assert failure is not None and failure.text is not None
    assert "<b>&" in failure.text and not re.search("[\x00\x1b\ufffe\ud800]", failure.text)


def test_the_object_is_json_and_names_the_causes(flip: cachescope.Scope) -> None:
    printed = check_object(flip.check(min_hit_rate=0.9), flip)
    assert json.loads(json.dumps(printed, allow_nan=False)) == printed
    assert printed["passed"] is False
    assert printed["bars"][0]["causes"] == [cause["cause"] for cause in printed["causes"]]
    assert printed["causes"][1]["text"].startswith(f"{FUSION} True -> False")


@pytest.mark.parametrize("side", ["checked", "baseline"])
def test_a_source_not_read_is_said_in_every_form(side: str, recording: Recording, tmp_path: Path) -> None:
    missing = tmp_path / "100%,a: b"
    trace = recording("2.13.0", "config_flip") / "trace"
    scope = cachescope.read(trace, *([missing] if side == "checked" else []))
    baseline = cachescope.read(trace, *([missing] if side == "baseline" else []))
    checked = scope.check(0.1, against=baseline)
    # Every bar is met by what was read.
    assert all(bar.passed for bar in checked.bars) and not checked.passed
    said = f"{missing}: there is no such file or directory"
    assert checked.unread == (said,)
    assert repr(checked).startswith("check not passed: 1 source could not be read; 6 lookups")
    assert f"not read {said}" in " ".join(repr(checked).split()) and "not read" in checked._repr_html_()
    (error,) = (line for line in github_lines(checked) if line.startswith("::"))
    assert error == f"::error title=cachescope%3A source not read::{said.replace('%', '%25')}"
    root = ElementTree.fromstring(junit_text(checked))
    assert len([*root.iter("error")]) == 1 and set(root[0].attrib) <= JUNIT["testsuite"]
    assert [root[0].get(name) for name in ("tests", "errors", "failures")] == ["5", "1", "0"]
    printed = check_object(checked, scope)
    assert (printed["passed"], printed["unread"]) == (False, [said])
    # Nothing else of it could not be read.
    assert checked.problems == 0 and "record" not in repr(checked)


def test_bars_and_sources_are_counted_beside_each_other(recording: Recording, tmp_path: Path) -> None:
    scope = cachescope.read(recording("2.13.0", "config_flip") / "trace", tmp_path / "missing")
    first = repr(scope.check(0.9)).split(";")[0]
    assert first == "check not passed: 1 of 1 bar not met, 1 source could not be read"


def test_the_document_is_no_command_and_is_read_as_it_was(flip: cachescope.Scope) -> None:
    checked = flip.check(min_hit_rate=0.9)
    for text in ("::set-env name=a::b", "##vso[task.complete]", "section_start:1:a", "--- a", "tab\tbed"):
        document = junit_text(Check(checked.bars, checked.headline, dict.fromkeys(checked.causes, text), 0))
        assert commands_in(document) == [] and document.isascii()
        failure = ElementTree.fromstring(document).find(".//failure")
        assert failure is not None and failure.text is not None
        assert text in failure.text.split("\n")
