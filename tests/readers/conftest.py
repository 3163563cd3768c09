"""The index of logs as tests of readers need it: of logs of any size and age, and with a list of what was read."""

from pathlib import Path

import pytest

from cachescope.readers.index import log_state
from cachescope.readers.logs import many_logs


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The logs that this process read from their beginning, one after the other."""
    paths: list[str] = []
    alone = many_logs.read_alone

    def counted(read: many_logs.ReadLog, path: str, strict: bool) -> object:
        paths.append(path)
        return alone(read, path, strict)

    monkeypatch.setattr(many_logs, "read_alone", counted)
    return paths


@pytest.fixture
def any_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of any size and age is worth keeping."""
    monkeypatch.setattr(log_state, "_LEAST_BYTES", 1)
    monkeypatch.setattr(log_state, "_QUIET_NS", -(10**18))


@pytest.fixture
def own_index(any_log: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an index of one's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CACHESCOPE_NO_INDEX")
    return tmp_path / "home" / "cachescope" / "logs"


@pytest.fixture
def kept(own_index: Path, parsed: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An index of one's own, in which no log is ever quiet; the logs that were read whole."""
    monkeypatch.setattr(log_state, "_QUIET_NS", 10**18)
    return parsed
