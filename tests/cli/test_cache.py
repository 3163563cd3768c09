"""`cachescope cache` and the options that go with it."""

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.readers.index import kept_logs
from cachescope.readers.logs.byte_source import open_bytes
from tests.cli.conftest import Run

pytestmark = pytest.mark.slow  # each test starts processes


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log that is worth keeping, and an index of one's own to keep it in."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CACHESCOPE_NO_INDEX")
    monkeypatch.setattr(kept_logs, "_LEAST_BYTES", 1)
    monkeypatch.setattr(kept_logs, "_QUIET_NS", -(10**18))
    path = tmp_path / "a.log"
    with open_bytes(str(min((cachescope.sample("tour") / "trace").iterdir()))) as stream:
        path.write_bytes(stream.read())
    return path


def test_nothing_kept_is_said_so(log: Path, run: Run) -> None:
    outcome = run("cache")
    assert outcome.status == 0 and outcome.out.startswith("no logs kept in ")


def test_it_lists_what_was_read_and_clears_it(log: Path, run: Run, tmp_path: Path) -> None:
    assert run("explain", log).status == 0
    listed = run("cache")
    assert "1 log kept in" in listed.out and str(log) in listed.out
    told = run("cache", "--json").json
    (one,) = told["logs"]
    assert one["path"] == str(log) and one["log_bytes"] == log.stat().st_size
    files = [path for path in (tmp_path / "home").rglob("*") if path.is_file() and path.stat().st_size]
    assert told["kept_bytes"] == one["kept_bytes"] == sum(path.stat().st_size for path in files)
    for form in ([], ["--json"]):
        redacted = run("cache", "--redact", *form).out
        assert str(tmp_path) not in redacted and log.name not in redacted and "<path-2>" in redacted
    assert run("cache", "--clear").out.startswith("removed: 1 log kept in")
    assert run("cache", "--json").json["logs"] == []


# Every command that reads what it is given, and what else it needs.
READING = {
    "explain": (), "what-if": (), "time": (), "compiles": (), "diff": (cachescope.sample("config_flip"),),
    "entries": (), "contexts": (), "devices": (), "check": ("--min-hit-rate", "0"),
    "report": ("-o", "out.html"),
}  # fmt: skip


@pytest.mark.parametrize("command", READING)
def test_a_command_keeps_nothing_without_an_index(
    command: str, log: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(command, log, *READING[command], "--no-index").status == 0
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("command", READING)
def test_a_command_reads_in_as_many_processes_as_it_is_told(
    command: str, log: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def read(*paths: str, executor: ProcessPoolExecutor, **options: Any) -> cachescope.Scope:
        asked.append(executor._max_workers)  # type: ignore[attr-defined]
        return cachescope.read(*paths, **options)

    monkeypatch.setattr("cachescope.cli.sources.read", read)
    monkeypatch.chdir(tmp_path)
    assert run(command, log, *READING[command], "--jobs", 3).status == 0
    assert asked == [3]


def test_explain_with_several_processes_says_the_same(log: Path, run: Run) -> None:
    logs = [log, cachescope.sample("config_flip")]
    assert run("explain", *logs, "--no-index", "--jobs", 2) == run("explain", *logs, "--no-index")
