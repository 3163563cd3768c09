"""What messages of torch's loggers say one after the other: messages in, lookups out; made by hand in torch's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachescope.readers.logs.text_log import read_text_log
from cachescope.readers.reading import Process, Reading

FILE = "torch/_inductor/codecache.py:1646"


# Keys of torch are letters and the digits from 2 to 7.
_DIGITS = str.maketrans("0129", "wxyz")
_BACK = str.maketrans("wxyz", "0129")


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
        self.lines += [
            f"{level}{moment} {self.pid} {FILE}] [{compile_id}] {line}" for line in text.split("\n")
        ]
        return self

    def details(self, name: str, compile_id: str = "0/0", fields: dict[str, str] | None = None) -> Log:
        which = "Autograd" if name[0] == "a" else "FX"
        lines = [f"[{'h' * 51}] {field}: {text}" for field, text in (fields or {"gm": "g"}).items()]
        return self.say(
            "\n".join([f"{which} graph cache hash details for key {key(name)}:", *lines]), compile_id, "V"
        )

    def outcome(self, name: str, state: str, compile_id: str = "0/0") -> Log:
        which = "AOTAutograd" if name[0] == "a" else "fx graph"
        return self.say(f"{which} cache {state} for key {key(name)}", compile_id)

    def read(self, folder: Path) -> list[Process]:
        path = folder / "made.log"
        path.write_text("\n".join(self.lines) + "\n")
        reading = Reading()
        read_text_log(str(path), reading)
        return reading.processes


def told(processes: list[Process]) -> list[list[str]]:
    return [
        [
            f"{(lookup.cache_key or '-').rstrip('q').translate(_BACK)} {lookup.outcome}"
            for lookup in process.lookups
        ]
        for process in processes
    ]


def writing(name: str) -> str:
    return f"Writing AOTAutograd cache entry to /cache/aotautograd/{key(name)}/entry"


@pytest.mark.parametrize(
    ("log", "wanted"),
    [
        (Log().details("a1").outcome("a1", "miss").details("f1").outcome("f1", "miss"), "a1 full_miss, f1 full_miss"),
        (Log().outcome("a1", "miss").outcome("f1", "miss"), "a1 full_miss, f1 full_miss"),
        (Log().details("a1").details("f1").outcome("f1", "hit").outcome("a1", "hit"), "a1 hit, f1 hit"),
        # The line of its outcome is lost, and perhaps others: the graph may be of a later lookup.
        (Log().details("a1").details("f1").outcome("f1", "miss"), "a1 unknown, f1 full_miss"),
        # Its entry names a graph that is gone: no line says that it missed, and the graph is looked up twice.
        (
            Log().details("a1").outcome("f1", "miss").details("f1").outcome("f1", "miss"),
            "a1 full_miss, f1 full_miss, f1 full_miss",
        ),
        (
            Log().details("a1").outcome("f1", "miss").details("f2").outcome("f2", "miss"),
            "a1 unknown, f1 full_miss, f2 full_miss",
        ),
        (Log().details("a1").details("f1").outcome("f1", "hit"), "a1 unknown, f1 hit"),
        (Log().details("a1").details("f1"), "a1 unknown, f1 unknown"),
        (
            Log().details("a1").details("f1", "1/0").outcome("f1", "miss", "1/0"),
            "a1 unknown, f1 full_miss",
        ),
        (
            Log().details("f0").outcome("f0", "miss").details("a1").details("f1").outcome("f1", "hit"),
            "f0 full_miss, a1 unknown, f1 hit",
        ),
        (
            Log().details("a1").details("a2").details("f2").outcome("f2", "miss").outcome("a2", "miss"),
            "a1 unknown, a2 full_miss, f2 full_miss",
        ),
        # It was written: so it had missed.
        (Log().details("a1").say(writing("a1")), "a1 full_miss"),
        (Log().details("a1").say(writing("a9")), "a1 unknown"),
        (Log().details("a1").say(writing("a1"), "1/0"), "a1 unknown"),
        # What cannot be stored is no second lookup.
        (
            Log().details("a1").outcome("a1", "miss").say("Bypassing autograd cache due to: no"),
            "a1 full_miss",
        ),
        (Log().say("Bypassing autograd cache due to: no"), "- bypass"),
        (Log().say("Bypassing FX Graph Cache because 'no'"), "- bypass"),
        (
            Log().details("a1").outcome("a1", "hit").say("Bypassing autograd cache due to: no"),
            "a1 hit, - bypass",
        ),
        (
            Log().outcome("a1", "miss").say("Bypassing autograd cache due to: no", "1/0"),
            "a1 full_miss, - bypass",
        ),
    ],
)  # fmt: skip
def test_what_was_looked_up(log: Log, wanted: str, tmp_path: Path) -> None:
    (found,) = told(log.read(tmp_path))
    assert sorted(found) == sorted(wanted.split(", "))


def test_guards_belong_to_the_next_outcome_of_their_key(tmp_path: Path) -> None:
    guards = f"fx graph cache key {key('f1')} evaluating guards L['t0'] > 4 with values [3] => hit=False"
    (process,) = Log().details("f1").say(guards).outcome("f1", "miss").read(tmp_path)
    (lookup,) = process.lookups
    assert (lookup.outcome, lookup.guards_expr) == ("guard_miss", "L['t0'] > 4")
    (process,) = Log().details("f1").say(guards).outcome("f1", "hit").read(tmp_path)
    assert process.lookups[0].outcome == "hit"
    # Those that held are no reason, and what waited for an outcome that never came is forgotten.
    (process,) = Log().say(guards.replace("False", "True")).outcome("f1", "miss").read(tmp_path)
    assert process.lookups[0].outcome == "full_miss"
    (process,) = Log().say(guards).details("f1").outcome("f1", "miss").read(tmp_path)
    assert process.lookups[0].outcome == "full_miss"


def test_why_an_entry_was_not_loaded_or_stored(tmp_path: Path) -> None:
    (process,) = (
        Log().details("f1").say("fx graph unable to load compiled graph: EOFError: no").outcome("f1", "miss").read(tmp_path)
    )  # fmt: skip
    assert process.lookups[0].load_error == "EOFError: no"
    log = Log().details("f1").outcome("f1", "miss").say("fx graph unable to write to cache: OSError: full")
    (process,) = log.read(tmp_path)
    assert process.lookups[0].save_error == "OSError: full"
    log = Log().outcome("f1", "miss").say("AOTAutograd cache unable to serialize compiled graph: E: x")
    assert log.read(tmp_path)[0].lookups[0].save_error is None


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
    assert one.start_time_ns is not None and two.start_time_ns is not None
    assert one.start_time_ns - two.start_time_ns == 2 * hour * 1_000
