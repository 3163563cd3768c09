"""The frame phases against a plain replay of the events, on every recorded trace."""

from pathlib import Path

import pytest

from cachescope.analysis.phases.frame import NOT_NAMED
from cachescope.analysis.phases.names import REST
from tests.analysis.phases.replay import events_of, replayed, traces_of
from tests.conftest import RECORDINGS, Archive, Recording
from tests.readings import read_once
from tests.recordings import Recorded

# Of real models.
ARCHIVES = sorted(
    f"{kind}/{path.name.removesuffix('.tar.xz')}"
    for kind in ("models", "starts")
    for path in (RECORDINGS.parent / kind).glob("*.tar.xz")
)
# Threads of a pool write their times a little later than they take them.
SLACK_NS = 2_000_000


def hold(folder: Path) -> int:
    """Hold each trace of a recording against its replay, and return how many there are."""
    held = 0
    for path, trace in traces_of(folder):
        scope = read_once(path)
        phases = scope.phases
        assert scope.phase_problems.empty
        plain = replayed(events_of(trace))
        by_name = phases.groupby("event")
        assert by_name["count"].sum().to_dict() == plain.counts
        assert by_name["time_ns"].sum().to_dict() == pytest.approx(
            {name: us * 1000 for name, us in plain.open_us.items()}, rel=0.005, abs=SLACK_NS
        )
        assert phases["self_time_ns"].sum() == pytest.approx(plain.roots_us * 1000, rel=0.01)
        assert (phases["self_time_ns"] <= phases["time_ns"]).all()
        assert not phases["phase"].str.startswith(NOT_NAMED).any()
        if not scope.runs["failed_compiles"].map(len).any():
            # What torch does about an exception is in no event.
            assert (
                phases["self_time_ns"][phases["phase"] == REST].sum() <= 0.05 * phases["self_time_ns"].sum()
            )
        # Lookups and events name compiles alike, but for attempts after the first, which events do not name.
        places = set(zip(phases["compile_id"], phases["segment"], strict=True))
        is_later = scope.lookups["compile_id"].str.contains("_", regex=False)
        first, later = scope.lookups[~is_later], scope.lookups[is_later]
        assert set(zip(first["compile_id"], first["segment"], strict=True)) <= places
        assert {name.partition("_")[0] for name in later["compile_id"]} <= {name for name, _ in places}
        held += 1
    return held


@pytest.mark.parametrize(("version", "name"), [
    ("2.6.0", "training"), ("2.10.0", "config_flip"), ("2.13.0", "training"),
    ("2.13.0", "killed_compiling"), ("2.15.0", "cold_warm"),
])  # fmt: skip
def test_phases_are_what_a_plain_replay_says(version: str, name: str, recording: Recording) -> None:
    assert hold(recording(version, name))


@pytest.mark.sweep
@pytest.mark.parametrize("name", ARCHIVES)
def test_phases_of_models_are_what_a_plain_replay_says(name: str, archive: Archive) -> None:
    assert hold(archive(name))


def check_phases_are_what_a_plain_replay_says(recorded: Recorded) -> None:
    assert hold(recorded.folder)
