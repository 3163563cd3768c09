"""Commands whose lookups do not reach the recording, or not all of them: it says what it cannot know."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import command, environment
from tests.programs import ran

pytestmark = pytest.mark.sweep  # each starts processes
PROGRAM = Path(__file__).parent / "silent_program.py"


def recorded(folder: Path, *program: object, **variables: str) -> dict[str, Any]:
    # The trial compile takes seconds of each fresh cache, and nothing here is about it.
    folders = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"), "TMPDIR": str(folder)}
    env = environment(TORCHINDUCTOR_VEC_ISA_OK="1", **folders, **variables)
    arguments = command("record", "--json", "-o", folder / "runs", "--", sys.executable, *program)
    told: dict[str, Any] = json.loads(ran(arguments, env).stdout)
    return told


def outcomes(told: dict[str, Any]) -> list[tuple[str, str]]:
    return [(lookup["cache"], lookup["outcome"]) for lookup in told["lookups"]]


MISSES = [("aotautograd", "full_miss"), ("fxgraph", "full_miss")]


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["dictConfig", "child"])
def test_lookups_that_no_log_tells_of_are_seen_by_their_entries(tmp_path: Path, kind: str) -> None:
    told = recorded(tmp_path, PROGRAM, kind)
    assert told["lookups"] == []
    first, entries = told["recorded"]["not_recorded"]
    assert ("dictConfig" in first) == (kind == "dictConfig")
    assert ("environment of its own" in first) == (kind == "child")
    assert entries.startswith("2 entries came into ")
    # Now they hit, which leaves nothing behind.
    again = recorded(tmp_path, PROGRAM, kind)
    assert "Hits leave none" in again["recorded"]["not_recorded"][-1]


@pytest.mark.torch
def test_misses_of_a_child_are_not_taken_for_none_because_the_parent_is_recorded(tmp_path: Path) -> None:
    told = recorded(tmp_path, PROGRAM, "compiles too")
    assert outcomes(told) == MISSES
    (entries,) = told["recorded"]["not_recorded"]
    assert entries.startswith("2 entries came into ")


@pytest.mark.torch
@pytest.mark.parametrize(
    ("kind", "missing"),
    [("own TORCH_LOGS", "TORCH_LOGS"), ("disable", "logging.disable"), ("own TORCH_TRACE", "no trace")],
)
def test_one_of_two_logs_is_enough_and_the_other_is_named(tmp_path: Path, kind: str, missing: str) -> None:
    told = recorded(tmp_path, PROGRAM, kind)
    assert outcomes(told) == MISSES
    (note,) = told["recorded"]["not_recorded"]
    assert missing in note


@pytest.mark.torch
def test_nothing_compiled(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    notes = recorded(tmp_path, PROGRAM, "nothing compiled")["recorded"]["not_recorded"]
    # Not of torch's own default, which is not asked beside a directory that is given.
    assert "torch compiled nothing" in notes[0]
    (note,) = notes[1:]
    assert note.partition(" meanwhile")[0] == f"No entry of a graph came into {tmp_path / 'cache'}"
    notes = recorded(tmp_path, PROGRAM, "plain", TORCHDYNAMO_DISABLE="1")["recorded"]["not_recorded"]
    assert notes[0] == "nothing was recorded: TORCHDYNAMO_DISABLE=1 switches torch.compile off."


@pytest.mark.torch
def test_caches_off_are_no_silence(tmp_path: Path) -> None:
    told = recorded(tmp_path, PROGRAM, "plain", TORCHINDUCTOR_FORCE_DISABLE_CACHES="1")
    assert outcomes(told) == [("fxgraph", "disabled")] and told["recorded"]["not_recorded"] == []


def test_no_torch_at_all(tmp_path: Path) -> None:
    notes = recorded(tmp_path, "-c", "pass")["recorded"]["not_recorded"]
    assert len(notes) == 1 and "imported torch" in notes[0]


def test_entries_that_were_there_before_are_no_witness(tmp_path: Path) -> None:
    entry = tmp_path / "cache" / "aotautograd" / f"a{'b' * 51}" / "entry"
    entry.parent.mkdir(parents=True)
    entry.write_bytes(b"")
    notes = recorded(tmp_path, "-c", "pass")["recorded"]["not_recorded"]
    assert notes[1].startswith("No entry of a graph came into ")


def test_runs_before_are_not_taken_for_this_one(tmp_path: Path) -> None:
    """An empty run beside an older one that looked something up."""
    older = tmp_path / "runs" / "older"
    older.mkdir(parents=True)
    head = "I1120 15:31:59.512000 5049 torch/_inductor/codecache.py:854] [0/0]"
    (older / "torch.log").write_text(f"{head} fx graph cache miss for key {'f' * 52}\n")
    told = recorded(tmp_path, "-c", "pass")
    assert len(told["lookups"]) == 1 and told["recorded"]["runs"] == []
    assert told["recorded"]["not_recorded"]
