"""Clearing an index removes what it keeps, nothing else, and minds no other process that does the same; files made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachescope.readers.index.kept_logs import Index

KEPT = ("a.log_index", "b.log_index", "c.unfinished")


@pytest.fixture
def index(tmp_path: Path) -> Index:
    for name in (*KEPT, "notes.txt"):
        (tmp_path / name).write_bytes(b"of no meaning")
    return Index(tmp_path)


def left(index: Index) -> set[str]:
    return {path.name for path in index.folder.iterdir()} - {"lock"}


def test_only_what_the_index_keeps_is_removed(index: Index) -> None:
    index.clear()
    assert left(index) == {"notes.txt"}
    index.clear()
    assert left(index) == {"notes.txt"}


def test_a_file_that_another_process_removes_meanwhile_is_no_error(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlink = Path.unlink

    def twice(path: Path, missing_ok: bool = False) -> None:
        """As if a process that trims its index, for which it takes no lock, came first."""
        unlink(path)
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", twice)
    index.clear()
    assert left(index) == {"notes.txt"}
