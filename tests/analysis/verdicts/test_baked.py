"""A log and a directory that its run did not look in: did that hold the key? Torch wrote both sides in the recording."""

import os
import shutil
from pathlib import Path

import pytest

import cachescope
from tests.conftest import Recording
from tests.made import CODE, fx, run, scope_of


@pytest.fixture
def directories(recording: Recording, tmp_path: Path) -> Path:
    """The second of three runs compiled for ``cache_b`` what the first had stored in ``cache``."""
    return shutil.copytree(recording("2.13.0", "other_directory"), tmp_path / "recorded")


def _second(directories: Path, kind: str) -> Path:
    pid = cachescope.read(directories / "text" / "01_other.log").runs["pid"][0]
    if kind == "text":
        return directories / "text" / "01_other.log"
    return next(
        log for log in (directories / "trace").iterdir() if cachescope.read(log).runs["pid"][0] == pid
    )


def _told(log: Path, directory: Path) -> set[tuple[str, str, str]]:
    misses = cachescope.read(log, directory).misses
    assert len(misses) == 2
    return {*zip(misses["verdict"], misses["kind"], misses["evidence"], strict=True)}


def test_a_key_that_another_compile_had_stored_elsewhere_was_avoidable(directories: Path) -> None:
    trace = _second(directories, "trace")
    assert _told(trace, directories / "cache") == {("entry_unavailable", "another directory", "inferred")}
    # A copy of the run's own directory, in another place than torch named, holds what this compile made.
    assert _told(trace, directories / "cache_b") == {("first_lookup", "", "inferred")}


def test_of_a_copy_made_later_it_is_not_known(directories: Path) -> None:
    """A copy has the times of the copy: neither that the key was there before, nor that it was not, is told."""
    for path in (directories / "cache").rglob("*"):
        os.utime(path)
    found = _told(_second(directories, "trace"), directories / "cache")
    assert found == {("first_lookup", "not known", "not_known")}


def test_a_text_log_has_no_times_of_compiles(directories: Path) -> None:
    log = _second(directories, "text")
    assert _told(log, directories / "cache") == {("first_lookup", "not known", "not_known")}
    assert _told(log, directories / "cache_b") == {("first_lookup", "", "inferred")}


def test_directories_are_those_of_the_lookups_where_runs_ran_at_once() -> None:
    """Lookups are numbered by run, and happened in another order."""
    keys = [{"gm": CODE, "inductor_config[epilogue_fusion]": value} for value in ("True", "False")]
    other = {"gm": f"{CODE}9"}
    scope = scope_of(
        run(fx("f8", details=other, at=0), fx("f0", details=keys[0], at=50), cache_dir="/a"),
        run(fx("f9", details={"gm": f"{CODE}8"}, at=10), cache_dir="/b"),
        run(fx("f1", details=keys[1], at=90), cache_dir="/a"),
    )
    assert "another directory" not in str(scope.explain("f1"))
