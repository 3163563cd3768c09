"""A log and a directory that its run did not look in: did that hold the key? Torch wrote both sides in the recording."""

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.verdict_kinds import ELSEWHERE
from tests.conftest import Recording
from tests.made import CODE, aot, entry, fx, miss_rows, run, scope_of
from tests.recordings import Recorded
from tests.wild.damaged_files import caches
from tests.wild.damaged_logs import logs


@pytest.fixture
def directories(recording: Recording, tmp_path: Path) -> Path:
    """The second of three runs compiled for ``cache_b`` what the first had stored in ``cache``."""
    return shutil.copytree(recording("2.13.0", "other_directory"), tmp_path / "recorded")


def _second(directories: Path, kind: str) -> Path:
    pid = cachescope.read(directories / "text" / "01_other.log").runs["pid"][0]
    if kind == "text":
        return directories / "text" / "01_other.log"
    traces = (directories / "trace").iterdir()
    return next(log for log in traces if cachescope.read(log).runs["pid"][0] == pid)


def _told(log: Path, directory: Path) -> set[tuple[str, str, str]]:
    misses = cachescope.read(log, directory).misses
    assert len(misses) == 2
    return {*zip(misses["verdict"], misses["kind"], misses["evidence"], strict=True)}


def test_a_key_that_another_compile_had_stored_elsewhere_was_avoidable(directories: Path) -> None:
    trace = _second(directories, "trace")
    assert _told(trace, directories / "cache") == {("entry_unavailable", "another directory", "inferred")}
    # A copy of the run's own directory, in another place than torch named, holds what this compile made.
    assert _told(trace, directories / "cache_b") == {("first_lookup", "", "inferred")}


@pytest.mark.parametrize("time", [None, (1_700_000_000, 1_700_000_000)], ids=["of the copy", "a fixed time"])
def test_of_a_copy_made_later_it_is_not_known(time: tuple[int, int] | None, directories: Path) -> None:
    """A copy has the times of the copy: neither that the key was there before, nor that it was not, is told."""
    for path in (directories / "cache").rglob("*"):
        os.utime(path, time)
    found = _told(_second(directories, "trace"), directories / "cache")
    assert found == {("first_lookup", "perhaps in another directory", "not_known")}


def test_a_text_log_names_the_files_that_its_compiles_stored(directories: Path, tmp_path: Path) -> None:
    """It has no times of compiles: what it does not name, another compile stored, and what no name tells may be a later copy."""
    log, own = _second(directories, "text"), directories / "cache_b"
    assert _told(log, directories / "cache") == {("entry_unavailable", "another directory", "inferred")}
    assert _told(log, own) == {("first_lookup", "", "inferred")}
    later = shutil.copytree(own, tmp_path / "copy", copy_function=shutil.copyfile)
    assert _told(log, later) == {("first_lookup", "", "inferred")}
    # Without AOTAutograd's lines.
    nameless = tmp_path / "nameless.log"
    lines = log.read_text().splitlines(keepends=True)
    nameless.write_text("".join(line for line in lines if "torch/_inductor/codecache.py" in line))
    shutil.copystat(log, nameless)
    for directory, kind in ((own, ""), (later, ELSEWHERE), (directories / "cache", ELSEWHERE)):
        assert cachescope.read(nameless, directory).misses["kind"].tolist() == [kind]


@pytest.mark.parametrize("kind", ["trace", "text"])
def test_what_lies_there_now_is_not_what_the_run_looked_in(kind: str, directories: Path) -> None:
    """A volume is mounted over a baked directory, or it was cleaned since: what the run stored does not lie there, and the key does."""
    log, baked = _second(directories, kind), directories / "cache"
    own = str(cachescope.read(log).runs["cache_dir"][0])
    log.write_bytes(log.read_bytes().replace(own.encode(), str(baked).encode()))
    assert cachescope.read(log).runs["cache_dir"].tolist() == [str(baked)]
    assert _told(log, baked) == {("first_lookup", "perhaps in another directory", "not_known")}
    # It holds both.
    shutil.copytree(directories / "cache_b", baked, dirs_exist_ok=True)
    assert _told(log, baked) == {("first_lookup", "", "inferred")}


@pytest.mark.parametrize(("stored", "told"), [
    ({}, "another directory"),
    # Whether they would have held is not known.
    ({"guards_expr": "s0 < 9"}, "perhaps in another directory"),
    # Of a directory that holds what this run compiled it is a copy; yet not what it stored under this key.
    ({"root": "/copy"}, "perhaps in another directory"),
    ({"root": "/a"}, "perhaps in another directory"),
])  # fmt: skip
def test_what_an_entry_elsewhere_proves(stored: dict[str, str], told: str) -> None:
    key, own = {"gm": CODE}, {"gm": f"{CODE}8"}
    scope = scope_of(
        run(fx("f1", details=key, at=50, took=3), fx("f2", details=own, at=60, took=4), cache_dir="/a"),
        entries=[
            entry("fxgraph", "f1", key, at=10, time_taken_ns=5 * 10**9, **{"root": "/baked", **stored}),
            entry("fxgraph", "f2", own, at=64, time_taken_ns=4 * 10**9, root="/copy"),
        ],
    )
    assert scope.misses["kind"].tolist() == [told, ""]


@pytest.mark.parametrize(("at", "found", "told"), [
    (51, {}, "another directory"),
    # Another process may have compiled it since.
    (56, {}, ""),
    (51, {"time_saved_ns": None}, ""),
    (51, {"guards_expr": "s0 < 9"}, ""),
    (51, {"cache_dir": "/a"}, ""),
    (51, {"cache_dir": None}, ""),
    # It was compiled there meanwhile.
    (51, {"outcome": "full_miss"}, ""),
])  # fmt: skip
def test_what_another_rank_finds_in_its_directory_lay_there(
    at: int, found: dict[str, Any], told: str
) -> None:
    own, beside = (fx("f1", details={"gm": CODE}, at=when, took=3) for when in (50, at))
    told_of = {"outcome": "hit", "time_saved_ns": 5 * 10**9, "cache_dir": "/b"} | found
    beside = replace(beside, outcome=told_of.pop("outcome"), told=beside.told | told_of)
    (miss, *_) = miss_rows(scope_of(run(own, cache_dir="/a"), run(beside)))
    assert miss["kind"] == told
    if told:
        assert miss["evidence_text"] == "run 1 found it there 1.0 s later, and it takes 5.0 s to compile"


@pytest.mark.parametrize("as_link", [False, True])
def test_a_directory_is_the_same_under_another_name(
    as_link: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logs have its absolute name; the one that is given may be relative, or a link."""
    real = tmp_path / "cache"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    monkeypatch.chdir(tmp_path)
    stored = [entry("aotautograd", "a1", at=5, root="link" if as_link else "cache")]
    made = run(aot("a1", details={"gm": CODE}, at=10), cache_dir=str(real))
    (row,) = miss_rows(scope_of(made, entries=stored))
    assert "another directory" not in row["reason"]


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


def check_no_copy_of_its_own_directory_is_called_another(recorded: Recorded) -> None:
    """Each log alone beside each directory of its recording, which lies in another place than torch named."""
    if recorded.name == "other_directory":
        return
    for log in (path for kind in ("trace", "text") for path in logs(recorded.folder, kind)):
        for directory in caches(recorded.folder):
            try:
                misses = cachescope.read(log, directory).misses
            except cachescope.SourceError:
                # Warnings and tracebacks only.
                continue
            inferred = misses[misses["evidence"] == "inferred"]
            assert "another directory" not in set(inferred["kind"]), (log, directory)
