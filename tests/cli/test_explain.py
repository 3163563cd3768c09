"""``cachescope explain``: the JSON contract, the terminal form, what it refuses, and what it tells of a directory alone."""

from pathlib import Path

import pytest

import cachescope
from tests.cli.conftest import Run, command, environment, in_pipe, on_screen
from tests.conftest import Directory, Recording

pytestmark = pytest.mark.slow  # each test starts processes

FIELD = "inductor_config[epilogue_fusion]"
LOOKUP_KEYS = {
    "lookup", "run", "order", "cache", "cache_key", "compile_id", "is_backward", "outcome", "verdict",
    "baseline", "changed", "root", "cause", "reason",
}  # fmt: skip


@pytest.fixture
def flip(recording: Recording) -> Path:
    return recording("2.13.0", "config_flip")


def test_json_is_the_object_of_the_contract(run: Run, flip: Path) -> None:
    done = run("explain", "--json", flip / "trace")
    assert (done.status, done.err) == (0, "")
    printed = done.json
    assert printed["cachescope"] == cachescope.__version__
    assert {"runs", "lookups", "causes", "problems"} <= printed.keys()
    assert [run["run"] for run in printed["runs"]] == [0, 1, 2]
    assert all({"source", "sources", "pid", "rank", "torch_version"} <= run.keys() for run in printed["runs"])
    assert all(run["source"].startswith(str(flip / "trace")) for run in printed["runs"])
    assert printed["runs"][0]["start_time"] < printed["runs"][1]["start_time"]
    assert all(lookup.keys() >= LOOKUP_KEYS for lookup in printed["lookups"])
    assert [lookup["lookup"] for lookup in printed["lookups"]] == list(range(6))
    missed = printed["lookups"][3]
    assert missed["cache"] == "fxgraph" and missed["verdict"] == "key_changed"
    assert missed["changed"] == [FIELD]
    assert missed["baseline"] == {"lookup": 1} and missed["is_backward"] is False
    assert missed["root"] is False
    cause = next(cause for cause in printed["causes"] if cause["cause"] == missed["cause"])
    assert cause["fields"] == [FIELD]
    assert cause["misses"] == 2 and cause["time_lost_ns"] > 0
    assert "epilogue_fusion" in cause["advice"] and cause["changes"][0]["summary"] == "True -> False"
    assert printed["problems"] == []


def test_a_hit_has_no_verdict(run: Run, flip: Path) -> None:
    lookups = run("explain", "--json", flip).json["lookups"]
    hit = next(lookup for lookup in lookups if lookup["outcome"] == "hit")
    assert [hit[name] for name in ("verdict", "baseline", "cause", "root", "reason")] == [None] * 5
    assert hit["changed"] == []


def test_missing_details_come_with_how_to_record_them_once(run: Run, recording: Recording) -> None:
    out = run("explain", recording("2.15.0", "config_flip_fx") / "text").out
    assert out.count("cachescope record -- COMMAND") == 1 and "not explained: 1" in out


def test_one_key_is_explained_in_full(run: Run, flip: Path) -> None:
    assert run("explain", flip, "--key", "fhcz3").out.startswith("lookup 3, run 1")
    explained = run("explain", flip, "--lookup", 3, "--json").json["explanation"]
    assert explained["changes"][0]["before"] == "True" and explained["changes"][0]["after"] == "False"


def test_causes_beyond_the_limit_are_counted(run: Run, recording: Recording) -> None:
    out = run("explain", recording("2.13.0", "inputs"), "--causes", 1).out
    assert "more cause" in out and "\n2  " not in out


def test_the_baseline_can_be_chosen(run: Run, recording: Recording) -> None:
    scenario = recording("2.13.0", "three_changes")
    against_base = run("explain", "--json", "--baseline", 0, scenario).json["lookups"][-1]
    nearest = run("explain", "--json", "--baseline", "nearest", scenario).json["lookups"][-1]
    assert FIELD in against_base["changed"] and FIELD not in nearest["changed"]


@pytest.mark.parametrize(("kind", "baseline", "said"), [
    ("trace", "7", "auto, nearest, the number of a run (0 to 2), or a key"),
    ("trace", "fnothing", "auto, nearest, the number of a run (0 to 2), or a key"),
    # One that is misspelt is told what is near.
    ("trace", "nearst", "no baseline 'nearst'; near it: nearest; "),
    ("trace", "foo", "no baseline 'foo'; a baseline is "),
    # A directory has no run to compare with.
    ("cache", "0", "no run 0; "),
    ("cache", "0", "(none was read)"),
])  # fmt: skip
def test_a_missing_baseline_is_wrong_usage(kind: str, baseline: str, said: str, run: Run, flip: Path) -> None:
    done = run("explain", flip / kind, "--baseline", baseline)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("cachescope: no ") and said in done.err
    assert ("near it" in done.err) == (baseline == "nearst")


def test_a_cut_trace_is_read_as_far_as_it_goes_and_noted(run: Run, flip: Path, tmp_path: Path) -> None:
    whole = next((flip / "trace").iterdir()).read_bytes()
    (tmp_path / "cut.log").write_bytes(whole[: len(whole) * 2 // 3])
    done = run("explain", tmp_path)
    assert done.status == 0 and "problems: 0" not in done.out
    assert "cut.log" in done.out
    assert run("explain", "--strict", tmp_path).status == 1


@pytest.mark.parametrize(
    "scenario", ["config_flip", "graph_relu_tanh", "dynamic_guards", "four_graphs", "combined"]
)
def test_the_answer_fits_a_screen(recording: Recording, scenario: str) -> None:
    shown = on_screen(command("explain", recording("2.13.0", scenario)))
    assert shown.status == 0 and len(shown.rows) <= 23
    assert max(map(len, shown.rows)) <= 80
    # The progress bar is gone from the screen, and the cursor is back.
    assert any("lookups in" in row for row in shown.rows[:4])
    assert shown.sent.rfind("\x1b[?25h") > shown.sent.rfind("\x1b[?25l")


def test_colour_is_for_terminals_without_no_color(flip: Path) -> None:
    assert "\x1b[1m" in on_screen(command("explain", flip)).sent
    plain = on_screen(command("explain", flip), env=environment(NO_COLOR="1"))
    # The bar on standard error still moves; the answer has no codes.
    assert "\x1b[1m" not in plain.sent
    piped = in_pipe(command("explain", flip))
    assert "\x1b" not in piped.stdout + piped.stderr and piped.stderr == ""


def test_possible_false_hits_are_a_line_where_there_are(run: Run, flip: Path, recording: Recording) -> None:
    assert "false hits" not in run("explain", flip).out
    assert run("explain", flip, "--json").json["false_hits"] == []
    # Keys of 2.10 do not hold the number of threads, in which the runs of the tour differ.
    both = (recording("2.10.0", "cold_warm"), recording("2.13.0", "tour"))
    flat = run("explain", *both).flat
    assert "possible false hits: 2" in flat and "cpp_runtime_thread_count" in flat
    warned = run("explain", *both, "--json").json["false_hits"]
    assert [row["kind"] for row in warned] == ["missing_field"] * 2


def test_every_form_names_the_size(recording: Recording, run: Run, tmp_path: Path) -> None:
    trace = recording("2.13.0", "dynamic_guards") / "trace"
    scope = cachescope.read(trace)
    size = "x.size(0) is 5; the stored entry needs 11 or more"
    assert size in repr(scope.explain(2)) and size in scope.explain(2)._repr_html_()
    assert size in scope._repr_html_() and "Pad x.size(0) to 11 or more" in scope._repr_html_()
    assert run("explain", "--json", "--key", "2", trace).json["explanation"]["sizes"].startswith(size)
    assert size in run("explain", trace).flat
    run("report", trace, "--output", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert size in page and "Pad x.size(0) to 11 or more" in page


def test_equal_code_with_other_kernels_makes_no_field_needless(run: Run, directory: Directory) -> None:
    blocks = run("explain", directory("compile_flags") / "cache").flat.split("cache_key_tag")
    flag, tag = blocks
    assert "but kernels compiled from it differ: what changed does matter" in flag
    assert "and so are its compiled kernels: what changed was not needed for this graph" in tag


def test_json_lists_them(run: Run, recording: Recording) -> None:
    printed = run("explain", recording("2.13.0", "training") / "cache", "--json").json
    assert [miss["verdict"] for miss in printed["past_misses"]] == ["key_changed", "key_changed"]
