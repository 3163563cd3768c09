"""What tests of readers share: an index of logs of any size and age, with a list of what was read; a store; a time zone."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from cachescope.readers.index import kept_logs
from cachescope.readers.logs import many_logs


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The logs that this process read from their beginning, one after the other."""
    paths: list[str] = []
    alone = many_logs.read_alone

    def counted(read: many_logs.ReadLog, path: str) -> object:
        paths.append(path)
        return alone(read, path)

    monkeypatch.setattr(many_logs, "read_alone", counted)
    return paths


@pytest.fixture
def any_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of any size and age is worth keeping."""
    monkeypatch.setattr(kept_logs, "_LEAST_BYTES", 1)
    monkeypatch.setattr(kept_logs, "_QUIET_NS", -(10**18))


@pytest.fixture
def own_index(any_log: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an index of one's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CACHESCOPE_NO_INDEX")
    return tmp_path / "home" / "cachescope" / "logs"


@pytest.fixture
def kept(own_index: Path, parsed: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An index of one's own, in which no log is ever quiet; the logs that were read whole."""
    monkeypatch.setattr(kept_logs, "_QUIET_NS", 10**18)
    return parsed


@pytest.fixture
def store() -> Iterator[Any]:
    """An empty store at ``memory://``."""
    store = fsspec.filesystem("memory")
    yield store
    store.store.clear()
    store.pseudo_dirs[:] = [""]


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()
