"""``cachescope compiles``: on a terminal, as JSON, hidden, hostile."""

import re
from pathlib import Path

import pytest

import cachescope
from cachescope.wording import duration
from tests.analysis.compiles.test_recorded_compiles import lines_of
from tests.cli.conftest import Run
from tests.conftest import Archive, Recording

pytestmark = pytest.mark.slow

PROGRAMS = Path(__file__).parents[1] / "data" / "record_programs.py"
BRANCHES = PROGRAMS.read_text().partition("def branch_on_size")[0].count("\n") + 1


@pytest.fixture(scope="module")
def trace(archive: Archive) -> Path:
    (found,) = archive("compiles/2.13.0").glob("*/trace")
    return found


def test_it_names_functions_guards_breaks_and_symbols(run: Run, trace: Path) -> None:
    done = run("compiles", trace)
    assert (done.status, done.err) == (0, "")
    limited, broken, symbol = lines_of("def limited", "print(", "return x.sin() + 1")
    for said in (
        "13 first compiles, 14 recompiles, 2 resumed after a graph break, 1 backward;",
        "the recompile limit was reached once, and torch did not compile",
        f"limited (compile_programs.py:{limited}): 7 recompiles; the recompile limit was reached once",
        "guard: text == … as in 8/0: text == ''",
        f"breaks, compile_programs.py:{broken}: Failed to trace builtin operator",
        f"s77 is x.size(0), 5 when it was compiled and 3 before, in sizes (compile_programs.py:{symbol})",
    ):
        assert said in done.flat


def test_it_says_what_the_guards_leave_of_a_symbol(run: Run, archive: Archive) -> None:
    text = run("compiles", archive("shapes/2.13.0") / "2.13.0" / "trace").flat
    guards = "s77 > 10 (shape_programs.py:27), s77 < 4097 (shape_programs.py:27)"
    assert f"within 11 to 4096, by its guards: {guards}" in text
    assert "torch fixed it to 12, at shape_programs.py:77" in text


def test_the_docs_show_what_is_printed(run: Run, trace: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "recompiles.md").read_text(encoding="utf-8")
    shown = page.split("```text\n", 1)[1].split("```", 1)[0]
    times = re.compile(r"\d[\d.]* m?s\b")
    assert times.sub("…", run("compiles", trace).out).startswith(times.sub("…", shown))


def test_json_has_the_frames(run: Run, trace: Path) -> None:
    printed, scope = run("compiles", "--json", trace).json, cachescope.read(trace)
    for name in ("runs", "compiles", "recompiles", "symbols"):
        assert len(printed[name]) == len(getattr(scope, name)) > 0
    assert printed["problems"] == []


def test_markdown_has_the_times(run: Run, trace: Path) -> None:
    taken = cachescope.read(trace).recompiles["time_taken_ns"].head(10)
    shown = run("compiles", trace, "--markdown").out
    assert re.findall(r"· (\S+ \w+)$", shown, re.M) == [*map(duration, taken)]


def test_a_compile_that_failed_is_said_to_have_failed(run: Run, recording: Recording) -> None:
    text = run("compiles", recording("2.13.0", "failed_codegen") / "trace").flat
    scope = cachescope.read(recording("2.13.0", "failed_codegen") / "trace")
    failed = scope.compiles["error"].notna().sum()
    told = scope.lookups.dropna(subset="compile_error")[["run", "compile_id"]].drop_duplicates()
    assert failed == len(told) and f"; {failed} failed" in text


def test_one_error_in_two_processes_is_two_failures(run: Run, recording: Recording, tmp_path: Path) -> None:
    traces = (recording("2.13.0", "failed_codegen") / "trace").iterdir()
    failed = next(trace for trace in map(Path.read_bytes, traces) if b"no code for this graph" in trace)
    (tmp_path / "first").write_bytes(failed)
    (tmp_path / "second").write_bytes(re.sub(rb"(?m)^(V\d+ [\d:.]+) \d+", rb"\1 77", failed))
    assert "2 of 2 compiles failed" in run("explain", tmp_path).out
    assert "2 failed" in (out := run("compiles", tmp_path).out) and "s of 2 runs: " in out


def test_a_size_with_other_guards_in_another_process_is_told_apart(run: Run, recording: Recording) -> None:
    text = run("compiles", recording("2.13.0", "dynamic_guards") / "trace").flat
    for said in (
        f"branch_on_size (record_programs.py:{BRANCHES}): 4 hits, 2 full misses, 2 guard misses; missed in compile 0/0",
        "within 11 or more, by its guards: s77 > 10 (record_programs.py:85)",
        "within 2 to 10, by its guards: s77 <= 10 (record_programs.py:85)",
    ):
        assert said in text
    assert text.count("in branch_on_size (record_programs.py:85); in 2 compiles") == 2
