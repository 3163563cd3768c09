"""The README holds: its output is what the command prints, its code runs, its commands are there."""

import contextlib
import io
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from make_readme import OUTPUT
from outputs import output_of

import cachescope
from cachescope.cli import COMMANDS, main
from tests.conftest import Recording
from tests.docs.test_lock_page import status_of
from tests.programs import ran

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
CI_PAGE = (ROOT / "docs" / "how-to" / "ci.md").read_text()


def section(title: str) -> str:
    (text,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", README, re.DOTALL | re.MULTILINE)
    return text


OUTPUTS = [(block["command"], block["lines"] or "", block["shown"]) for block in OUTPUT.finditer(README)]


def test_it_is_short() -> None:
    assert len(README.splitlines()) < 175
    # One at the top, and one for each question.
    assert len(OUTPUTS) == README.count("```console") == 7


@pytest.mark.slow
@pytest.mark.parametrize(("command", "lines", "shown"), OUTPUTS, ids=[command for command, *_ in OUTPUTS])
def test_the_output_it_shows_is_what_the_command_prints(command: str, lines: str, shown: str) -> None:
    assert output_of(command, lines) == shown


def test_the_six_lines_run_and_print() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(code.strip().splitlines()) == 6
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert "48 lookups in 6 runs" in printed.getvalue()


def test_the_line_that_answers_each_of_the_six_questions_runs() -> None:
    questions = re.split(r"^\*\*\d\. ", section("Six questions"), flags=re.MULTILINE)[1:]
    assert len(questions) == 6
    lines = {code for one in questions for code in re.findall(r"`((?:scope\.|cachescope\.)[^`]*)`", one)}
    scope = cachescope.read(cachescope.sample("config_flip"))
    on_one_scope = {line for line in lines if line.startswith("scope.")}
    assert len(on_one_scope) == 8
    for line in on_one_scope:
        assert eval(line, {"scope": scope}) is not None, line
    assert lines - on_one_scope == {'cachescope.will_hit("/baked/cache", "host.json")'}


def test_every_command_is_named_and_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    named = set(re.findall(r"(?:`|^    |\$ )cachescope ([a-z][a-z-]+)", README, re.MULTILINE)) | {"record"}
    assert named == set(COMMANDS)
    for command in sorted(named):
        assert main([command, "--help"]) == 0 and command in capsys.readouterr().out


def test_what_it_links_to_in_the_docs_is_there() -> None:
    links = re.findall(r"\]\(https://cachescope\.github\.io/cachescope/([^)#]*)", README)
    places = [link.removesuffix(".html") for link in links if link]
    assert len(places) > 5
    # By docs/make_gallery.py, docs/make_try.py and docs/upstream_page.py.
    made = {"made/gallery", "try/", "made/reference/upstream"}
    for place in places:
        assert place in made or (ROOT / "docs" / f"{place}.md").is_file(), place


def test_its_links_are_absolute_as_they_are_followed_where_no_file_lies_beside_it() -> None:
    assert [link for link in re.findall(r"\]\(([^)]*)\)", README) if not link.startswith("https://")] == []


def test_every_make_target_it_names_is_there() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make ([a-z]+)", README)) <= targets


def workflow_commands() -> list[str]:
    (text,) = re.findall(r"```yaml\n(.*?)```", CI_PAGE, re.DOTALL)
    (job,) = yaml.safe_load(text)["jobs"].values()
    return [step["run"] for step in job["steps"] if "run" in step]


def test_the_workflow_records_a_second_run_and_checks_it_with_its_cache() -> None:
    *_, first, record, check, comment = map(shlex.split, workflow_commands())
    assert record[:2] == ["cachescope", "record"] and check[:2] == ["cachescope", "check"]
    assert record[record.index("--") + 1 :] == first
    assert check[2] == comment[2] == record[record.index("--output") + 1]


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "status"), [([2], 0), ([0, 1, 2], 3)])
def test_the_workflows_check_passes_a_warm_run_only(runs: list[int], status: int, tmp_path: Path) -> None:
    samples = ROOT / "cachescope" / "samples"
    (tmp_path / "warm").mkdir()
    sources = cachescope.read(samples / "config_flip" / "trace").runs["source"]
    for run in runs:
        shutil.copy(sources[run], tmp_path / "warm")
    shutil.copytree(samples / "entry_truncated" / "cache", tmp_path / "inductor-cache")
    *_, check, comment = (shlex.split(one.split("\n")[0].partition(">")[0]) for one in workflow_commands())
    options = {"cwd": tmp_path, "variables": os.environ | {"PYTHONPATH": str(ROOT)}}
    checked = ran([sys.executable, "-m", *check], status=status, **options)
    assert checked.stdout.count("::error ") == (status == 3)
    assert ran([sys.executable, "-m", *comment], **options).stdout.startswith("### ")


@pytest.mark.slow
def test_the_lines_that_lock_a_cache_and_verify_it_run(recording: Recording, tmp_path: Path) -> None:
    made = recording("2.13.0", "training")
    shutil.copytree(made / "cache", tmp_path / "inductor-cache")
    shutil.copytree(made / "trace", tmp_path / "cachescope-runs")
    lines = re.findall(r"(?m)^    (cachescope (?:lock|verify) .*)", section("Before anyone compiles"))
    lock, verify = (shlex.split(line, comments=True) for line in lines)

    assert (status_of(lock, tmp_path), status_of(verify, tmp_path)) == (0, 0)
    next((tmp_path / "inductor-cache" / "fxgraph").rglob("*/f*/*")).write_bytes(b"altered")
    assert status_of(verify, tmp_path) == 3
