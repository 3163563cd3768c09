"""A thousand lookups of real models, run here and held against torch's counters and against what was done.

`make models` runs it, in half an hour to an hour of two cores; nothing else does. It says what it held.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from models.holding import WAYS, hold
from models.sessions import SESSIONS
from models.tally import tally

pytestmark = [pytest.mark.models, pytest.mark.slow, pytest.mark.timeout(4 * 3_600)]
RECORDER = Path(__file__).with_name("record_models.py")
LEAST_LOOKUPS = 1000


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sessions, run now; those of CACHESCOPE_MODELS_FOLDER are taken as they are, and others added to it."""
    kept = os.environ.get("CACHESCOPE_MODELS_FOLDER")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("models")
    subprocess.run([sys.executable, str(RECORDER), str(folder)], check=True)
    return folder


def test_lookups_of_models_are_told_as_they_were(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = [hold(recorded / session.name, way) for session in SESSIONS for way in WAYS]
    with capsys.disabled():
        print("\n" + tally(held))
    assert sum(one.lookups for one in held if one.way == "all") >= LEAST_LOOKUPS
    assert [f"{one.session}, {one.way}: {fault}" for one in held for fault in one.faults] == []
