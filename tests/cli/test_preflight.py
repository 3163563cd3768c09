"""``cachescope preflight`` on a pipe and on a screen: what is wrong usage, what cannot be read, and how it ends."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import cachescope
from tests.cli.conftest import command, environment, in_pipe, on_screen
from tests.programs import ran

NOTHING = "nothing was seen: no process of the command compiled with torch"
slow = pytest.mark.slow  # starts processes
compiles = [pytest.mark.slow, pytest.mark.torch]
COMPILED = "import torch; print('printed'); torch.compile(lambda x: x + 1)(torch.ones(3))"


def lines_of(text: str) -> list[str]:
    return text.strip().splitlines()


def test_a_block_does_not_begin_with_a_target_that_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("once upon a time\n")
    ran = []
    with pytest.raises(cachescope.SourceError), cachescope.preflight(against=tmp_path / "target"):
        ran.append(True)
    assert ran == []


@slow
@pytest.mark.parametrize("keeps", [False, True])
def test_a_command_that_fails_is_told_with_its_status(tmp_path: Path, keeps: bool) -> None:
    keep = ("--keep", tmp_path / "kept") if keeps else ()
    done = in_pipe(command("preflight", *keep, "--", sys.executable, "-c", "import sys; sys.exit(7)"))
    assert (done.returncode, done.stdout) == (1, "")
    first, second = lines_of(done.stderr)
    assert first.startswith("cachescope: the command failed (exit status 7)")
    assert NOTHING in second


@slow
def test_a_command_that_compiles_nothing_is_told_so(tmp_path: Path) -> None:
    done = in_pipe(command("preflight", "--", sys.executable, "-c", "print('printed')"))
    assert (done.returncode, done.stdout) == (1, "printed\n")
    (line,) = lines_of(done.stderr)
    assert NOTHING in line


@slow
def test_a_torch_that_is_not_as_it_is_known_ends_it_with_one_line(tmp_path: Path) -> None:
    """As torch 2.5, whose `torch.compiler` makes no mega-caches."""
    for name in ("torch", "torch/compiler"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import torch.compiler"
    done = in_pipe(command("preflight", "--", sys.executable, "-c", code))
    (line,) = lines_of(done.stderr)
    assert done.returncode == 2 and "this torch is not as a pre-flight knows it, 2.8 to 2.15: " in line


WAITS = "import os, time; print(os.getpid(), flush=True); time.sleep(300)"
# As torch does with what interrupts it while it compiles (torch/_dynamo/convert_frame.py), and many a training loop.
CATCHES = """
import os, sys, time
try:
    print(os.getpid(), flush=True)
    time.sleep(300)
except KeyboardInterrupt:
    sys.exit(1)
"""


@slow
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("program", [WAITS, CATCHES])
def test_what_stops_it_stops_the_command_too(name: str, program: str, tmp_path: Path) -> None:
    number = signal.Signals[name]
    with subprocess.Popen(
        command("preflight", "--", sys.executable, "-c", program),
        env=environment(TMPDIR=str(tmp_path)),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        child = int(process.stdout.readline())
        process.send_signal(number)
        assert process.wait(timeout=300) == 128 + number
        said = process.stderr.read()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    status = 1 if program == CATCHES and number == signal.SIGINT else 128 + number
    assert f"cachescope: the command was stopped by {name} (exit status {status})" in said
    assert "cachescope/" not in said
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def predicted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a pre-flight of a small program printed: as JSON in a pipe, and as lines on a screen."""
    folder = tmp_path_factory.mktemp("preflights")
    cache = environment(TORCHINDUCTOR_CACHE_DIR=str(folder / "cache"))
    program = ("--", sys.executable, "-c", COMPILED)
    keep = ("--keep", folder / "kept")
    done = ran(command("preflight", "--json", *keep, *program), cache, status=None)
    (folder / "json").write_text(json.dumps([done.returncode, done.stdout, done.stderr]))
    screen = on_screen(command("preflight", "--min-hit-rate", "0.5", *program), env=cache)
    (folder / "screen").write_text(json.dumps([screen.status, screen.rows]))
    return folder


class TestPredicted:
    pytestmark = compiles

    def test_json_is_all_that_it_prints(self, predicted: Path) -> None:
        status, out, err = json.loads((predicted / "json").read_text())
        found = json.loads(out)
        assert status == 0
        assert found["preflight"]["exit_status"] == 0
        assert (found["preflight"]["lookups"], found["preflight"]["would_miss"]) == (2, 2)
        assert "printed" in err.splitlines()
        assert not (predicted / "cache").exists()

    def test_on_a_screen_it_fits_and_a_bar_that_is_not_met_is_3(self, predicted: Path) -> None:
        status, rows = json.loads((predicted / "screen").read_text())
        assert status == 3
        shown = "\n".join(rows)
        assert "a real run would make 2 lookups: 0 would hit, 2 would miss" in shown
        assert f"checked against {predicted / 'cache'}" in shown.replace("\n", "")
        assert all(len(row) <= 80 for row in rows)

    def test_what_is_kept_answers_once_more(self, predicted: Path) -> None:
        (kept,) = (predicted / "kept").iterdir()
        assert set(cachescope.read(kept).runs["is_preflight"]) == {True}
