"""A folder that many processes collect logs into reads back as one Scope; what is said of logs in columns that somebody changed."""

import os
import random
import shutil
import struct
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
import pytest

import cachescope
from cachescope.errors import RecordError, SourceError
from cachescope.frames.recorded_rows import LookupRow, ProblemRow
from cachescope.readers.index import log_tables
from cachescope.readers.json_record import MOST_NS, MOST_NS_OF_A_DURATION, MOST_OF_A_COLUMN
from cachescope.readers.kinds import is_log_file
from cachescope.readers.logs.byte_source import open_bytes, zstd
from cachescope.readers.reading import Process, Reading
from cachescope.readers.sources import logs_in
from tests.conftest import Recording
from tests.made import component, set_of
from tests.readers.logs.growing import assert_same_scopes, tour
from tests.readings import read_by


@pytest.fixture
def logs(tmp_path: Path) -> list[Path]:
    """Six traces of one job, the third of them cut."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for rank, data in enumerate(tour()):
        (folder / f"rank_{rank}.log").write_bytes(data[:-100] if rank == 2 else data)
    return sorted(folder.iterdir())


@pytest.fixture
def fleet(logs: list[Path], tmp_path: Path) -> Path:
    """What three nodes collected, the last first."""
    folder = tmp_path / "fleet"
    for node in (2, 0, 1):
        assert cachescope.collect(*logs[2 * node : 2 * node + 2], folder=folder) == 2
    return folder


FRAMES = ("runs", "lookups", "problems", "misses", "causes", "contexts", "rank_differences")


@pytest.mark.slow
def test_it_reads_back_as_the_logs_themselves(fleet: Path, logs: list[Path]) -> None:
    assert_same_scopes(cachescope.read(fleet), cachescope.read(*logs), FRAMES)


@pytest.mark.slow
def test_trace_and_text_log_of_one_process_are_joined(recording: Recording, tmp_path: Path) -> None:
    folder = recording("2.13.0", "training")
    cachescope.collect(folder / "text", folder=tmp_path)
    cachescope.collect(folder / "trace", folder=tmp_path)
    here = cachescope.read(folder / "text", folder / "trace")
    there = cachescope.read(tmp_path)
    pd.testing.assert_frame_equal(there.runs, here.runs)
    pd.testing.assert_frame_equal(there.lookups, here.lookups)


@pytest.mark.slow
def test_it_reads_beside_other_sources(fleet: Path, logs: list[Path]) -> None:
    (one, *_) = sorted(fleet.iterdir())
    beside = cachescope.read(one, cachescope.sample("config_flip"))
    assert len(beside.runs) == 2 + 3
    assert len(cachescope.read(fleet, cachescope.sample("config_flip")).lookups) == 48 + 6


@pytest.mark.sweep
def test_many_processes_write_at_once(logs: list[Path], tmp_path: Path) -> None:
    code = "import sys, cachescope; sys.stdin.read(1); cachescope.collect(sys.argv[1], folder=sys.argv[2])"
    folder = tmp_path / "fleet"
    writers = [
        subprocess.Popen([sys.executable, "-c", code, log, folder], stdin=subprocess.PIPE, cwd=os.getcwd())
        for log in logs[:3]
    ]
    for writer in writers:
        writer.communicate(b"x")
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    pd.testing.assert_frame_equal(cachescope.read(folder).lookups, cachescope.read(*logs[:3]).lookups)


@pytest.mark.slow
def test_what_is_not_whole_is_not_read(fleet: Path, logs: list[Path]) -> None:
    (fleet / "0123.unfinished").write_bytes(b"no more")
    assert len(cachescope.read(fleet).lookups) == 48

    with pytest.raises(SourceError):
        cachescope.collect(logs[0], fleet / "nowhere.log", folder=fleet)
    assert len(list(fleet.iterdir())) == 4


def test_only_logs_are_collected(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no log"):
        cachescope.collect(cachescope.sample("entry_truncated") / "cache", folder=tmp_path / "fleet")


Sets = tuple[tuple[str, str], ...]


def one_log(source: str, *sets: Sets) -> log_tables.LogTables:
    """A log whose lookups have these hash details."""
    reading, process = Reading(), Process(source=source, kind="trace", pid=7)
    for number, fields in enumerate(sets):
        code = set_of(reading.details, dict(fields))
        process.lookups.append(LookupRow(cache="fxgraph", time=5, cache_key=f"f{number}", detail_set=code))
    reading.processes.append(process)
    return log_tables.LogTables.of(source, reading)


A, B = (("gm", "a"), ("x", "1")), (("gm", "b"), ("x", "1"))
BACKWARD = (("gm", "a"), ("fx_kwargs[is_backward]", "True"), ("fx_kwargs[is_inference]", "False"))


def found(reading: Reading) -> dict[str, list[str | None]]:
    """Of each log the last value in the details of its lookups."""

    def last(code: int | None) -> str | None:
        return None if code is None else reading.details.details(code)[-1].value_text

    return {one.source: [last(x.detail_set) for x in one.lookups] for one in reading.processes}


def read_folder(folder: str | Path, *, strict: bool = False) -> Reading:
    reading = Reading(strict=strict)
    for file in sorted(Path(folder).iterdir()):
        log_tables.read_log_file(str(file), reading)
    return reading


def test_each_log_has_its_own_details(tmp_path: Path) -> None:
    assert log_tables.write_logs(tmp_path / "none", []) == 0
    tmp_path /= "a/folder/below"
    assert log_tables.write_logs(tmp_path, [one_log("/c", A, B, A), one_log("/a")]) == 2
    assert log_tables.write_logs(tmp_path, [one_log("/b", B, BACKWARD)]) == 1
    assert sorted(file.name[:2] for file in tmp_path.iterdir()) == ["b-", "c-"]
    reading = read_folder(tmp_path)
    assert found(reading) == {"/a": [], "/b": ["1", "False"], "/c": ["1", "1", "1"]}
    sets = {process.source: [one.detail_set for one in process.lookups] for process in reading.processes}
    assert sets["/c"][0] == sets["/c"][2] and sets["/c"][1] == sets["/b"][0]
    assert [reading.details.direction(code) for code in sets["/b"] if code is not None] == [None, "backward"]


def test_a_file_of_logs_by_its_name_and_its_first_bytes(tmp_path: Path) -> None:
    log_tables.write_logs(tmp_path / "logs", [one_log("/a", A)])
    (file,) = (tmp_path / "logs").iterdir()
    (tmp_path / "logs" / "notes.txt").write_text("beside it")
    assert is_log_file(str(file))
    (tmp_path / "other.zst").write_bytes(file.read_bytes())
    (tmp_path / "x.cachescope_logs").write_bytes(b"PAR2" + b"x" * 99)
    (tmp_path / "folder.cachescope_logs").mkdir()
    for name in ("other.zst", "x.cachescope_logs", "folder.cachescope_logs", "absent.cachescope_logs"):
        assert not is_log_file(str(tmp_path / name))


def line_of(folder: Path, *logs: log_tables.LogTables) -> bytes:
    """What would be stored in a folder, which is empty again."""
    log_tables.write_logs(folder, logs)
    (file,) = folder.iterdir()
    with open_bytes(str(file)) as stream:
        data = stream.read()
    file.unlink()
    return data


def test_what_no_reader_of_this_version_returns_is_refused(tmp_path: Path) -> None:
    """Which values these are is said below."""
    line = line_of(tmp_path, one_log("/a", A))
    file = tmp_path / "a.cachescope_logs"
    file.write_bytes(zstd.compress(line))
    assert found(read_folder(tmp_path)) == {"/a": ["1"]}
    for data, why in (
        (line.replace(b'"set_codes"', b'"codes"'), "was written by another version"),
        (line.replace(b'"/a"', b"null"), "source is no str"),
        (line[:-9], "cannot be read"),
    ):
        file.write_bytes(zstd.compress(data))
        with pytest.raises(SourceError, match=why):
            log_tables.read_log_file(str(file), Reading())


def test_a_changed_byte_is_not_believed(tmp_path: Path) -> None:
    log_tables.write_logs(tmp_path, [one_log("/a", A)])
    (file,) = tmp_path.iterdir()
    data = file.read_bytes()
    for at in (len(data) // 2, len(data) - 9, len(data) - 1):
        file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(SourceError, match="cannot be read"):
            log_tables.read_log_file(str(file), Reading())
    file.write_bytes(data[:-5])
    with pytest.raises(SourceError, match="cannot be read"):
        log_tables.read_log_file(str(file), Reading())


def test_a_folder_without_a_log_and_one_whose_log_has_a_problem(tmp_path: Path) -> None:
    torn = one_log("/b", A)
    torn.problems.append(ProblemRow("/b", "end", "truncated", "cut"))
    log_tables.write_logs(tmp_path, [torn, one_log("/a")])
    (problem,) = read_folder(tmp_path).problems
    assert (problem.source, problem.kind) == ("/b", "truncated")
    with pytest.raises(RecordError, match="cut"):
        read_folder(tmp_path, strict=True)
    with pytest.raises(RecordError, match="cut"):
        log_tables.read_log_file(str(next(tmp_path.iterdir())), Reading(strict=True))


def test_what_cannot_be_written_leaves_no_file(tmp_path: Path) -> None:
    huge = one_log("/huge")
    huge.processes[0].pid = 1 << 70
    with pytest.raises(SourceError, match="holds a value that no column can"):
        log_tables.write_logs(tmp_path, [one_log("/a", A), huge])
    assert list(tmp_path.iterdir()) == []


def test_many_equal_logs_are_no_bomb(tmp_path: Path) -> None:
    text = random.Random(0).randbytes(50_000).hex()
    long = log_tables.LogTables("/a", [], [ProblemRow("/a", "byte 1", "unreadable", text)], [], [])
    log_tables.write_logs(tmp_path, [long] * 400)
    (file,) = tmp_path.iterdir()
    assert sum(problem.count for problem in read_by(log_tables.read_log_file, str(file)).problems) == 400


def log(source: str = "/log", components: tuple[str, ...] = ("a", "b")) -> log_tables.LogTables:
    """Two processes, of which one has two lookups with details, and a problem."""
    reading = Reading()
    codes = [reading.details.add([component(name, "x"), component("all", "y")])[0] for name in components]
    one = Process(source=source, kind="trace", pid=7)
    one.lookups = [LookupRow(cache="fxgraph", time=5, cache_key="f1", detail_set=code) for code in codes]
    reading.processes = [one, Process(source=source, kind="text", pid=8)]
    reading.problem(source, "line 1", "truncated", "why")
    return log_tables.LogTables.of(source, reading)


def held(log: log_tables.LogTables) -> dict[str, Any]:
    """What the line of a log holds."""
    line = log.to_json()
    assert line is not None and b"\n" not in line
    found: dict[str, Any] = orjson.loads(line)
    return found


def checked(held: dict[str, Any]) -> str | None:
    assert log_tables.is_of_this_version(held)
    try:
        log_tables.check_log(held)
    except ValueError as error:
        return str(error)
    return None


def test_what_a_reader_returns_is_right() -> None:
    assert checked(held(log())) is None
    assert checked(held(log_tables.LogTables.of("/log", Reading()))) is None


def codes(*numbers: int) -> str:
    return b64encode(struct.pack(f"<{len(numbers)}i", *numbers)).decode()


@pytest.mark.parametrize(("path", "value", "said"), [
    ("source", None, "source is no str"),
    ("components", "ab", "components is no list"),
    ("problems kind", "other", "problems has what is no list"),
    ("problems kind", [], "problems has columns of several lengths"),
    ("processes kind 0", 1, "processes has a kind of another type"),
    ("processes pid 0", True, "processes has a pid of another type"),
    ("lookups cache 0", ["fxgraph"], "lookups has a cache of another type"),
    ("processes kind 0", None, "processes has no kind in a row"),
    ("processes kind 0", "other", "processes has a kind that is none"),
    ("processes is_cut 0", None, "processes has no is_cut in a row"),
    ("processes gpus 0", [1], "processes has a gpus with what is no text"),
    ("processes pid 0", None, None),
    ("processes pid 0", -1, f"processes has a pid beyond 0 and {MOST_OF_A_COLUMN}"),
    ("processes exit_status 0", -1, None),
    ("processes clock_first_us 0", 400 * 86_400_000_000, None),
    ("processes clock_first_us 0", 400 * 86_400_000_000 + 1, f"processes has a clock_first_us beyond 0 and {400 * 86_400_000_000}"),
    ("processes start_time 0", MOST_NS, None),
    ("processes start_time 0", MOST_NS + 1, f"processes has a start_time beyond 0 and {MOST_NS}"),
    ("processes start_time 0", 0, None),
    ("processes start_time 0", -1, f"processes has a start_time beyond 0 and {MOST_NS}"),
    ("processes lookups 0", 1, "lookups are not as many as said"),
    ("processes lookups 1", 1, "lookups are not as many as said"),
    ("lookups cache 0", "other", "lookups has a cache that is none"),
    ("lookups outcome 0", "other", "lookups has a outcome that is none"),
    ("lookups outcome 0", "hit", None),
    ("lookups segment 0", None, "lookups has no segment in a row"),
    ("lookups time_taken_ns 0", -MOST_NS_OF_A_DURATION, None),
    ("lookups time_taken_ns 0", -MOST_NS_OF_A_DURATION - 1, f"lookups has a time_taken_ns beyond {-MOST_NS_OF_A_DURATION} and {MOST_NS_OF_A_DURATION}"),
    ("lookups detail_set 0", None, None),
    ("lookups detail_set 0", 1, None),
    ("lookups detail_set 0", 2, "detail_set point nowhere"),
    ("lookups detail_set 0", -1, f"lookups has a detail_set beyond 0 and {MOST_OF_A_COLUMN}"),
    ("lookups detail_set 1", MOST_OF_A_COLUMN + 1, f"lookups has a detail_set beyond 0 and {MOST_OF_A_COLUMN}"),
    ("problems kind 0", None, "problems has no kind in a row"),
    ("set_sizes", [2, None], "set_sizes has what is no size"),
    ("set_sizes", [5, -1], "set_sizes has what is no size"),
    ("set_sizes", [4, 0], None),
    ("set_sizes", [2, 1], "set_codes are not as many as said"),
    ("set_codes", codes(0, 1, 2, 0), None),
    ("set_codes", codes(0, 1, 2), "set_codes are not as many as said"),
    ("set_codes", codes(0, 1, 2, 3), "set_codes point nowhere"),
    ("set_codes", codes(0, 1, 2, -1), "set_codes point nowhere"),
    ("set_codes", "AA*A", "Only base64 data is allowed"),
    ("set_codes", "AAA=", "buffer size must be a multiple of element size"),
    ("components", ["a", "b"], "set_codes point nowhere"),
    ("components", ["a", None, "b"], "components has what is no text"),
])  # fmt: skip
def test_a_value_that_no_reader_returns(path: str, value: object, said: str | None) -> None:
    """A value of the log, a column of a table in it, or a row of the column."""
    place: Any = (changed := held(log()))
    *above, last = (int(part) if part.isdigit() else part for part in path.split())
    for part in above:
        place = place[part]
    place[last] = value
    assert checked(changed) == said


def test_what_another_version_wrote() -> None:
    for change in (
        lambda held: held.pop("set_codes"),
        lambda held: held.update(more=1),
        lambda held: held["lookups"].pop("order", None) or held["lookups"].pop("segment"),
        lambda held: held["processes"].update(more=[1, 2]),
        lambda held: held.update(problems=None),
    ):
        other = held(log())
        change(other)
        assert not log_tables.is_of_this_version(other)
    assert not log_tables.is_of_this_version([])


def test_a_log_comes_back_out_of_columns() -> None:
    reading = Reading()
    for one in (log("/one"), log("/two", ("c",))):
        log_tables.LogTables.from_json(held(one)).merge_into(reading)
    processes = [(one.source, one.kind, len(one.lookups)) for one in reading.processes]
    assert processes[:2] == [("/one", "trace", 2), ("/one", "text", 0)]
    assert processes[2:] == [("/two", "trace", 1), ("/two", "text", 0)]
    found = [
        [detail.field for detail in reading.details.details(lookup.detail_set)]
        for process in reading.processes
        for lookup in process.lookups
        if lookup.detail_set is not None
    ]
    assert found == [["a", "all"], ["b", "all"], ["c", "all"]]
    problems = [(problem.source, problem.where) for problem in reading.problems]
    assert problems == [("/one", "line 1"), ("/two", "line 1")]
    # Under the source that it is read from now.
    again = log_tables.LogTables.from_json(held(log("/one")), "/now")
    assert {one.source for one in (*again.processes, *again.problems)} == {"/now"}


def test_what_fits_no_column_is_not_kept() -> None:
    huge = log()
    huge.processes[0].pid = 1 << 70
    assert huge.to_json() is None
    half = log()
    half.processes[0].command = "\ud800"
    assert half.to_json() is None


def test_a_text_that_is_no_detail_is_refused() -> None:
    with pytest.raises(ValueError, match="no hash details"):
        log_tables.LogTables("/log", [], [], ["no detail"], []).add_details_to(Reading().details)


@pytest.mark.slow
def test_the_rest_is_collected_where_one_log_cannot_be_read(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(cachescope.sample("config_flip") / "trace", logs)
    whole = cachescope.read(logs)
    # A link that leads nowhere, and compression that is none: by name and by its first bytes a log all the same.
    (logs / "gone.log").symlink_to(tmp_path / "nowhere")
    count = cachescope.collect(logs, folder=tmp_path / "fleet")
    assert count == 3
    there = cachescope.read(tmp_path / "fleet")
    pd.testing.assert_frame_equal(there.tables.lookups.frame, whole.tables.lookups.frame)
    with pytest.raises(SourceError):
        cachescope.collect(tmp_path / "nowhere.log", logs, folder=tmp_path / "fleet")


@pytest.mark.slow
def test_a_log_that_goes_while_others_are_collected_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(cachescope.sample("config_flip") / "trace", logs)
    _, second, _ = sorted(logs.iterdir())
    # The package shows the function of the same name.
    module = sys.modules["cachescope.scope.collect"]
    found = logs_in

    def and_one_goes(*given: Any) -> Any:
        told = found(*given)
        second.unlink()
        return told

    monkeypatch.setattr(module, "logs_in", and_one_goes)
    assert cachescope.collect(logs, folder=tmp_path / "fleet") == 2
    problems = cachescope.read(tmp_path / "fleet").problems
    assert problems["source"].tolist() == [str(second)]
    assert problems["kind"].tolist() == ["unreadable"]
