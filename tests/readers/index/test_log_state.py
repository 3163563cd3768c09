"""When a log counts as unchanged, as grown, and as too young: a change of a file in, a verdict out."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cachescope.readers.index import kept_logs
from cachescope.readers.index.kept_logs import LogState, has_grown, is_quiet

BLOCK = 4096
SIZE = 40 * BLOCK


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kept_logs, "_LEAST_BYTES", 100)
    path = tmp_path / "a.log"
    path.write_bytes(bytes(range(256)) * (SIZE // 256))
    return path


def state(path: Path) -> LogState:
    found = kept_logs.log_state(str(path))
    assert found is not None
    return found


def test_a_file_of_some_size_has_a_state(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_logs, "_LEAST_BYTES", SIZE)
    assert kept_logs.log_state(str(log)) is not None
    monkeypatch.setattr(kept_logs, "_LEAST_BYTES", SIZE + 1)
    assert kept_logs.log_state(str(log)) is None
    monkeypatch.setattr(kept_logs, "_LEAST_BYTES", 0)
    assert kept_logs.log_state(str(tmp_path)) is None
    with pytest.raises(OSError, match="absent"):
        kept_logs.log_state(str(tmp_path / "absent"))


@pytest.mark.parametrize(
    ("zone", "month", "hours"), [("UTC", 7, 0), ("Europe/Berlin", 7, 2), ("Europe/Berlin", 1, 1)]
)
def test_the_time_zone_is_that_of_the_day_when_the_file_was_written(
    zone: str, month: int, hours: int, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = datetime(2026, month, 1, tzinfo=UTC).timestamp()
    os.utime(log, (written, written))
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        found = state(log)
    time.tzset()
    assert found.utc_offset_s == hours * 3600


def test_the_facts_of_a_file(log: Path, tmp_path: Path) -> None:
    at, found = log.stat(), state(log)
    facts = found.size, found.mtime_ns, found.ctime_ns, found.inode
    assert facts == (SIZE, at.st_mtime_ns, at.st_ctime_ns, at.st_ino)
    (tmp_path / "link").symlink_to(log)
    link = state(tmp_path / "link")
    # A link has the path of the file, and a name of its own: it may name another rank.
    assert (link.path, link.name) == (str(log.resolve()), "link")
    assert replace(link, name="a.log") == found


def append(path: Path, data: bytes = b"more") -> None:
    with open(path, "ab") as file:
        file.write(data)


def change(path: Path, at: int) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def replaced(path: Path) -> None:
    data = path.read_bytes()
    (path.parent / "new").write_bytes(data + b"more")
    os.replace(path.parent / "new", path)


CHANGES: dict[str, tuple[Callable[[Path], None], bool]] = {
    "nothing": (lambda path: None, False),
    "longer": (append, True),
    "longer by one byte": (lambda path: append(path, b"x"), True),
    "touched": (lambda path: os.utime(path, (1, 1)), False),
    "shorter": (lambda path: os.truncate(path, SIZE - 1), False),
    "another file in its place": (replaced, False),
    "longer, and its first byte another": (lambda path: (append(path), change(path, 0))[0], False),
    "longer, and its last byte another": (lambda path: (append(path), change(path, SIZE - 1))[0], False),
    "longer, and one in the middle": (
        lambda path: (append(path), change(path, (SIZE - BLOCK) * 7 // 15))[0],
        False,
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_log_grows_at_its_end(case: str, log: Path) -> None:
    before = state(log)
    changed, wanted = CHANGES[case]
    changed(log)
    assert has_grown(before, state(log)) is wanted


@pytest.mark.parametrize("other", [{"code": "x"}, {"name": "b"}, {"utc_offset_s": -1.0}, {"format": 0}])
def test_what_a_log_was_read_with_is_the_same_when_it_has_grown(other: dict[str, Any], log: Path) -> None:
    before = replace(state(log), **other)
    append(log)
    assert not has_grown(before, state(log))


def test_the_first_the_last_and_fourteen_blocks_between_are_compared(log: Path) -> None:
    found = kept_logs._probe(str(log), SIZE)
    for number in range(16):
        start = (SIZE - BLOCK) * number // 15
        for at in (start, start + BLOCK - 1):
            change(log, at)
            assert kept_logs._probe(str(log), SIZE) != found
            change(log, at)
    assert kept_logs._probe(str(log), SIZE) == found
    # What lies behind the old end is no part of it.
    append(log)
    assert kept_logs._probe(str(log), SIZE) == found


def test_a_state_comes_back_as_it_was(log: Path) -> None:
    found = state(log)
    assert LogState.of_json(json.loads(json.dumps(asdict(found)))) == found


def test_what_is_no_state_or_of_another_version(log: Path) -> None:
    values = asdict(state(log))
    lacking = {name: value for name, value in values.items() if name != "probe"}
    others = ({"format": 1}, {"format": None}, {"size": "1"}, {"size": 1.0}, {"size": True}, {"path": None})
    for one in (
        lacking,
        {},
        [],
        None,
        "text",
        {**values, "more": 1},
        *({**values, **other} for other in others),
    ):
        assert LogState.of_json(one) is None, one


@pytest.mark.parametrize(("modified", "changed", "wanted"), [
    (0, 0, False),
    (-2_000_000_000, -2_000_000_000, False),
    (-2_000_000_001, -2_000_000_001, True),
    # Whichever is later.
    (-9_000_000_000, 0, False),
    (0, -9_000_000_000, False),
    (5, 5, False),
])  # fmt: skip
def test_a_log_is_quiet_two_seconds_after_its_last_change(
    modified: int, changed: int, wanted: bool, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 10**18
    monkeypatch.setattr(kept_logs.time, "time_ns", lambda: now)
    assert is_quiet(replace(state(log), mtime_ns=now + modified, ctime_ns=now + changed)) is wanted


def test_other_states_of_the_readers_are_other_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / name for name in ("top.py", "readers/a.py", "readers/index/b.py", "views/c.py")]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
        os.utime(file, (1, 1))
    monkeypatch.setattr(kept_logs, "__file__", str(tmp_path / "readers" / "index" / "kept_logs.py"))
    code = kept_logs._code.__wrapped__
    found = code()
    assert code() == found
    for file, is_of_it in zip(files, (True, True, True, False), strict=True):
        os.utime(file, (2, 2))
        assert (code() != found) is is_of_it
        file.write_text("xy")
        os.utime(file, (1, 1))
        assert (code() != found) is is_of_it
        file.write_text("x")
        os.utime(file, (1, 1))
    assert code() == found
    monkeypatch.setattr(kept_logs, "__version__", "another")
    assert code() != found
