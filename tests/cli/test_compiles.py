"""``cachescope compiles``: on a terminal, as JSON, hidden, hostile."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

import pytest

import cachescope
from tests.analysis.compiles.test_recorded_compiles import RECORDED, lines_of
from tests.cli.conftest import Run
from tests.conftest import Recording
from tests.output_gates import acting_in, strict_json
from tests.planted import SHORT

pytestmark = pytest.mark.slow

PROGRAMS = Path(__file__).parents[1] / "data" / "record_programs.py"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiles")
    with tarfile.open(next(path for path in RECORDED if path.name.startswith("2.13"))) as packed:
        packed.extractall(folder, filter="data")
    (found,) = folder.glob("*/trace")
    return found


def test_it_names_functions_guards_breaks_and_symbols(run: Run, trace: Path) -> None:
    done = run("compiles", trace)
    assert (done.status, done.err) == (0, "")
    text = " ".join(done.out.split())
    assert "13 first compiles, 14 recompiles, 2 resumed after a graph break, 1 backward;" in text
    assert "the recompile limit was reached once, and torch did not compile" in text
    limited, broken, symbol = lines_of("def limited", "print(", "return x.sin() + 1")
    assert (
        f"limited (compile_programs.py:{limited}): 7 recompiles; the recompile limit was reached once" in text
    )
    assert "guard: text == … as in 8/0: text == ''" in text
    assert f"breaks, compile_programs.py:{broken}: Failed to trace builtin operator" in text
    assert (
        f"s77 is L['x'].size()[0], 5 when it was compiled and 3 before, in sizes (compile_programs.py:{symbol})"
        in text
    )


def test_it_says_what_the_guards_leave_of_a_symbol(run: Run, tmp_path: Path) -> None:
    with tarfile.open(Path(__file__).parents[1] / "data" / "shapes" / "2.13.0.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    text = " ".join(run("compiles", tmp_path / "2.13.0" / "trace").out.split())
    assert (
        "within 11 to 4096, by its guards: s77 > 10 (shape_programs.py:27), s77 < 4097 (shape_programs.py:27)"
        in text
    )
    assert "torch fixed it to 12, at shape_programs.py:77" in text


def test_the_docs_show_what_is_printed(run: Run, trace: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "recompiles.md").read_text(encoding="utf-8")
    shown = page.split("```text\n", 1)[1].split("```", 1)[0]
    times = re.compile(r"\d[\d.]* m?s\b")
    assert times.sub("…", run("compiles", trace).out).startswith(times.sub("…", shown))


def test_json_has_the_frames(run: Run, trace: Path) -> None:
    printed, scope = strict_json(run("compiles", "--json", trace).out), cachescope.read(trace)
    for name in ("runs", "compiles", "recompiles", "symbols"):
        assert len(printed[name]) == len(getattr(scope, name)) > 0
    assert printed["problems"] == []


def test_where_no_trace_is_there_it_says_where_compiles_are(run: Run, recording: Recording) -> None:
    done = run("compiles", recording("2.13.0", "training") / "text")
    assert done.status == 0
    assert "TORCH_TRACE" in done.out


def test_what_a_program_calls_its_things_does_nothing_and_can_be_hidden(
    run: Run, trace: Path, tmp_path: Path
) -> None:
    (log,) = trace.iterdir()
    data = log.read_bytes()
    planted = [*SHORT, "acme_secret_function"]
    names = (
        b"whole_number",
        b"limited",
        b"guarded",
        b"grad_mode",
        b"trained",
        b"breaks",
        b"Failed to trace builtin",
    )
    for name, text in zip(names, reversed(planted), strict=False):
        data = data.replace(name, json.dumps(text)[1:-1].encode())
    (tmp_path / "one.log").write_bytes(data)
    for options in ([], ["--json"], ["--redact"], ["--redact", "--json"]):
        done = run("compiles", *options, tmp_path)
        assert done.status == 0
        assert acting_in(done.out) == []
        assert ("acme_secret_function" in done.out) == ("--redact" not in options)


def test_a_trace_that_is_gone_is_a_problem(trace: Path, tmp_path: Path) -> None:
    (log,) = trace.iterdir()
    (copy := tmp_path / "trace.log").write_bytes(log.read_bytes())
    scope = cachescope.read(copy)
    copy.unlink()
    assert scope.compiles.empty
    assert scope.compile_problems["kind"].tolist() == ["missing"]


def test_a_saved_scope_keeps_its_compiles(trace: Path, tmp_path: Path) -> None:
    scope = cachescope.read(trace)
    scope.save(tmp_path / "saved")
    again = cachescope.read(tmp_path / "saved")
    for name in ("compiles", "symbols", "recompiles"):
        assert getattr(again, name).equals(getattr(scope, name)), name


def test_a_compile_that_failed_is_said_to_have_failed(run: Run, recording: Recording) -> None:
    text = " ".join(run("compiles", recording("2.13.0", "failed_codegen") / "trace").out.split())
    scope = cachescope.read(recording("2.13.0", "failed_codegen") / "trace")
    failed = scope.compiles["error"].notna().sum()
    told = scope.lookups.dropna(subset="compile_error")[["run", "compile_id"]].drop_duplicates()
    assert failed == len(told)
    assert f"; {failed} failed" in text


def test_a_compile_in_which_the_process_was_killed_has_no_end(run: Run, recording: Recording) -> None:
    text = " ".join(run("compiles", recording("2.13.0", "killed_compiling") / "trace").out.split())
    assert "; 1 without an end in the log" in text


def test_it_says_what_each_function_looked_up(run: Run, recording: Recording) -> None:
    text = " ".join(run("compiles", recording("2.13.0", "dynamic_guards") / "trace").out.split())
    before, _ = PROGRAMS.read_text().split("def branch_on_size")
    line = before.count("\n") + 1
    assert (
        f"branch_on_size (record_programs.py:{line}): 4 hits, 2 full misses, 2 guard misses; missed in compile 0/0"
        in text
    )


def test_a_size_with_other_guards_in_another_process_is_told_apart(run: Run, recording: Recording) -> None:
    text = " ".join(run("compiles", recording("2.13.0", "dynamic_guards") / "trace").out.split())
    assert "within 11 or more, by its guards: s77 > 10 (record_programs.py:85)" in text
    assert "within 2 to 10, by its guards: s77 <= 10 (record_programs.py:85)" in text
    assert text.count("in branch_on_size (record_programs.py:85); in 2 compiles") == 2
