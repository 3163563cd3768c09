"""What messages of torch's loggers say one after the other: messages in, lookups out; made by hand in torch's words."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from cachescope.readers.logs.text_log import TEXT
from cachescope.readers.logs.text_messages import Message
from cachescope.readers.reading import Process, Reading
from tests.readers.logs.growing import can_go_on, keep
from tests.readings import read_by

FILE = "torch/_inductor/codecache.py:1646"


# Keys of torch are letters and the digits from 2 to 7.
_DIGITS = str.maketrans("0129", "wxyz")
_BACK = str.maketrans("wxyz", "0129")


FORWARD = {"gm": "g", "fx_kwargs[is_backward]": "False", "fx_kwargs[is_inference]": "False"}
BACKWARD = FORWARD | {"fx_kwargs[is_backward]": "True"}


def key(name: str) -> str:
    """A key as long as torch's."""
    return name.translate(_DIGITS).ljust(52, "q")


class Log:
    """A log, message by message; the clock goes on by a second with each."""

    def __init__(self, hour: int = 10, pid: int = 7) -> None:
        self.lines: list[str] = []
        self.hour, self.pid = hour, pid

    def say(self, text: str, compile_id: str = "0/0", level: str = "I") -> Log:
        moment = f"1120 {self.hour:02}:{len(self.lines) // 60:02}:{len(self.lines) % 60:02}.000000"
        head = f"{level}{moment} {self.pid} {FILE}] [{compile_id}]"
        self.lines += [f"{head} {line}" for line in text.split("\n")]
        return self

    def details(self, name: str, compile_id: str = "0/0", fields: dict[str, str] | None = None) -> Log:
        which = "Autograd" if name[0] == "a" else "FX"
        lines = [f"[{'h' * 51}] {field}: {text}" for field, text in (fields or {"gm": "g"}).items()]
        head = f"{which} graph cache hash details for key {key(name)}:"
        return self.say("\n".join([head, *lines]), compile_id, "V")

    def outcome(self, name: str, state: str, compile_id: str = "0/0") -> Log:
        which = "AOTAutograd" if name[0] == "a" else "fx graph"
        return self.say(f"{which} cache {state} for key {key(name)}", compile_id)

    def read(self, folder: Path) -> list[Process]:
        return read_lines(self.lines, folder).processes


def read_lines(lines: list[str], folder: Path) -> Reading:
    path = folder / "made.log"
    path.write_text("\n".join(lines) + "\n")
    return read_by(TEXT.read, str(path))


def name_of(cache_key: str | None) -> str:
    return (cache_key or "-").rstrip("q").translate(_BACK)


def told(processes: list[Process]) -> list[list[str]]:
    return [[f"{name_of(one.cache_key)} {one.outcome}" for one in process.lookups] for process in processes]


def writing(name: str) -> str:
    return f"Writing AOTAutograd cache entry to /cache/aotautograd/{key(name)}/entry"


@pytest.mark.parametrize(("log", "wanted"), [
    (Log().details("a1").outcome("a1", "miss").details("f1").outcome("f1", "miss"), "a1 full_miss, f1 full_miss"),
    (Log().outcome("a1", "miss").outcome("f1", "miss"), "a1 full_miss, f1 full_miss"),
    (Log().details("a1").details("f1").outcome("f1", "hit").outcome("a1", "hit"), "a1 hit, f1 hit"),
    # The line of its outcome is lost, and perhaps others: the graph may be of a later lookup.
    (Log().details("a1").details("f1").outcome("f1", "miss"), "a1 unknown, f1 full_miss"),
    # Its entry names a graph that is gone: no line says that it missed, and the graph is looked up twice.
    (Log().details("a1").outcome("f1", "miss").details("f1").outcome("f1", "miss"), "a1 full_miss, f1 full_miss, f1 full_miss"),
    (Log().details("a1").outcome("f1", "miss").details("f2").outcome("f2", "miss"), "a1 unknown, f1 full_miss, f2 full_miss"),
    (Log().details("a1").details("f1").outcome("f1", "hit"), "a1 unknown, f1 hit"),
    (Log().details("a1").details("f1"), "a1 unknown, f1 unknown"),
    (Log().details("a1").details("f1", "1/0").outcome("f1", "miss", "1/0"), "a1 unknown, f1 full_miss"),
    # A graph that is looked up twice by another compile says nothing of this one.
    (Log().details("a1").outcome("f1", "miss", "1/0").details("f1", "1/0").outcome("f1", "miss", "1/0"), "a1 unknown, f1 full_miss, f1 full_miss"),
    (Log().details("f0").outcome("f0", "miss").details("a1").details("f1").outcome("f1", "hit"), "f0 full_miss, a1 unknown, f1 hit"),
    (Log().details("a1").details("a2").details("f2").outcome("f2", "miss").outcome("a2", "miss"), "a1 unknown, a2 full_miss, f2 full_miss"),
    # It was written: so it had missed.
    (Log().details("a1").say(writing("a1")), "a1 full_miss"),
    (Log().details("a1").say(writing("a9")), "a1 unknown"),
    (Log().details("a1").say(writing("a1"), "1/0"), "a1 unknown"),
    # What cannot be stored is no second lookup.
    (Log().details("a1").outcome("a1", "miss").say("Bypassing autograd cache due to: no"), "a1 full_miss"),
    # Of a training graph, once its backward graph is compiled: after a reset, a bypass is of the function that has the compile id now.
    (Log().outcome("a1", "miss").details("f1", fields=FORWARD).outcome("f1", "miss").say("Bypassing autograd cache due to: no"),
     "a1 full_miss, f1 full_miss, - bypass"),
    (Log().outcome("a1", "miss").details("f1", fields=FORWARD).outcome("f1", "miss").details("f2", fields=BACKWARD).outcome("f2", "miss")
     .say("Bypassing autograd cache due to: no"), "a1 full_miss, f1 full_miss, f2 full_miss"),
    (Log().say("Bypassing autograd cache due to: no"), "- bypass"),
    (Log().say("Bypassing FX Graph Cache because 'no'"), "- bypass"),
    (Log().details("a1").outcome("a1", "hit").say("Bypassing autograd cache due to: no"), "a1 hit, - bypass"),
    (Log().outcome("a1", "miss").say("Bypassing autograd cache due to: no", "1/0"), "a1 full_miss, - bypass"),
])  # fmt: skip
def test_what_was_looked_up(log: Log, wanted: str, tmp_path: Path) -> None:
    (found,) = told(log.read(tmp_path))
    assert sorted(found) == sorted(wanted.split(", "))


def guards(name: str, hit: bool) -> str:
    return f"fx graph cache key {key(name)} evaluating guards L['t0'] > 4 with values [3] => hit={hit}"


POST_LOAD = f"fx graph cache key {key('f1')} post-load guards: L['t0'] > 4"
NO = "Bypassing autograd cache due to: no"
CANNOT_LOAD = "AOTAutograd cache unable to load compiled graph\nTraceback\n  more\nEOFError: no"
CANNOT_WRITE = "fx graph unable to write to cache\nTraceback\nOSError: full"
# It calls keys of both caches FX keys, and says no outcome of AOTAutograd.
OF_2_4 = f"FX graph cache hash details for key {key('a1')}:\n[{'h' * 51}] gm: g"


@pytest.mark.parametrize(("log", "column", "wanted"), [
    # Guards belong to the next outcome of their key.
    (Log().details("f1").say(guards("f1", False)).outcome("f1", "miss"), "guards_expr", "guard_miss L['t0'] > 4"),
    (Log().details("f1").say(guards("f1", False)).outcome("f1", "hit"), "guards_expr", "hit None"),
    # Those that held are no reason, and what waited for an outcome that never came is forgotten.
    (Log().say(guards("f1", True)).outcome("f1", "miss"), "guards_expr", "full_miss None"),
    (Log().say(guards("f1", False)).details("f1").outcome("f1", "miss"), "guards_expr", "full_miss None"),
    # Some are checked after loading.
    (Log().outcome("f2", "hit").outcome("f1", "hit").say(POST_LOAD).outcome("f3", "hit"), "guards_expr", "hit None, hit L['t0'] > 4, hit None"),
    (Log().outcome("f1", "hit").outcome("f1", "hit").say(POST_LOAD), "guards_expr", "hit None, hit L['t0'] > 4"),
    # Why an entry was not loaded or stored: the last line, where the first does not say it.
    (Log().details("f1").say("fx graph unable to load compiled graph: EOFError: no").outcome("f1", "miss"), "load_error", "full_miss EOFError: no"),
    (Log().say(CANNOT_LOAD).outcome("a1", "miss").outcome("f1", "miss"), "load_error", "full_miss EOFError: no, full_miss None"),
    # Of a directory that is none, as torch 2.15 says it.
    (Log().details("a1").say("AOTAutogradCache unable to list cache entries\nTraceback\nNotADirectoryError: [Errno 20]").outcome("a1", "miss"), "load_error", "full_miss NotADirectoryError: [Errno 20]"),
    # Of an error of the system torch 2.6 to 2.15 log the path alone, and compile again.
    (Log().details("f1").say("Failed to load artifact: /c/ek/cek.py").outcome("f1", "miss"), "load_error", "full_miss Failed to load artifact: /c/ek/cek.py"),
    (Log().details("f1").outcome("f1", "miss").say("fx graph unable to write to cache: OSError: full"), "save_error", "full_miss OSError: full"),
    (Log().outcome("f1", "miss").say("AOTAutograd cache unable to serialize compiled graph: E: x"), "save_error", "full_miss None"),
    (Log().outcome("f1", "miss").outcome("f2", "miss", "1/0").outcome("a3", "miss").say(CANNOT_WRITE), "save_error", "full_miss OSError: full, full_miss None, full_miss None"),
    (Log().outcome("f1", "miss").outcome("f1", "miss").say(CANNOT_WRITE), "save_error", "full_miss None, full_miss OSError: full"),
    # What was bypassed when it was to be stored; if its outcome is lost, one or the other was.
    (Log().outcome("a1", "miss").say(NO).say(NO), "save_bypass", "full_miss no, bypass None"),
    (Log().outcome("a1", "miss").say(NO).say(NO), "bypass_reason", "full_miss None, bypass no"),
    (Log().details("a1").say(NO), "save_bypass", "unknown None"),
    (Log().details("a1").outcome("f1", "miss").details("f1").outcome("f1", "miss").say(NO), "save_bypass", "full_miss no, full_miss None, full_miss None"),
    (Log().outcome("a1", "miss").say(writing("a1")).say(NO), "save_bypass", "full_miss None, bypass None"),
    (Log().outcome("f1", "miss").say("Bypassing FX Graph Cache because 'why'"), "bypass_reason", "full_miss None, bypass why"),
    (Log().say(OF_2_4).details("f1").outcome("f1", "miss"), "cache", "full_miss aotautograd, full_miss fxgraph"),
    (Log().say(OF_2_4).details("f1").outcome("f1", "hit"), "cache", "unknown aotautograd, hit fxgraph"),
])  # fmt: skip
def test_what_is_said_of_a_lookup(log: Log, column: str, wanted: str, tmp_path: Path) -> None:
    (process,) = log.read(tmp_path)
    assert [f"{one.outcome} {getattr(one, column)}" for one in process.lookups] == wanted.split(", ")


def test_another_process_under_one_pid_has_its_own_times_and_directory(tmp_path: Path) -> None:
    first, second = Log(10), Log(8)
    for log, folder in ((first, "/one"), (second, "/two")):
        log.details("a1").outcome("a1", "miss").outcome("f1", "miss")
        log.say(writing("a1").replace("/cache", folder))
    first.lines += second.lines
    one, two = first.read(tmp_path)
    assert told([one, two]) == [["a1 full_miss", "f1 full_miss"]] * 2
    assert (one.cache_dir, two.cache_dir) == ("/one", "/two")
    assert None not in (one.clock_first_us, one.clock_last_us, two.clock_first_us, two.clock_last_us)
    hour = 3_600_000_000
    assert one.clock_first_us - two.clock_first_us == 2 * hour  # type: ignore[operator]
    # The first ends with its last lookup, the second with its last line.
    assert one.clock_last_us - one.clock_first_us == 3_000_000  # type: ignore[operator]
    assert two.clock_last_us - two.clock_first_us == 4_000_000  # type: ignore[operator]
    assert one.start_time is not None and two.start_time is not None
    assert one.start_time - two.start_time == 2 * hour * 1_000


MISSING = "the line of its outcome is missing"
END = "the log ends before the outcome"


@pytest.mark.parametrize(("log", "wanted"), [
    (Log().details("a1").outcome("a1", "miss").details("f1").outcome("f1", "miss"), []),
    (Log().details("f1"), [("f1", END)]),
    # Of AOTAutograd it may come much later.
    (Log().details("a1"), []),
    (Log().details("f1").details("f2").outcome("f2", "hit"), [("f1", MISSING)]),
    (Log().details("a1").details("a2").outcome("a2", "hit"), [("a1", MISSING)]),
    (Log().details("f1").details("a2").outcome("a2", "hit"), [("f1", MISSING)]),
    # It had missed: nothing is lost.
    (Log().details("a1").outcome("f1", "miss").details("f1").outcome("f1", "miss").details("a2").outcome("a2", "hit"), []),
])  # fmt: skip
def test_a_lost_outcome_is_a_problem(log: Log, wanted: list[tuple[str, str]], tmp_path: Path) -> None:
    reading = read_lines(log.lines, tmp_path)
    found = [(one.where, one.message) for one in reading.problems]
    assert found == [(f"key {key(name)}", message) for name, message in wanted]
    assert {(one.kind, one.source) for one in reading.problems} <= {("truncated", str(tmp_path / "made.log"))}


@pytest.mark.parametrize(("log", "wanted"), [
    (Log().details("a1").outcome("a1", "miss").details("f1").outcome("f1", "miss"), "a1 1, f1 1"),
    (Log().details("a1").outcome("a1", "hit").details("a2").outcome("a2", "hit"), "a1 1, a2 2"),
    (Log().details("a1").details("a2", "1/0").details("f1"), "a1 1, a2 1, f1 1"),
    # Without details, a miss is logged before the lookups that follow it, a hit after those that it holds.
    (Log().outcome("a1", "miss").outcome("f1", "miss").outcome("a2", "miss").outcome("f2", "miss"), "a1 1, f1 1, a2 2, f2 2"),
    (Log().outcome("f1", "hit").outcome("a1", "hit").outcome("f2", "hit").outcome("a2", "hit"), "f1 0, a1 0, f2 1, a2 1"),
    (Log().details("f1").outcome("f1", "miss").details("f2").outcome("f2", "miss"), "f1 0, f2 0"),
])  # fmt: skip
def test_which_compile_of_an_id_a_lookup_is_of(log: Log, wanted: str, tmp_path: Path) -> None:
    (process,) = log.read(tmp_path)
    found = [f"{name_of(one.cache_key)} {one.segment}" for one in process.lookups]
    assert sorted(found) == sorted(wanted.split(", "))


def waited(name: str, seconds: int, state: str = "hit", other: str | None = "1/0") -> Log:
    """An outcome so many seconds after the details, perhaps after a lookup of another compile."""
    log = Log().details(name)
    if other is not None:
        log.details("f9", other).outcome("f9", "miss", other)
    while len(log.lines) < seconds + len(Log().details(name).lines):
        log.say("something else", "7/0")
    return log.outcome(name, state)


@pytest.mark.parametrize(("log", "count", "lost"), [
    (waited("f1", 9), 3, ["f1"]),
    (waited("f1", 9, "miss"), 3, ["f1"]),
    (waited("a1", 9), 3, []),
    # The graphs of a miss are compiled in between.
    (waited("a1", 9, "miss"), 2, []),
    (waited("f1", 9, other=None), 1, []),
    (waited("f1", 9, other="0/0"), 3, ["f1"]),
])  # fmt: skip
def test_an_outcome_long_after_is_that_of_a_later_lookup(
    log: Log, count: int, lost: list[str], tmp_path: Path
) -> None:
    """Of the lookup before its outcome is lost."""
    reading = read_lines(log.lines, tmp_path)
    assert sum(len(process.lookups) for process in reading.processes) == count
    found = [(one.where, one.message) for one in reading.problems]
    assert found == [(f"key {key(name)}", MISSING) for name in lost]


def test_lines_that_two_processes_write_at_once_are_of_one_moment(tmp_path: Path) -> None:
    def found(seconds: int) -> int:
        stamp = "I1120 10:00:%02d.000000 7 torch/_inductor/codecache.py:1646] [%s] %s"
        lines = [
            stamp % (0, "0/0", f"FX graph cache hash details for key {key('f1')}:"),
            stamp % (0, "0/0", f"[{'h' * 51}] gm: g"),
            stamp % (0, "1/0", f"fx graph cache miss for key {key('f2')}"),
            stamp % (seconds, "0/0", f"fx graph cache hit for key {key('f1')}"),
        ]
        return sum(len(one.lookups) for one in read_lines(lines, tmp_path).processes)

    assert [found(seconds) for seconds in (0, 2, 3)] == [2, 2, 3]


def test_a_reason_that_is_cut_is_none(tmp_path: Path) -> None:
    lines = Log().outcome("a1", "hit").say("Bypassing autograd cache due to: not").lines
    (tmp_path / "cut.log").write_text("\n".join(lines))
    reading = read_by(TEXT.read, str(tmp_path / "cut.log"))
    assert [one.outcome for one in reading.processes[0].lookups] == ["hit"]
    (problem,) = reading.problems
    assert (problem.where, problem.message) == ("line 2", "the log ends within torch's reason")


def test_where_an_entry_was_written(tmp_path: Path) -> None:
    log = Log().outcome("a1", "miss").outcome("a2", "miss", "1/0").say(writing("a1"))
    (process,) = log.say(writing("a2").replace("/cache", "/other"), "1/0").read(tmp_path)
    for lookup, folder in zip(process.lookups, ("/cache", "/other"), strict=True):
        assert lookup.entry_path == f"{folder}/aotautograd/{lookup.cache_key}/entry"
    assert process.cache_dir == "/cache"


def test_an_entry_is_of_the_lookup_of_its_key(tmp_path: Path) -> None:
    """Torch stores a training graph after its backward graph: after a reset, and after another function has the compile id."""
    log = Log().outcome("a1", "miss").outcome("a2", "miss").say(writing("a2")).say(writing("a1"))
    (process,) = log.read(tmp_path)
    paths = [lookup.entry_path for lookup in process.lookups]
    assert paths == [f"/cache/aotautograd/{lookup.cache_key}/entry" for lookup in process.lookups]


def test_details_without_a_line_are_cut(tmp_path: Path) -> None:
    log = Log().say(f"FX graph cache hash details for key {key('f1')}:").outcome("f1", "hit")
    ((one,),) = (process.lookups for process in log.read(tmp_path))
    assert (one.detail_set, one.is_details_cut, one.outcome) == (None, True, "hit")
    (process,) = Log().details("f1").outcome("f1", "hit").read(tmp_path)
    assert process.lookups[0].detail_set is not None


LONG = "9" * 5_000
PREFIX = "I1120 10:00:00.000000 7 torch/_inductor/codecache.py:1646] "
SAID = "fx graph cache hit for key "


@pytest.mark.parametrize(("line", "wrong"), [
    (f"{PREFIX}[0/0] {SAID}", []),
    (f"{PREFIX.replace('1120', '1320')}[0/0] {SAID}", ["the time of its prefix is none"]),
    (f"{PREFIX.replace(' 7 ', f' {10**18} ')}[0/0] {SAID}", ["no process has the pid of its prefix"]),
    (f"{PREFIX.replace(' 7 ', f' {LONG} ')}[0/0] {SAID}", ["no process has the pid of its prefix"]),
    (f"[rank12345678901]:{PREFIX}[0/0] {SAID}", ["no process has the rank before its prefix"]),
    (f"[rank{LONG}]:{PREFIX}[0/0] {SAID}", ["no process has the rank before its prefix"]),
])  # fmt: skip
def test_a_prefix_that_is_wrong_is_a_problem_once(line: str, wrong: list[str], tmp_path: Path) -> None:
    reading = read_lines([f"{line}{key('f1')}", f"{line}{key('f2')}"], tmp_path)
    assert [(one.where, one.kind, one.message) for one in reading.problems] == [
        ("line 1", "bad_value", message) for message in wrong
    ]
    assert len(reading.processes[0].lookups) == 2
    assert {one.time is None for one in reading.processes[0].lookups} == {"time" in "".join(wrong)}


@pytest.mark.parametrize(("compile_id", "wanted"), [
    ("[0/0] ", "0/0"),
    ("[-] ", None),
    ("", None),
    ("[!3/1/2_1] ", "!3/1/2_1"),
    (f"[0/0_{LONG}] ", f"0/0_{LONG}"),
])  # fmt: skip
def test_the_compile_id_of_a_line(compile_id: str, wanted: str | None, tmp_path: Path) -> None:
    lines = [f"{PREFIX}{compile_id}{SAID}{key(name)}" for name in ("f1", "f2")]
    (process,) = read_lines(lines, tmp_path).processes
    assert [one.compile_id for one in process.lookups] == [wanted] * 2


SHORT = "INFO:torch._inductor.codecache:"


def test_short_lines_have_neither_time_nor_process(tmp_path: Path) -> None:
    lines = [
        f"[one]:{SHORT}FX graph cache hash details for key {key('f1')}:",
        f"[one]:[{'h' * 51}] gm: g",
        "[one]:more of g",
        "[two]:more of another",
        f"[two]:{SHORT}{SAID}{key('f2')}",
        f"[one]:{SHORT}{SAID}{key('f1')}",
    ]
    reading = read_lines(lines, tmp_path)
    found = [[(x.cache_key, x.outcome, x.time) for x in one.lookups] for one in reading.processes]
    assert found == [[(key("f1"), "hit", None)], [(key("f2"), "hit", None)]]
    code = reading.processes[0].lookups[0].detail_set
    assert code is not None
    assert [one.value_text for one in reading.details.details(code)] == ["g\nmore of g"]
    assert [one.pid for one in reading.processes] == [None, None]


def test_two_processes_whose_lines_alternate(tmp_path: Path) -> None:
    details = Log().details("f1").outcome("f1", "miss").lines
    others = [line.replace(" 7 ", " 8 ").replace(key("f1"), key("f2")) for line in details]
    mixed = [line for pair in zip(details, others, strict=True) for line in pair]
    reading = read_lines(mixed, tmp_path)
    found = [(one.pid, [x.cache_key for x in one.lookups]) for one in reading.processes]
    assert found == [(7, [key("f1")]), (8, [key("f2")])]


def test_a_lookup_begins_with_its_details_and_is_written_down_with_its_outcome(tmp_path: Path) -> None:
    log = Log().say("first").details("f1").say("between").outcome("f1", "hit")
    (process,) = log.outcome("f2", "hit", "1/0").read(tmp_path)
    one, two = process.lookups
    start = process.start_time
    assert start is not None and one.time is not None and one.logged_time is not None and two.time is not None
    second = 10**9
    assert (one.time - start, one.logged_time - start) == (1 * second, 4 * second)
    assert (two.time - start, two.logged_time) == (5 * second, two.time)
    # Without an outcome it is written down when it began.
    (process,) = Log().details("f1").read(tmp_path)
    assert process.lookups[0].logged_time == process.lookups[0].time == process.start_time


def test_each_of_two_processes_ends_with_what_it_wrote_last(tmp_path: Path) -> None:
    def ended(*logs: Log) -> list[int]:
        lines = [line for log in logs for line in log.lines]
        found = []
        for one in read_lines(lines, tmp_path).processes:
            assert one.clock_first_us is not None and one.clock_last_us is not None
            found.append((one.clock_last_us - one.clock_first_us) // 10**6)
        return found

    last = Log(8).outcome("a1", "miss").outcome("f1", "miss")
    # With the outcome of its last lookup, or where that is lost with its details.
    two = Log().outcome("f1", "miss").details("f2"), Log(8).details("f1").outcome("f1", "miss")
    assert ended(*two) == [1, 2]
    assert ended(Log().outcome("a1", "miss").details("f1").say("x").outcome("f1", "miss"), last) == [4, 1]
    assert ended(Log().outcome("a1", "miss").outcome("f2", "miss").details("f1"), last) == [2, 1]
    three = [Log(hour).outcome("a1", "miss").details("f1").outcome("f1", "miss") for hour in (10, 8, 6)]
    assert ended(*three) == [3, 3, 3]


def test_only_entries_of_its_own_say_where_a_process_stores(tmp_path: Path) -> None:
    first = Log().outcome("a1", "miss").say(writing("a1"))
    second = Log(8).outcome("a1", "miss").outcome("f1", "miss")
    reading = read_lines([*first.lines, *second.lines], tmp_path)
    assert [one.cache_dir for one in reading.processes] == ["/cache", None]


def test_lines_that_are_no_details_are_a_problem(tmp_path: Path) -> None:
    said = f"FX graph cache hash details for key {key('f1')}:\nno detail\n[{'h' * 51}] gm: g"
    reading = read_lines(Log().outcome("f2", "hit").say(said).outcome("f1", "hit").lines, tmp_path)
    assert [(one.where, one.kind) for one in reading.problems] == [("line 2", "hash_detail")]
    assert reading.processes[0].lookups[1].detail_set is not None


def test_a_line_that_is_too_long_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachescope.readers.logs.log_lines._MOST_BYTES_OF_A_LINE", 200)
    reading = read_lines([*Log().outcome("f1", "hit").lines, *Log().say("x" * 200).lines], tmp_path)
    assert [(one.where, one.kind) for one in reading.problems] == [("line 2", "limit")]


def test_a_log_that_breaks_off_is_a_problem_at_its_end(tmp_path: Path) -> None:
    data = "\n".join(Log().outcome("f1", "hit").lines * 2000).encode()
    (tmp_path / "cut.log.gz").write_bytes(gzip.compress(data)[:-30])
    reading = read_by(TEXT.read, str(tmp_path / "cut.log.gz"))
    assert [(one.where, one.kind) for one in reading.problems] == [("end", "damaged_compression")]
    # One that is packed, and one that ends within a line, cannot be read on; a whole one can.
    for end, compress, can in (("\n", False, True), ("", False, False), ("\n", True, False)):
        path = tmp_path / "whole.log"
        whole = ("\n".join(Log().outcome("f1", "hit").lines) + end).encode()
        path.write_bytes(gzip.compress(whole) if compress else whole)
        assert can_go_on(keep(path)) is can


def test_processes_without_a_lookup_are_none(tmp_path: Path) -> None:
    other = [line.replace(" 7 ", " 8 ") for line in Log().say("something").lines]
    reading = read_lines([*other, *Log().outcome("f1", "hit").lines], tmp_path)
    assert [one.pid for one in reading.processes] == [7]
    assert read_lines(other, tmp_path).processes == []


def test_without_a_clock_no_outcome_is_late(tmp_path: Path) -> None:
    log = Log().details("f1").details("f9", "1/0").outcome("f9", "miss", "1/0")
    log.say("x").say("y").outcome("f1", "hit")
    for first, last in ((True, True), (True, False), (False, True)):
        lines = list(log.lines)
        if first:
            lines[:2] = [line.replace("V1120", "V1320") for line in lines[:2]]
        if last:
            lines[-1] = lines[-1].replace("I1120", "I1320")
        (process,) = read_lines(lines, tmp_path).processes
        assert [one.outcome for one in process.lookups if one.cache_key == key("f1")] == ["hit"]


def test_a_file_of_no_age_gives_no_times(tmp_path: Path) -> None:
    path = tmp_path / "old.log"
    path.write_text("\n".join(Log().details("f1").outcome("f1", "hit").lines) + "\n")
    os.utime(path, (5, 5))
    (process,) = read_by(TEXT.read, str(path)).processes
    assert process.start_time is process.lookups[0].time is process.lookups[0].logged_time is None


def test_a_message_takes_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachescope.readers.logs.text_messages._MOST_BYTES_OF_A_MESSAGE", 4)
    message = Message(1, "I", "x", [b"first"])
    for lines, size, too_long in (([b"abcd"], 4, 0), ([b"e"], 5, 0), ([], 5, 0), ([b"f"], 5, 1)):
        message.go_on(lines)
        assert (message.size, message.is_too_long) == (size, too_long)
    assert message.lines == [b"first", b"abcd", b"e"]


# Two ranks under torchrun compile a function, then make a process group, compile another one in it, destroy it, and compile a third one. By
# torch's counters each had 3 misses in either cache. The lines are torch 2.13's of TORCH_LOGS="torch._inductor.codecache,torch._functorch._aot_autograd.autograd_cache".
OF_TWO_RANKS = """\
I1129 00:11:44.694000 7528 {aot} [0/0] AOTAutograd cache miss for key a233iv62ueo2nnzs5vj2255n2faxdyw32nv5sz7bck4twhpvs6zu
I1129 00:11:45.266000 7527 {aot} [0/0] AOTAutograd cache miss for key a233iv62ueo2nnzs5vj2255n2faxdyw32nv5sz7bck4twhpvs6zu
I1129 00:11:45.324000 7528 {fx} [0/0] fx graph cache miss for key fcyl4vpscspc2p7pxy3z4sa376t77b5dmttxya2xzlq3qo5tbuam
I1129 00:11:45.922000 7527 {fx} [0/0] fx graph cache miss for key fcyl4vpscspc2p7pxy3z4sa376t77b5dmttxya2xzlq3qo5tbuam
[rank1]:I1129 00:12:03.906000 7528 {aot} [1/0] AOTAutograd cache miss for key acni7sx7okuckutinljzihijlj2qudtepp6ohem6s246ptj7fcoa
[rank0]:I1129 00:12:03.966000 7527 {aot} [1/0] AOTAutograd cache miss for key acni7sx7okuckutinljzihijlj2qudtepp6ohem6s246ptj7fcoa
[rank1]:I1129 00:12:03.965000 7528 {fx} [1/0] fx graph cache miss for key fx5o43nba35hzxjfrnwwpfgjm6vdkvjevw4m42a44blq5xuif5sr
[rank0]:I1129 00:12:04.050000 7527 {fx} [1/0] fx graph cache miss for key fx5o43nba35hzxjfrnwwpfgjm6vdkvjevw4m42a44blq5xuif5sr
I1129 00:12:05.737000 7527 {aot} [2/0] AOTAutograd cache miss for key ai7suk3wsdsuvo3lnokjl2kabbiclegzicffvp2xqenlwkgljxkd
I1129 00:12:05.738000 7528 {aot} [2/0] AOTAutograd cache miss for key ai7suk3wsdsuvo3lnokjl2kabbiclegzicffvp2xqenlwkgljxkd
I1129 00:12:05.780000 7528 {fx} [2/0] fx graph cache miss for key fzqorhsfpmxxbch7dxvk4235n5qwe32c5kdwztmjmub6nzqahdts
I1129 00:12:05.876000 7527 {fx} [2/0] fx graph cache miss for key fzqorhsfpmxxbch7dxvk4235n5qwe32c5kdwztmjmub6nzqahdts
""".format(
    aot="torch/_functorch/_aot_autograd/autograd_cache.py:1055]", fx="torch/_inductor/codecache.py:2316]"
)


def test_what_a_rank_compiled_before_and_after_its_process_group_is_of_the_rank(tmp_path: Path) -> None:
    lines = OF_TWO_RANKS.splitlines()
    one, other = read_lines(lines, tmp_path).processes
    assert {(one.pid, one.rank), (other.pid, other.rank)} == {(7527, 0), (7528, 1)}
    for process in (one, other):
        assert [row.compile_id for row in process.lookups] == ["0/0", "0/0", "1/0", "1/0", "2/0", "2/0"]
        times = [row.time for row in process.lookups]
        assert times == sorted(times) and process.start_time == times[0]
        assert process.clock_last_us - process.clock_first_us == (times[-1] - times[0]) // 1000
    # Containers that share a pid: which of them wrote the lines without a rank is not known.
    shared = [line.replace(" 7528 ", " 7527 ") for line in lines]
    assert {process.rank for process in read_lines(shared, tmp_path).processes} == {None, 0, 1}
    # Another program, which had that pid and no process group.
    another = [line.replace("[1/0]", "[0/0]") for line in lines if "7527" in line]
    assert {process.rank for process in read_lines(another, tmp_path).processes} == {None, 0}


def test_what_torch_says_before_a_bypass_is_quoted_by_no_problem(tmp_path: Path) -> None:
    log = Log().say("fx graph cache no shape env", level="V")
    log.say("Bypassing FX Graph Cache because 'No shape env'")
    assert not read_lines(log.lines, tmp_path).problems
    assert len(read_lines(Log().say("fx graph cache new words", level="V").lines, tmp_path).problems) == 1


@pytest.mark.parametrize(("said", "status"), [
    ("Sending process 8 closing signal SIGTERM", 143),
    ("Terminating process 8 via signal SIGTERM", 143),
    ("failed (exitcode: -9) local_rank: 1 (pid: 8) of binary: /usr/bin/python3", 137),
    ("failed (exitcode: 3) local_rank: 1 (pid: 8) of binary: /usr/bin/python3", 3),
    ("Sending process 9 closing signal SIGTERM", None),
])  # fmt: skip
def test_how_a_rank_ended_is_what_its_launcher_says(said: str, status: int | None, tmp_path: Path) -> None:
    ranks = [Log(pid=pid).details("f1").outcome("f1", "miss") for pid in (7, 8)]
    launcher = Log(pid=6).say(said, level="W")
    lines = [
        line.replace(" [0/0]", "") if line in launcher.lines else line
        for log in (*ranks, launcher)
        for line in log.lines
    ]
    first, second = read_lines(lines, tmp_path).processes
    assert (first.own_exit_status, second.own_exit_status) == (None, status)
