"""A log that has grown, a trace or a text log, is read from where it ended, and gives what reading it anew gives, wherever it was cut."""

import os
import random
import re
from collections import deque
from itertools import accumulate, groupby, pairwise
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from cachescope.readers.logs.log_events import LogKind
from cachescope.readers.reading import Reading
from tests.conftest import Recording
from tests.readers.logs.growing import (
    TRACES,
    assert_as_anew,
    assert_same,
    can_go_on,
    folded,
    goes_on,
    keep,
    one_trace,
    read_anew,
    read_on,
    written,
)
from tests.readers.logs.test_text_lookups import Log, key, writing
from tests.readers.logs.test_trace_process import (
    IDS,
    NOON_NS,
    artifact,
    begins,
    disabled,
    event,
    looked_up,
    metrics,
    prefix,
    record,
)

RECORD = re.compile(rb"\n(?![\t])")


@pytest.fixture(scope="module", params=TRACES, ids=" ".join)
def trace(request: pytest.FixtureRequest, recording: Recording) -> bytes:
    return one_trace(recording(*request.param))


def ends_of_records(data: bytes) -> list[int]:
    return [match.end() for match in RECORD.finditer(data)]


def a_few(rng: random.Random, data: bytes) -> list[int]:
    """Places to cut at: behind records, and anywhere."""
    ends = ends_of_records(data)
    return sorted(
        {rng.choice(ends) if rng.random() < 0.6 else rng.randrange(100, len(data)) for _ in range(3)}
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_log_that_grew_in_steps_is_as_read_anew(seed: int, trace: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    cuts = a_few(random.Random(seed), trace)
    written(path, trace[: cuts[0]])
    before = keep(path)
    for last, cut in pairwise([*cuts, len(trace)]):
        written(path, trace[:cut])
        is_whole = trace[last - 1 : last] == b"\n" and trace[last : last + 1] != b"\t"
        on = read_on(path, before)
        assert (on is not None) == is_whole
        before = keep(path) if on is None else on
        assert_same(folded(path, before), read_anew(path))


def test_a_log_that_ends_within_a_record_has_no_way_on(trace: bytes, tmp_path: Path) -> None:
    ends = ends_of_records(trace)
    # The longest record, where it is cut.
    start, end = max(pairwise(ends), key=lambda pair: pair[1] - pair[0])
    line_end = trace.index(b"\n", start) + 1
    assert trace[line_end : line_end + 1] == b"\t"
    for cut in (start + 1, line_end - 1, line_end, line_end + 1, (line_end + end) // 2, end - 1):
        assert goes_on(tmp_path / "a.log", trace[:cut], trace)[1] is False


def places(data: bytes, shares: tuple[float, ...]) -> list[int]:
    ends = ends_of_records(data)
    return [ends[int(share * (len(ends) - 1))] for share in shares]


@pytest.mark.slow
def test_a_job_that_is_followed_is_read_whole_once(kept: list[str], trace: bytes, tmp_path: Path) -> None:
    """A look in mid-record costs nothing later."""
    path = tmp_path / "a.log"
    first, second, third = places(trace, (0.2, 0.5, 0.9))
    for cut in (first, second + 40, third, len(trace)):
        assert_as_anew(written(path, trace[:cut]))
    assert kept == [str(path)]


def another(data: bytes) -> bytes:
    """What another process would have written, byte for byte as long."""
    return re.sub(rb"(?m)^([VIWEC]\d{4} \d\d:)(\d)", rb"\g<1>5", data)


def test_one_put_in_its_place_while_it_is_read_is_read_whole(
    kept: list[str], recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = min((recording("2.13.0", "tour") / "trace").iterdir()).read_bytes()
    path = written(tmp_path / "a.log", trace[: places(trace, (0.5,))[0]])
    cachescope.read(path)
    written(path, trace)

    read_on = LogKind.read_on

    def replaced_first(self: LogKind, name: str, reading: Reading) -> bool:
        path.with_name("other").write_bytes(another(trace))
        os.replace(path.with_name("other"), path)
        return read_on(self, name, reading)

    monkeypatch.setattr(LogKind, "read_on", replaced_first)
    here = cachescope.read(path)
    monkeypatch.undo()
    pd.testing.assert_frame_equal(here.lookups, cachescope.read(path, index=False).lookups)


OTHER = {"frame_id": 1, "frame_compile_id": 0}
FRAME = {"name": "f", "line": 3, "filename": 2}


def aot(outcome: str, second: float, ids: dict[str, int] | None = None, **told: object) -> str:
    return artifact(f"aotautograd_cache_{outcome}", {"key": "a" + "b" * 51, **told}, second, ids)


# What a record means may depend on those before it: the compile of an id, a text by its number, the clock.
RECORDS = [
    looked_up("miss", 1), record({"str": ["/mine.py", 2]}, None, 2), begins(3, stack=[FRAME]),
    aot("miss", 4, cache_event_time=NOON_NS + 4 * 10**9), looked_up("miss", 5),
    looked_up("miss", 6, ids=OTHER), begins(7, OTHER, stack=[FRAME]), metrics(8),
    looked_up("hit", 9, ids=OTHER), metrics(10, OTHER, fail_type="E", fail_reason="why"), begins(11),
    looked_up("hit", 12), looked_up("hit", 13, ids={**IDS, "rank": 3}), aot("hit", 14),
    artifact("fx_graph_cache_bypass", {"cache_event_time": NOON_NS, "cache_bypass_reason": "no"}, 15),
    event(16, 3, args={"cache_state": "bypass", "cache_event_time": NOON_NS}),
    record({"inductor_output_code": {"filename": "/cache/ab/cabc.py"}}, "text", 17),
    metrics(18, pytorch_version="2.13.0", python_version="3.12.1"), aot("miss", 19, OTHER),
    metrics(20, OTHER, kind="bwd_compilation_metrics", fail_type="F"),
    artifact("torch_version", {"pytorch_version": "2.14.0"}, 21), disabled(22, 2),
    looked_up("hit", 23, payload={"key": 3}), "no record\n",
    looked_up("miss", 24, ids={"frame_id": 2, "frame_compile_id": 0}),
    # It may have ended as well, with no record of it.
    metrics(25, OTHER),
]  # fmt: skip


def made(*records: str) -> bytes:
    return "".join(records).encode()


@pytest.mark.parametrize("cut", range(1, len(RECORDS) + 1))
def test_a_trace_made_by_hand_goes_on_from_any_record(cut: int, tmp_path: Path) -> None:
    whole = made(*RECORDS, looked_up("hit", 26))
    assert goes_on(tmp_path / "a.log", made(*RECORDS[:cut]), whole) == (True, True)


def test_where_nothing_more_is_there_or_a_payload_continues_there_is_no_way_on(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    before = keep(written(path, made(RECORDS[0])))
    assert can_go_on(before)
    assert read_on(path, before) is None
    assert read_on(written(path, (RECORDS[0] + "\tmore of the payload\n").encode()), before) is None


def test_the_year_of_a_log_is_that_of_its_file_until_an_event_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    first = made(*RECORDS[:3])
    assert read_anew(written(path, first)).processes[0].start_time is not None
    year = 365 * 86_400
    stamped = f'{prefix(30)}{{"chromium_event": {{}}}}\n\t{{"name": "x", "ts": {(NOON_NS // 10**9 + 30 - 2 * year) * 10**6}.0}}\n'
    later = stamped.replace(str(NOON_NS // 10**9 + 30 - 2 * year), str(NOON_NS // 10**9 + 30))
    whole = made(*RECORDS[:3], stamped, later)
    assert goes_on(path, first, whole) == (True, True)
    assert read_anew(path).processes[0].start_time == NOON_NS + 10**9 - 2 * year * 10**9
    # And one that was shown stays, however the log goes on.
    assert goes_on(path, made(*RECORDS[:3], stamped), whole) == (True, True)


WRITTEN = [
    ("2.13.0", "four_processes"), ("2.13.0", "entry_truncated"), ("2.13.0", "bypass_custom_pass"),
    ("2.13.0", "logs_out"), ("2.6.0", "dynamic_guards"), ("2.10.0", "training"), ("2.15.0", "config_flip"),
]  # fmt: skip
HEAD = re.compile(rb"[VIWEC]\d{4} \S+ \d+ [^\]]*\](?: \[[-!\d/_]+\])?")


@pytest.fixture(scope="module", params=WRITTEN, ids=" ".join)
def log(request: pytest.FixtureRequest, recording: Recording) -> list[bytes]:
    """The messages of all processes of a recording in turns, as those that write to one file leave them."""
    version, scenario = request.param
    texts = sorted((recording(version, scenario) / "text").iterdir())
    rest = [deque(messages(path.read_bytes())) for path in texts]
    rng = random.Random(len(rest))
    found: list[bytes] = []
    while rest := [one for one in rest if one]:
        one = rng.choice(rest)
        found += [one.popleft() for _ in range(min(rng.randrange(1, 6), len(one)))]
    assert len(found) > 10
    return found


def messages(data: bytes) -> list[bytes]:
    """Each message with all its lines: those of one call of a logger begin with the same bytes."""
    head = b""

    def head_of(line: bytes) -> bytes:
        nonlocal head
        match = HEAD.match(line)
        head = match[0] if match else head
        return head

    return [b"".join(lines) for _, lines in groupby(data.splitlines(keepends=True), key=head_of)]


def cut_places(log: list[bytes]) -> list[int]:
    """Some forty ends of messages, and the end."""
    ends = list(accumulate(map(len, log)))
    return [*ends[:: max(len(ends) // 40, 1)], ends[-1]]


@pytest.mark.slow
def test_between_messages_it_goes_on_and_is_as_read_anew(log: list[bytes], tmp_path: Path) -> None:
    data = b"".join(log)
    path = tmp_path / "a.log"
    before, went_on = None, 0
    for end in cut_places(log):
        written(path, data[:end])
        if before is not None:
            on = read_on(path, before)
            assert on is not None
            assert_same(folded(path, on), read_anew(path))
            went_on += 1
        anew = keep(path)
        before = anew if can_go_on(anew) else before
    assert went_on >= 10


def test_processes_stand_in_the_order_of_their_first_lines(recording: Recording, tmp_path: Path) -> None:
    texts = sorted((recording("2.13.0", "four_processes") / "text").iterdir())
    one, other = (messages(path.read_bytes()) for path in texts[:2])
    del one[: next(at for at, message in enumerate(one) if b"hash details for key" not in message)]
    # The first message of the one goes on, for all that can be known, until its second begins.
    log = [one[0], *other, *one[1:]]
    path = tmp_path / "a.log"
    assert goes_on(path, b"".join(log[: len(other) + 1]), b"".join(log)) == (True, True)
    assert read_anew(path).processes[0].pid == read_anew(texts[0]).processes[0].pid


@pytest.mark.slow
def test_from_anywhere_it_is_as_read_anew_or_is_read_anew(log: list[bytes], tmp_path: Path) -> None:
    data = b"".join(log)
    rng = random.Random(len(data))
    # Most lines are hash details, behind which nothing goes on: so also around the ends of messages.
    ends = list(accumulate(map(len, log)))[:-1]
    around = {end + shift for end in rng.sample(ends, min(len(ends), 12)) for shift in (-1, 0, 1, 40)}
    lines = [match.end() for match in re.finditer(b"\n", data)]
    cuts = sorted({*around, *rng.sample(lines, 20), *(rng.randrange(len(data)) for _ in range(5))})
    found = [goes_on(tmp_path / "a.log", data[:cut], data)[1] for cut in cuts]
    assert any(found)


@pytest.mark.slow
def test_one_that_is_followed_is_read_whole_once(kept: list[str], log: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    data = b"".join(log)
    # The first look finds something to go on from, and more than is probed.
    first = next(
        end
        for end in cut_places(log)
        if end > 10_000 and can_go_on(keep(written(tmp_path / f"{end}.log", data[:end])))
    )
    for end in (first, (first + len(data)) // 2, len(data)):
        assert_as_anew(written(path, data[:end]))
    assert kept == [str(path)]


GUARDS = f"fx graph cache key {key('f1')} evaluating guards L['t0'] > 4 with values [3] => hit=False"
MADE = (
    Log()
    .say("first")  # 1
    .details("a1")  # 3
    .say(GUARDS)  # 4
    .outcome("f1", "miss")  # 5
    .say("fx graph unable to load compiled graph: EOFError: no")  # 6
    .outcome("f2", "miss")  # 7
    .outcome("a1", "miss")  # 8
    .say(writing("a1"))  # 9
    .say("Bypassing autograd cache due to: no")  # 10
    .details("f3")  # 12
    .say("between", "7/0")  # 13
    .outcome("f3", "hit")  # 14
    .outcome("a2", "miss", "1/0")  # 15
    .outcome("f4", "miss", "1/0")  # 16
    .say("fx graph unable to write to cache\nTraceback\nOSError: full", "1/0")  # 19
    .outcome("f5", "hit", "1/0")  # 20
    .outcome("a3", "hit", "1/0")  # 21
    .outcome("a4", "hit", "1/0")  # 22
)
# Behind hash details, which may continue.
NO_WAY_ON = {2, 3, 11, 12}
# Within a message, which seems whole until its next line is there.
CONTINUED = {17, 18}


def goes_on_behind(path: Path, lines: list[str], cut: int) -> tuple[bool, bool]:
    return goes_on(path, *(("\n".join(some) + "\n").encode() for some in (lines[:cut], lines)))


@pytest.mark.parametrize("cut", range(1, len(MADE.lines) + 1))
def test_a_made_log_goes_on_from_any_line_behind_which_nothing_waits(cut: int, tmp_path: Path) -> None:
    found = goes_on_behind(tmp_path / "a.log", MADE.lines, cut)
    assert found == (cut not in NO_WAY_ON, cut not in NO_WAY_ON | CONTINUED)


def test_the_lines_of_two_processes_go_on_from_one_state(tmp_path: Path) -> None:
    other = Log(pid=8).say("x").outcome("f7", "hit").outcome("a7", "miss").outcome("f8", "miss").details("a8")
    other.say(writing("a8")).say(GUARDS).outcome("f1", "miss", "1/0").outcome("a9", "hit", "1/0")
    lines = [
        line
        for at, own in enumerate(MADE.lines)
        for line in ([own, other.lines[at]] if at < len(other.lines) else [own])
    ]
    found = [goes_on_behind(tmp_path / "a.log", lines, cut) for cut in range(1, len(lines) + 1)]
    assert found.count((True, True)) >= 12
    assert found[-1] == (True, True)


OF_2_4 = f"FX graph cache hash details for key {key('a1')}:\n[{'h' * 51}] gm: g"


@pytest.mark.parametrize(("log", "wanted"), [
    # What was written had missed, though no line says so.
    (Log().details("a1").say(writing("a1")).outcome("f2", "hit", "1/0"), ["full_miss", "hit"]),
    (Log().details("a1").say("x").say(writing("a1")), ["full_miss"]),
    (Log().details("a1").say(writing("a1")).outcome("a1", "miss"), ["full_miss"]),
    # Of a graph that is looked up twice, the entry was there and named it in vain.
    (Log().details("a1").outcome("f1", "miss").details("f1").outcome("f1", "miss").outcome("f2", "hit"),
     ["full_miss", "full_miss", "full_miss", "hit"]),
    # 2.4 says no outcome of AOTAutograd at all.
    (Log().say(OF_2_4).say("x").outcome("f1", "miss").outcome("f2", "hit"), ["full_miss", "full_miss", "hit"]),
    (Log().say(OF_2_4).outcome("f1", "hit").outcome("f1", "hit"), ["unknown", "hit", "hit"]),
])  # fmt: skip
def test_an_outcome_that_no_line_says_is_known_wherever_reading_goes_on(
    log: Log, wanted: list[str], tmp_path: Path
) -> None:
    found = [goes_on_behind(tmp_path / "a.log", log.lines, cut) for cut in range(1, len(log.lines) + 1)]
    assert (True, True) in found[:-1]
    assert [one.outcome for one in read_anew(tmp_path / "a.log").processes[0].lookups] == wanted


def test_a_log_that_is_named_stays_so(tmp_path: Path) -> None:
    """What names a stream is decided by the first lines, and kept."""
    lines = [f"any text {line}" for line in Log().outcome("f1", "hit").outcome("f2", "hit").lines]
    lines += [f"more text {line}" for line in Log().outcome("f3", "hit").lines]
    assert goes_on_behind(tmp_path / "a.log", lines, 2) == (True, True)
    # Of a rank, too.
    ranked = [f"[rank3]:{line}" for line in Log().outcome("f1", "hit").outcome("f2", "hit").lines]
    assert goes_on_behind(tmp_path / "a.log", ranked, 1) == (True, True)
    assert read_anew(tmp_path / "a.log").processes[0].rank == 3


def test_a_problem_is_at_its_line_wherever_reading_goes_on(tmp_path: Path) -> None:
    lines = Log().outcome("f1", "hit").outcome("f2", "hit").lines
    lines += [line.replace("I1120", "I1320") for line in Log().outcome("f3", "hit").lines]
    assert goes_on_behind(tmp_path / "a.log", lines, 1) == (True, True)
    assert [one.where for one in read_anew(tmp_path / "a.log").problems] == ["line 3"]


def test_where_a_clock_went_back_the_log_is_read_anew(tmp_path: Path) -> None:
    lines = [line for hour in (10, 8) for line in Log(hour).outcome("a1", "miss").outcome("f1", "miss").lines]
    found = [goes_on_behind(tmp_path / "a.log", lines, cut) for cut in (2, 3)]
    assert found == [(True, False), (True, True)]


def test_a_log_of_short_lines_has_no_way_on(recording: Recording, tmp_path: Path) -> None:
    real = next((recording("2.13.0", "text_short") / "text").iterdir()).read_bytes()
    assert not can_go_on(keep(written(tmp_path / "short.log", real)))
    short = f"INFO:torch._inductor.codecache:fx graph cache hit for key {key('f1')}"
    assert goes_on_behind(tmp_path / "a.log", [short, short], 1) == (False, False)
    # Nor has one in which a single process writes them.
    mixed = [*Log().outcome("f1", "hit").lines, short]
    assert goes_on_behind(tmp_path / "a.log", mixed, 2)[0] is False
