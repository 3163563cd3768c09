"""The hash of a file that was compiled: bounded, and never waiting."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from cachescope.readers.directory import file_contents as module
from cachescope.readers.directory.file_contents import content_hash


def test_it_is_the_hash_of_the_bytes(tmp_path: Path) -> None:
    file = tmp_path / "kernel.so"
    file.write_bytes(os.urandom((1 << 20) + 7))
    assert content_hash(str(file)) == hashlib.sha256(file.read_bytes()).hexdigest()


def test_what_is_no_plain_file_has_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("gone", "pipe", "link", "."):
        assert content_hash(str(tmp_path / name)) is None


def test_what_is_too_big_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "big").write_bytes(b"12345")
    assert content_hash(str(tmp_path / "big")) is not None
    monkeypatch.setattr(module, "_MOST_BYTES_HASHED", 4)
    assert content_hash(str(tmp_path / "big")) is None
