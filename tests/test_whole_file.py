"""A file that is written at one stroke."""

import os
import threading
from pathlib import Path

import pytest

from cachescope.whole_file import write_whole


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"long before")
    with target.open("rb") as reader:
        write_whole(target, b"after")
        assert reader.read() == b"long before"
    assert target.read_bytes() == b"after" and list(tmp_path.iterdir()) == [target]


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    link = tmp_path / "link"
    link.symlink_to(kept / "file")
    for content in (b"first", b"second"):
        write_whole(link, content)
        assert link.is_symlink()
        assert (kept / "file").read_bytes() == content


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    # As /dev/null and /dev/stdout, which root could replace.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"a report")
    reader.join(timeout=300)
    assert found == [b"a report"]
    assert pipe.is_fifo()


def test_nothing_is_left_where_it_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        write_whole(tmp_path / "missing" / "out", b"")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_whole(tmp_path / "folder", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
