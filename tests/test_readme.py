"""The README tells the truth: its output is what the command prints, its code runs, its commands are there."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from make_readme import FRAMES, OUTPUT, frames_section, output_of

import cachescope
from cachescope.cli import COMMANDS, main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def section(title: str) -> str:
    (text,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", README, re.DOTALL | re.MULTILINE)
    return text


OUTPUTS = [(block["command"], block["shown"]) for block in OUTPUT.finditer(README)]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "shown"), OUTPUTS, ids=[command for command, _ in OUTPUTS])
def test_the_output_it_shows_is_what_the_command_prints(command: str, shown: str) -> None:
    assert output_of(command) == shown


def test_the_frames_it_lists_are_those_of_describe() -> None:
    assert FRAMES.findall(README) == [frames_section()]


def test_the_six_lines_run_and_print() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(code.strip().splitlines()) == 6
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert "48 lookups in 6 runs" in printed.getvalue()


def test_the_line_that_answers_each_of_the_six_questions_runs() -> None:
    rows = re.findall(
        r"^\|[^|]*\|(?P<python>[^|]*)\|[^|]*\|$", section("Six questions, one line each"), re.MULTILINE
    )
    lines = [code for row in rows for code in re.findall("`(.*?)`", row)]
    scope = cachescope.read(cachescope.sample("config_flip"))
    on_one_scope = [line for line in lines if line.startswith("scope.")]
    for line in on_one_scope:
        assert eval(line, {"scope": scope}) is not None, line
    assert set(lines) - set(on_one_scope) == {'cachescope.will_hit("/baked/cache", "host.json")'}
    assert len(rows) == 8  # six, the head and the line below it


def test_every_command_is_named_and_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    named = set(re.findall(r"(?:`|^    |run: )cachescope ([a-z][a-z-]+)", README, re.MULTILINE))
    assert named == set(COMMANDS)
    for command in sorted(named):
        assert main([command, "--help"]) == 0
        assert command in capsys.readouterr().out


def test_the_commands_that_read_take_the_options_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    (named,) = re.findall(r"^Those that read what you name take (.*)\.$", README, re.MULTILINE)
    options = re.findall(r"`(--[a-z-]+)", named)
    assert len(options) == 3
    for command in COMMANDS:
        main([command, "--help"])
        there = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) & set(options)
        reads = command not in ("capture", "record", "cache", "demo", "audit")
        assert there == (set(options) if reads else set()), command


def test_the_notebooks_are_listed_by_their_questions() -> None:
    listed = re.findall(r"^\| \[(.*?)\]\(notebooks/(.*?)\)", section("Nine notebooks"), re.MULTILINE)
    titles = {
        path.name: "".join(json.loads(path.read_text())["cells"][0]["source"])
        .split("\n")[0]
        .removeprefix("# ")
        for path in (ROOT / "notebooks").glob("*.ipynb")
    }
    assert {name: title for title, name in listed} == titles


def test_every_make_target_it_names_is_there() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make ([a-z]+)", README)) <= targets


def test_the_verdicts_are_those_of_the_package() -> None:
    table = re.findall(r"^\| `(\w+)` \|", section("Verdicts"), re.MULTILINE)
    assert table == cachescope.describe("verdicts")["verdict"].tolist()


def workflow_commands() -> list[str]:
    (text,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    (job,) = yaml.safe_load(text)["jobs"].values()
    return [step["run"] for step in job["steps"] if "run" in step]


def test_the_workflow_records_a_second_run_and_checks_it_with_its_cache() -> None:
    *_, first, record, check = map(shlex.split, workflow_commands())
    assert record[:2] == ["cachescope", "record"] and check[:2] == ["cachescope", "check"]
    assert record[record.index("--") + 1 :] == first
    assert check[2] == record[record.index("--output") + 1]


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "status"), [([2], 0), ([0, 1, 2], 3)])
def test_the_check_of_the_workflow_passes_a_warm_run_only(
    runs: list[int], status: int, tmp_path: Path
) -> None:
    samples = ROOT / "cachescope" / "samples"
    (tmp_path / "warm").mkdir()
    sources = cachescope.read(samples / "config_flip" / "trace").runs["source"]
    for run in runs:
        shutil.copy(sources[run], tmp_path / "warm")
    shutil.copytree(samples / "entry_truncated" / "cache", tmp_path / "inductor-cache")
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(workflow_commands()[-1])],
        cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    assert done.stdout.count("::error ") == (status == 3)
