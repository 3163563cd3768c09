"""`cachescope cache` and the options that go with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import cachescope
from cachescope.readers import log_state
from cachescope.readers.byte_source import open_bytes
from tests.cli.conftest import Run


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log that is worth keeping, and an index of one's own to keep it in."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CACHESCOPE_NO_INDEX")
    monkeypatch.setattr(log_state, "_LEAST_BYTES", 1)
    monkeypatch.setattr(log_state, "_QUIET_NS", -(10**18))
    path = tmp_path / "a.log"
    with open_bytes(str(min((cachescope.sample("tour") / "trace").iterdir()))) as stream:
        path.write_bytes(stream.read())
    return path


def test_nothing_kept_is_said_so(log: Path, run: Run) -> None:
    outcome = run("cache")
    assert outcome.status == 0
    assert outcome.out.startswith("no logs kept in ")


def test_it_lists_what_was_read_and_clears_it(log: Path, run: Run, tmp_path: Path) -> None:
    assert run("explain", log).status == 0
    listed = run("cache")
    assert "1 log kept in" in listed.out
    assert str(log) in listed.out
    told = json.loads(run("cache", "--json").out)
    (one,) = told["logs"]
    assert one["path"] == str(log)
    assert one["log_bytes"] == log.stat().st_size
    files = [path for path in (tmp_path / "home").rglob("*") if path.is_file() and path.stat().st_size]
    assert told["kept_bytes"] == one["kept_bytes"] == sum(path.stat().st_size for path in files)
    assert run("cache", "--clear").out.startswith("removed: 1 log kept in")
    assert json.loads(run("cache", "--json").out)["logs"] == []


def test_explain_keeps_nothing_without_an_index(log: Path, run: Run, tmp_path: Path) -> None:
    assert run("explain", log, "--no-index").status == 0
    assert not (tmp_path / "home").exists()


def test_explain_with_several_processes_says_the_same(log: Path, run: Run) -> None:
    logs = [log, cachescope.sample("config_flip")]
    assert run("explain", *logs, "--no-index", "--jobs", 2) == run("explain", *logs, "--no-index")
