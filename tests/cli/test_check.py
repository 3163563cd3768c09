"""``cachescope check``: its exit statuses, its formats, and what is wrong usage."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

import cachescope
from tests.cli.conftest import Run, command, in_pipe
from tests.conftest import Recording

pytestmark = pytest.mark.slow  # each test starts processes

FUSION = "inductor_config[epilogue_fusion]"


@pytest.fixture
def flip(recording: Recording) -> Path:
    return recording("2.13.0", "config_flip") / "trace"


@pytest.fixture
def saved(flip: Path, tmp_path: Path) -> Path:
    cachescope.read(flip).save(tmp_path / "saved")
    return tmp_path / "saved"


@pytest.mark.parametrize(("source", "bars", "status", "said"), [
    ("trace", ["--min-hit-rate", "0.3", "--max-time-lost", "30s", "--against", "saved"], 0,
     ["check passed; 6 lookups in 3 runs"]),
    ("trace", ["--min-hit-rate", "0.9", "--max-time-lost", "30s"], 3,
     ["1 of 2 bars not met", f"{FUSION} True -> False: 2 misses in 1 run, 1.6 s lost", "First lookups count as misses"]),
    # Nothing was looked up.
    ("cache", ["--min-hit-rate", "0"], 3, ["nothing to check"]),
])  # fmt: skip
def test_the_exit_status_says_whether_every_bar_is_met(
    source: str, bars: list[str], status: int, said: list[str], flip: Path, saved: Path
) -> None:
    done = in_pipe(command("check", flip.with_name(source), *bars), cwd=saved.parent)
    assert (done.returncode, done.stderr) == (status, "")
    flat = " ".join(done.stdout.split())
    assert [text for text in said if text not in flat] == []


@pytest.mark.parametrize(
    ("given", "status"),
    [("16s", 0), ("15.4", 0), ("15300ms", 3), ("0.3min", 0), ("0.2min", 3), (".5 min", 0), ("0", 3)],
)
def test_times_are_taken_in_several_units(given: str, status: int, run: Run, flip: Path) -> None:
    # 15.362 s were lost.
    assert run("check", flip, "--max-time-lost", given).status == status


def test_every_format_says_the_same(run: Run, flip: Path) -> None:
    bars = ("--min-hit-rate", 0.9, "--max-time-lost", 30)
    forms = ("text", "json", "markdown", "github", "junit")
    done = {form: run("check", flip, *bars, "--format", form) for form in forms}
    assert {outcome.status for outcome in done.values()} == {3}
    printed = json.loads(done["json"].out)
    assert [bar["passed"] for bar in printed["bars"]] == [False, True]
    assert run("check", flip, *bars, "--json").json == printed
    errors = [line for line in done["github"].out.splitlines() if line.startswith("::error ")]
    assert len(errors) == 1 and "%0A" in errors[0]
    assert [len(case) for case in ElementTree.fromstring(done["junit"].out).iter("testcase")] == [1, 0]
    for cause in printed["causes"]:
        for outcome in done.values():
            assert cause["text"].split(":")[0] in outcome.out.replace("&gt;", ">").replace("\\", "")
