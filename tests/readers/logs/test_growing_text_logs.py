"""A text log that has grown is read from where it ended, and gives what reading it anew gives."""

import random
import re
from collections import deque
from itertools import accumulate, groupby
from pathlib import Path

import pytest

from tests.conftest import Recording
from tests.readers.logs.growing import (
    assert_as_anew,
    assert_same,
    can_go_on,
    folded,
    goes_on,
    keep,
    read_anew,
    read_on,
    written,
)
from tests.readers.logs.test_text_lookups import Log, key, writing

WRITTEN = [
    ("2.13.0", "four_processes"),
    ("2.13.0", "entry_truncated"),
    ("2.13.0", "bypass_custom_pass"),
    ("2.13.0", "logs_out"),
    ("2.6.0", "dynamic_guards"),
    ("2.10.0", "training"),
    ("2.15.0", "config_flip"),
]
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
def test_between_messages_it_goes_on_and_is_what_it_is_when_read_anew(
    log: list[bytes], tmp_path: Path
) -> None:
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
def test_from_anywhere_it_is_what_it_is_when_read_anew_or_is_read_anew(
    log: list[bytes], tmp_path: Path
) -> None:
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
def test_a_log_made_by_hand_goes_on_from_any_line_behind_which_nothing_waits(
    cut: int, tmp_path: Path
) -> None:
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
