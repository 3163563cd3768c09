"""What is stored of a log, and when it is still of use: a log made by hand in, the same or nothing out. When a log is unchanged, grown, too young."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cachescope.frames.recorded_rows import ProblemRow
from cachescope.readers.index import kept_logs
from cachescope.readers.index.kept_logs import OFF, Index, Kept, LogState, has_grown, index_of_user, is_quiet
from cachescope.readers.index.log_tables import LogTables
from cachescope.readers.reading import Process
from tests.readers.index.test_log_folder import A, B, one_log

YOUNG, OLD = 10**18, -(10**18)


@pytest.fixture
def log(any_log: None, tmp_path: Path) -> Path:
    path = tmp_path / "a.log"
    path.write_bytes(b"x" * 10_000)
    return path


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index(tmp_path / "index")


def place(index: Index, log: Path) -> Kept:
    kept = index.kept(str(log))
    assert kept is not None
    return kept


def tables(log: Path, end_state: str | None = None, processes: int = 1) -> LogTables:
    """The events of a log that was read in so many steps: the first process has the lookups."""
    made = one_log(str(log), A, B)
    made.processes[0].end_state = end_state
    made.processes.extend(Process(source=str(log), kind="text", end_state=one) for one in (end_state, None))
    made.problems.append(ProblemRow(str(log), "end", "truncated", "cut"))
    del made.processes[processes:]
    return made


def told(log: LogTables | None) -> object:
    if log is None:
        return None
    lookups = [(one.cache_key, one.detail_set) for process in log.processes for one in process.lookups]
    return log.source, lookups, [one.message for one in log.problems], len(log.components), len(log.sets)


def append(log: Path) -> None:
    with log.open("ab") as file:
        file.write(b"more")


WHOLE = [("f0", 0), ("f1", 1)], ["cut"], 3, 2


@pytest.mark.parametrize(("age", "end_state", "processes", "is_stored", "is_current", "is_grown"), [
    (OLD, "{}", 1, True, True, True),
    (OLD, None, 1, True, True, False),
    (OLD, "{}", 2, True, True, True),
    (OLD, "{}", 3, True, True, False),
    (OLD, "{}", 0, True, True, False),
    # A log that may still be written to is only where a later reading begins.
    (YOUNG, "{}", 1, True, False, True),
    (YOUNG, None, 1, False, False, False),
    (YOUNG, "{}", 0, False, False, False),
])  # fmt: skip
def test_what_is_stored_of_a_log(
    age: int, end_state: str | None, processes: int, is_stored: bool, is_current: bool, is_grown: bool,
    log: Path, index: Index, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(kept_logs, "_QUIET_NS", age)
    place(index, log).store(tables(log, end_state, processes))
    assert len(index.logs()) == is_stored
    kept = place(index, log)
    whole = (str(log), *(WHOLE if processes else ([], *WHOLE[1:])))
    assert told(kept.as_it_is()) == (whole if is_current else None)
    assert kept.as_it_was() is None
    assert kept.is_of_use() is is_current
    append(log)
    grown = place(index, log)
    assert grown.as_it_is() is None
    assert told(grown.as_it_was()) == (whole if is_grown else None)
    assert grown.is_of_use() or not is_grown


def replaced(log: Path) -> None:
    log.with_name("other").write_bytes(log.read_bytes())
    os.replace(log.with_name("other"), log)


def replaced_by_a_longer(log: Path) -> None:
    log.with_name("other").write_bytes(log.read_bytes() + b"more")
    os.replace(log.with_name("other"), log)


def changed(log: Path) -> None:
    log.write_bytes(b"y" * 20_000)


@pytest.mark.parametrize(("change", "is_same"), [
    (append, True),
    (replaced, False),
    (replaced_by_a_longer, False),
    (changed, False),
    (Path.unlink, False),
])  # fmt: skip
def test_a_log_that_was_written_to_since_is_not_stored(
    change: Callable[[Path], None], is_same: bool, log: Path, index: Index
) -> None:
    kept = place(index, log)
    assert kept.is_same_file()
    change(log)
    assert kept.is_same_file() is is_same
    kept.store(tables(log, "{}"))
    assert index.logs() == []
    assert not index.folder.exists()


@pytest.mark.parametrize("change", [replaced, replaced_by_a_longer, changed])
def test_another_log_in_its_place_is_not_what_was_stored(
    change: Callable[[Path], None], log: Path, index: Index
) -> None:
    place(index, log).store(tables(log, "{}"))
    change(log)
    kept = place(index, log)
    assert (kept.as_it_is(), kept.as_it_was(), kept.is_of_use()) == (None, None, False)


def test_what_has_no_place_in_an_index(
    log: Path, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert index.kept(str(tmp_path / "absent")) is None
    assert index.kept(str(tmp_path)) is None
    monkeypatch.setattr(kept_logs, "_LEAST_BYTES", 10_001)
    assert index.kept(str(log)) is None


def test_a_link_of_another_name_has_a_place_of_its_own(log: Path, index: Index, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.log").symlink_to(log)
    (tmp_path / "rank_1.log").symlink_to(log)
    own = place(index, log).file
    assert place(index, tmp_path / "folder" / "a.log").file == own
    assert place(index, tmp_path / "rank_1.log").file != own


@pytest.mark.parametrize("damage", [
    lambda data: data[:-1],
    lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    lambda data: b"C" + data[1:],
    lambda data: data.replace(b'"inode"', b'"in0de"'),
    lambda data: data[:17] + b"[]\n" + data[17:],
    lambda data: data[:17] + b"{\n" + data[17:],
    lambda data: b"",
])  # fmt: skip
def test_a_damaged_file_is_of_no_use(damage: Callable[[bytes], bytes], log: Path, index: Index) -> None:
    kept = place(index, log)
    kept.store(tables(log))
    data = kept.file.read_bytes()
    assert data.startswith(b"cachescope index\n{")
    kept.file.write_bytes(damage(data))
    assert kept.file.read_bytes() != data
    assert kept.as_it_is() is None
    kept.file.write_bytes(data)
    assert kept.as_it_is() is not None


def test_what_was_stored_of_another_log_is_not_believed(log: Path, index: Index) -> None:
    data = []
    for path in (log.with_name("b.log"), log):
        path.write_bytes(b"x" * 10_000)
        kept = place(index, path)
        kept.store(tables(path))
        data.append(kept.file.read_bytes().split(b"\n", 2))
    (_, _, other), (magic, head, body) = data
    for content, is_believed in ((body, True), (other, False)):
        kept.file.write_bytes(b"\n".join((magic, head, content)))
        assert (kept.as_it_is() is not None) is is_believed


def test_a_folder_that_cannot_be_made_is_no_error(log: Path, tmp_path: Path) -> None:
    kept = place(Index(log / "index"), log)
    kept.store(tables(log))
    assert kept.as_it_is() is None
    assert Index(log / "index").logs() == []


def test_a_failure_to_write_leaves_nothing(log: Path, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    kept = place(index, log)
    monkeypatch.setattr(os, "replace", refuse)
    kept.store(tables(log))
    assert {path.name for path in index.folder.iterdir()} <= {"lock"}
    assert index.folder.stat().st_mode & 0o777 == 0o700


def test_logs_are_listed_and_trimmed_by_when_they_were_used(index: Index, log: Path, tmp_path: Path) -> None:
    now = time.time()
    for number, name in enumerate(("a.log", "b.log", "c.log")):
        path = tmp_path / name
        path.write_bytes(b"x" * (20_000 + number))
        place(index, path).store(tables(path))
        os.utime(place(index, path).file, (now - 100 + number, now - 100 + number))
    # One that is read counts as used now.
    assert place(index, log).as_it_is() is not None
    logs = index.logs()
    found = [(Path(one.path).name, one.log_bytes) for one in logs]
    assert found == [("a.log", 20_000), ("c.log", 20_002), ("b.log", 20_001)]
    assert all(one.kept_bytes == place(index, Path(one.path)).file.stat().st_size for one in logs)
    sizes = [one.kept_bytes for one in logs]
    for limit, names in ((sum(sizes), "acb"), (sum(sizes) - 1, "ac"), (sum(sizes[:2]), "ac"), (1, "")):
        index.trim(limit)
        assert [Path(one.path).stem for one in index.logs()] == list(names)


@pytest.mark.parametrize(
    ("torch", "off", "is_there"),
    [("torch", "", True), (".", "", False), ("home/cachescope", "", False), ("torch", "1", False)],
)
def test_where_the_index_of_a_user_is(
    torch: str, off: str, is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / torch))
    monkeypatch.setenv(OFF, off)
    index = index_of_user()
    if not is_there:
        assert index is None
        return
    assert index.folder == tmp_path / "home" / "cachescope" / "logs"


def left(index: Index) -> set[str]:
    return {path.name for path in index.folder.iterdir()} - {"lock"}


def test_what_a_process_left_unfinished_goes_after_an_hour(tmp_path: Path) -> None:
    now = time.time()
    for name, age in (("old", 3_700), ("young", 3_500), ("ahead", -3_700)):
        (tmp_path / f".{name}.log_index.7.tmp").write_bytes(b"x")
        os.utime(tmp_path / f".{name}.log_index.7.tmp", (now - age, now - age))
    Index(tmp_path).trim()
    assert left(Index(tmp_path)) == {".young.log_index.7.tmp", ".ahead.log_index.7.tmp"}


def test_a_file_of_the_index_that_another_process_removed_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does clearing remove what is not of the index."""
    for name in ("there.log_index", ".there.log_index.7.tmp", "notes.txt"):
        (tmp_path / name).write_bytes(b"xx")
    of_index, unlink = Index._files, Path.unlink

    def gone_meanwhile(path: Path, missing_ok: bool = False) -> None:
        unlink(path)
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", gone_meanwhile)
    monkeypatch.setattr(Index, "_files", lambda index: [*of_index(index), tmp_path / "absent.log_index"])
    index = Index(tmp_path)
    assert index.logs() == []
    index.trim(1)
    assert left(index) == {".there.log_index.7.tmp", "notes.txt"}
    (tmp_path / "there.log_index").write_bytes(b"xx")
    monkeypatch.setattr(Index, "_files", of_index)
    for _ in range(2):
        index.clear()
        assert left(index) == {"notes.txt"}
    Index(tmp_path / "nowhere").clear()


@pytest.mark.parametrize("head", [
    b"", b"cachescope index\n", b"cachescope index\n[]\n", b"cachescope index\n{}\n",
    b"cachescope index\nno json\n", b'cachescope index\n{"log": {}}\n', b"another index..\n{}\n",
])  # fmt: skip
def test_a_file_that_is_none_of_the_index_is_passed_over(head: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.log_index").write_bytes(head)
    assert Index(tmp_path).logs() == []


BLOCK = 4096
SIZE = 40 * BLOCK


@pytest.fixture
def sized_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kept_logs, "_LEAST_BYTES", 100)
    path = tmp_path / "a.log"
    path.write_bytes(bytes(range(256)) * (SIZE // 256))
    return path


def state(path: Path) -> LogState:
    found = kept_logs.log_state(str(path))
    assert found is not None
    return found


def test_a_file_of_some_size_has_a_state(
    sized_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_logs, "_LEAST_BYTES", SIZE)
    assert kept_logs.log_state(str(sized_log)) is not None
    monkeypatch.setattr(kept_logs, "_LEAST_BYTES", SIZE + 1)
    assert kept_logs.log_state(str(sized_log)) is None
    monkeypatch.setattr(kept_logs, "_LEAST_BYTES", 0)
    assert kept_logs.log_state(str(tmp_path)) is None
    with pytest.raises(OSError, match="absent"):
        kept_logs.log_state(str(tmp_path / "absent"))


@pytest.mark.parametrize(
    ("zone", "month", "hours"), [("UTC", 7, 0), ("Europe/Berlin", 7, 2), ("Europe/Berlin", 1, 1)]
)
def test_the_time_zone_is_that_of_the_day_when_the_file_was_written(
    zone: str, month: int, hours: int, sized_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = datetime(2026, month, 1, tzinfo=UTC).timestamp()
    os.utime(sized_log, (written, written))
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        found = state(sized_log)
    time.tzset()
    assert found.utc_offset_s == hours * 3600


def test_the_facts_of_a_file(sized_log: Path, tmp_path: Path) -> None:
    at, found = sized_log.stat(), state(sized_log)
    facts = found.size, found.mtime_ns, found.ctime_ns, found.inode
    assert facts == (SIZE, at.st_mtime_ns, at.st_ctime_ns, at.st_ino)
    (tmp_path / "link").symlink_to(sized_log)
    link = state(tmp_path / "link")
    # A link has the path of the file, and a name of its own: it may name another rank.
    assert (link.path, link.name) == (str(sized_log.resolve()), "link")
    assert replace(link, name="a.log") == found


def appended(path: Path, data: bytes = b"more") -> None:
    with open(path, "ab") as file:
        file.write(data)


def change(path: Path, at: int) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def replaced_by_more(path: Path) -> None:
    data = path.read_bytes()
    (path.parent / "new").write_bytes(data + b"more")
    os.replace(path.parent / "new", path)


CHANGES: dict[str, tuple[Callable[[Path], None], bool]] = {
    "nothing": (lambda path: None, False),
    "longer": (appended, True),
    "longer by one byte": (lambda path: appended(path, b"x"), True),
    "touched": (lambda path: os.utime(path, (1, 1)), False),
    "shorter": (lambda path: os.truncate(path, SIZE - 1), False),
    "another file in its place": (replaced_by_more, False),
    "longer, and its first byte another": (lambda path: (appended(path), change(path, 0))[0], False),
    "longer, and its last byte another": (lambda path: (appended(path), change(path, SIZE - 1))[0], False),
    "longer, and one in the middle": (
        lambda path: (appended(path), change(path, (SIZE - BLOCK) * 7 // 15))[0],
        False,
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_log_grows_at_its_end(case: str, sized_log: Path) -> None:
    before = state(sized_log)
    changed, wanted = CHANGES[case]
    changed(sized_log)
    assert has_grown(before, state(sized_log)) is wanted


@pytest.mark.parametrize("other", [{"code": "x"}, {"name": "b"}, {"utc_offset_s": -1.0}, {"format": 0}])
def test_what_a_log_was_read_with_is_the_same_when_it_has_grown(
    other: dict[str, Any], sized_log: Path
) -> None:
    before = replace(state(sized_log), **other)
    appended(sized_log)
    assert not has_grown(before, state(sized_log))


def test_the_first_the_last_and_fourteen_blocks_between_are_compared(sized_log: Path) -> None:
    found = kept_logs._probe(str(sized_log), SIZE)
    for number in range(16):
        start = (SIZE - BLOCK) * number // 15
        for at in (start, start + BLOCK - 1):
            change(sized_log, at)
            assert kept_logs._probe(str(sized_log), SIZE) != found
            change(sized_log, at)
    assert kept_logs._probe(str(sized_log), SIZE) == found
    # What lies behind the old end is no part of it.
    appended(sized_log)
    assert kept_logs._probe(str(sized_log), SIZE) == found


def test_a_state_comes_back_as_it_was(sized_log: Path) -> None:
    found = state(sized_log)
    assert LogState.of_json(json.loads(json.dumps(asdict(found)))) == found


def test_what_is_no_state_or_of_another_version(sized_log: Path) -> None:
    values = asdict(state(sized_log))
    lacking = {name: value for name, value in values.items() if name != "probe"}
    others = ({"format": 1}, {"format": None}, {"size": "1"}, {"size": 1.0}, {"size": True}, {"path": None})
    for one in (
        lacking, {}, [], None, "text", {**values, "more": 1}, *({**values, **other} for other in others),
    ):  # fmt: skip
        assert LogState.of_json(one) is None, one


@pytest.mark.parametrize(("modified", "changed", "wanted"), [
    (0, 0, False), (-2_000_000_000, -2_000_000_000, False), (-2_000_000_001, -2_000_000_001, True),
    # Whichever is later.
    (-9_000_000_000, 0, False), (0, -9_000_000_000, False), (5, 5, False),
])  # fmt: skip
def test_a_log_is_quiet_two_seconds_after_its_last_change(
    modified: int, changed: int, wanted: bool, sized_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 10**18
    monkeypatch.setattr(kept_logs.time, "time_ns", lambda: now)
    assert is_quiet(replace(state(sized_log), mtime_ns=now + modified, ctime_ns=now + changed)) is wanted


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
