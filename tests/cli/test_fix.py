"""The command `fix`, as far as it needs no torch: how it is called, and how an answer is shown."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import pytest

from cachescope.analysis.fixes import Setting
from cachescope.answers.preflight import OUTCOMES, Fix, PreflightAnswer, Remaining
from cachescope.report.preflight import env_file, fix_lines, fix_object
from tests.cli.conftest import Run, command, environment
from tests.programs import ran

VARIABLE = Setting("variable", "OMP_NUM_THREADS", "2")
UNSET = Setting("variable", "TORCH_COMPILE_CACHE_KEY_TAG", None)
ATTRIBUTE = Setting("attribute", "torch._inductor.config.epilogue_fusion", "True")


def went(**counts: int) -> PreflightAnswer:
    all_counts = {**dict.fromkeys(OUTCOMES, 0), **counts}
    return PreflightAnswer(all_counts, 1, (), (), None, None, 0, cast("Any", None))


def found(*settings: Setting, remaining: tuple[Remaining, ...] = (), before: int = 0, after: int = 3) -> Fix:
    sides = (went(would_hit=hits, would_miss=3 - hits) for hits in (before, after))
    return Fix(*sides, settings, remaining, (), 4)


def lines(fix: Fix) -> list[str]:
    return [line.text for line in fix_lines(fix)]


def test_a_command_that_is_not_there(run: Run, tmp_path: Path) -> None:
    assert run("fix", tmp_path, "--", "no-such-command").status == 127


# Waits where the variable is not set, which `fix` tries, and catches what interrupts it.
STOPPED = """
import os, sys, time
import torch
torch.compile(lambda x: x + 1)(torch.ones(3))
with open(sys.argv[1], "a") as runs:
    print(os.getpid(), file=runs)
if sys.argv[2] not in os.environ:
    with open(sys.argv[1] + ".waits", "w"):
        pass
    try:
        time.sleep(300)
    except KeyboardInterrupt:
        sys.exit(int(sys.argv[3]))
"""


@pytest.mark.torch
@pytest.mark.parametrize(("name", "status"), [("SIGINT", 1), ("SIGINT", 0), ("SIGTERM", 0)])
def test_what_stops_it_ends_the_search(name: str, status: int, tmp_path: Path) -> None:
    """A pre-flight that was stopped says nothing of what it tried."""
    program, cache, runs = (tmp_path / one for one in ("stopped.py", "cache", "runs"))
    program.write_text(STOPPED)
    kept = tmp_path / "tmp"
    kept.mkdir()
    tag = "TORCH_COMPILE_CACHE_KEY_TAG"
    variables = environment(TORCHINDUCTOR_CACHE_DIR=str(cache), TMPDIR=str(kept))
    words = [sys.executable, str(program), str(runs)]
    ran([*words, "PATH", "0"], variables)
    runs.unlink()
    arguments = command("fix", cache, "--", *words, tag, str(status))
    number = signal.Signals[name]
    with subprocess.Popen(
        arguments, env=variables | {tag: "other"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        waits = Path(f"{runs}.waits")
        while not waits.exists():
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(number)
        out, said = process.communicate(timeout=300)
    assert process.returncode == 128 + number
    assert out == ""
    _, second = map(int, runs.read_text().split())
    with pytest.raises(ProcessLookupError):
        os.kill(second, 0)
    assert [line for line in said.splitlines() if not line.startswith("cachescope: pre-flight ")] == []
    assert [one for one in kept.iterdir() if not one.name.startswith("torchinductor_")] == []


def test_settings_are_shown_as_they_are_written() -> None:
    shown = lines(found(VARIABLE, UNSET, ATTRIBUTE))
    assert shown[0] == "with 3 changes, 3 of 3 lookups would hit"
    assert [text[3:] for text in shown if text[:1].isdigit()] == [
        "export OMP_NUM_THREADS=2",
        "unset TORCH_COMPILE_CACHE_KEY_TAG",
        "torch._inductor.config.epilogue_fusion = True",
    ]
    assert "each is needed" in shown[-1]


def test_what_was_not_tried_is_no_fix() -> None:
    dtype = Remaining("example_inputs[0] dtype", 2, "Cast it.", False)
    remaining = (dtype, Remaining("torch_version", 1, "?", True))
    shown = lines(found(remaining=remaining, after=0))
    assert shown[0] == "nothing was found that could be set: 0 of 3 lookups would hit"
    assert "Cast it." in shown
    assert any("nothing that can be set helps" in text for text in shown)
    assert fix_object(found(remaining=remaining, after=0))["not_fixed"][1]["nothing_helps"]


def test_nothing_to_fix() -> None:
    assert lines(found(before=3)) == ["nothing to fix: 3 of 3 lookups would hit"]
    # What no key can be made of, or is not known, is not as it should be.
    for counts, said in (({"would_bypass": 2}, ""), ({"not_known": 2}, ", 2 not known")):
        as_it_is = went(would_hit=1, **counts)
        shown = lines(Fix(as_it_is, as_it_is, (), (), (), 1))
        assert shown == [f"nothing was found that could be set: 1 of 3 lookups would hit{said}"]


def test_the_file_of_variables() -> None:
    lines_of_two = Setting("variable", "TAG", "a\nPATH=/tmp")
    assert env_file(found(VARIABLE, UNSET, ATTRIBUTE, lines_of_two)).split("\n")[1:] == [
        "OMP_NUM_THREADS=2",
        "# unset TORCH_COMPILE_CACHE_KEY_TAG",
        "# TAG has several lines, which no such file can hold",
        "",
    ]
