"""What is told to be plain is what the whole check would let through, and known runs change nothing but time."""

from __future__ import annotations

import pickle
import random
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from hostile_pickles import hostile
from hypothesis import given, settings
from hypothesis import strategies as st

from cachescope.readers.pickles import plain_pickle
from cachescope.readers.pickles.inert_pickle import Limits, UnreadablePickle, loads_inert
from cachescope.readers.pickles.pickle_check import check_program
from cachescope.readers.pickles.pickle_runs import KnownRuns
from cachescope.readers.pickles.plain_pickle import Plain, is_plain

Recording = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def runs(monkeypatch: pytest.MonkeyPatch) -> KnownRuns:
    known = KnownRuns()
    monkeypatch.setattr(plain_pickle, "KNOWN_RUNS", known)
    return known


def entries_of(recording: Recording, *versions: str) -> list[bytes]:
    return [
        path.read_bytes()
        for version in versions
        for kind in ("fxgraph", "aotautograd")
        for path in sorted((recording(version, "cold_warm") / "cache" / kind).rglob("*"))
        if path.is_file()
    ]


def counted(data: bytes, known: KnownRuns | None) -> object:
    """Everything that is counted in a pickle, or that it is not plain."""
    program = Plain(data, Limits(), known)
    try:
        if not program.follow():
            return None
    except IndexError:
        return None
    counts = program.steps, program.memo, program.tuples, program.nested
    return *counts, program.tuple_slots, program.fetched


def let_through(data: bytes) -> bool:
    """Whether the check that follows every value lets a pickle through.

    Or finds its keys too costly: its bound is another one, for it knows which tuples are keys, and squares
    their parts. Or finds something taken that is not there, which the unpickler itself refuses.
    """
    try:
        return check_program(data, Limits()) == []
    except UnreadablePickle as error:
        if error.what == "not a pickle: takes what is not there":
            with pytest.raises(UnreadablePickle):
                loads_inert(data)
            return True
        return error.what == "hashes or copies too much"


def code(text: str) -> bytes:
    return b"\x8c" + bytes([len(text)]) + text.encode()


# Pieces that push, take, mark, remember, and reach below what is theirs.
PIECES = [
    *(code(text) for text in ("", "a", "b" * 60, "c" * 255)),
    b"X\x10\x08\x00\x00" + b"x" * 0x810,
    *(bytes([op]) for op in b"N]}\x8f)\x94(012ate\x85\x86\x87\x90\x91\x93R\x81b.sudl"),
    b"K\x07",
    b"\x8a\x02ab",
    b"h\x00",
    b"q\x00",
    b"h\x02",
    b"j\x01\x00\x00\x00",
    b"cm\nn\n",
    b"\x95" + b"\x10" + b"\x00" * 7,
]
SECTIONS = [
    b"".join(code(f"{word} {number}") + b"\x94" for number in range(8)) for word in ("one", "two" * 20)
] + [
    code("m") + b"\x94" + code("n") + b"\x94\x93\x94)\x81\x94}\x94(" + code("k") + b"\x94K\x01ub",
    code("deep") + b"\x85\x94" * 12 + code("z") + b"(" + code("y") + b"t\x94",
    code("set") + b"\x8f\x94(" + code("u") + b"\x85\x94" + code("v") + b"\x86\x94\x90",
    code("shared") + b"]\x94(h\x00j\x03\x00\x00\x00" + code("w") + b"\x94e",
]
programs = st.lists(st.sampled_from(SECTIONS) | st.sampled_from(PIECES), max_size=14).map(b"".join)
PRELUDE = b"\x80\x04" + b"]\x94(" + b"N]\x94(" * 2


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(programs)
def test_what_is_plain_would_be_let_through(program: bytes) -> None:
    for data in (program + b".", PRELUDE + program + b"."):
        if is_plain(data, Limits()):
            assert let_through(data)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(st.lists(programs, min_size=2, max_size=6))
def test_known_runs_count_what_following_them_counts(several: list[bytes]) -> None:
    known = KnownRuns()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_pickle, "KNOWN_RUNS", known)
        for program in several:
            for data in (PRELUDE + program + b".", PRELUDE + program * 2 + b".") * 2:
                is_plain(data, Limits())
    for program in several:
        for data in (PRELUDE + program + b".", b"N" + program * 2 + b".", program, program + b".rest"):
            assert counted(data, known) == counted(data, None)


def test_real_entries_are_plain_and_mostly_known_runs(recording: Recording, runs: KnownRuns) -> None:
    entries = entries_of(recording, "2.6.0", "2.10.0", "2.13.0", "2.15.0")
    assert len(entries) >= 8
    assert all(let_through(data) for data in entries)
    chance = random.Random(7)
    for data in chance.sample(entries * 8, len(entries) * 8):
        assert is_plain(data, Limits())
    plain = 0
    for data in entries:
        if len(data) > 20_000:
            program = Plain(data, Limits(), runs)
            program.follow()
            assert len(program.strings) * 3 < data.count(b"\x94")
        for _ in range(100):
            changed = bytearray(data)
            changed[chance.randrange(len(data))] = chance.randrange(256)
            assert counted(bytes(changed), runs) == counted(bytes(changed), None)
            if is_plain(bytes(changed), Limits()):
                plain += 1
                assert let_through(bytes(changed))
    assert plain > 100


@pytest.mark.parametrize("name", sorted(hostile("")))
def test_hostile_pickles_are_plain_only_where_the_check_lets_them_through(name: str, runs: KnownRuns) -> None:
    data = hostile("")[name]
    for _ in range(3):
        if is_plain(data, Limits()):
            assert let_through(data)
    assert counted(data, runs) == counted(data, None)


@pytest.mark.parametrize(
    "data",
    [
        b"}\x94)\x85\x94h\x01Ns.",  # a tuple from the memo
        b"])\x85\x94j\x00\x00\x00\x00\x85a.",
        b"])\x85N0\x94h\x00a.",  # remembered by MEMOIZE under another opcode
        b"])\x85Nb\x94h\x00a.",
        b"])\x85(e\x94h\x00a.",
        b"])\x852a.",  # doubled
        b"])\x85q\x00h\x00a.",  # remembered under an index
        b"]\x8a\x02ab\x94h\x00a.",
        b"(Nl.",
        b"Nr\xff\xff\xff\x7f.",
        b"\x8e\xff\xff\xff\xff\xff\xff\xff\x0f.",
        b"\x95\x01\x00\x00\x00\x00\x00\x00\x00\x8c\x01a.",  # a frame that ends within an opcode
        b"X\x01\x00\x00\x00",
        b"X\xff\xff\xff\xff.",
        b"\x82\x01.",
        b"cos\nsystem\n.",
    ],
)
def test_what_only_the_whole_check_can_tell_is_not_plain(data: bytes) -> None:
    assert not is_plain(data, Limits())


def test_limits_hold_for_plain_pickles_and_for_runs_in_them() -> None:
    lines = b"".join(code(f"line {number}") + b"\x94" for number in range(30))
    limits = Limits(opcodes=150, depth=20)
    for _ in range(3):
        assert is_plain(b"](" + lines * 3 + b"e.", limits)
        assert not is_plain(b"](" + lines * 6 + b"e.", limits)
        assert is_plain(b"]" + code("deep") + b"\x85" * 8 + b"a.", limits)
        assert not is_plain(b"]" + code("deep") + b"\x85" * 10 + b"a.", limits)
        assert not is_plain(b"]" * 30 + b"a" * 29 + b".", limits)


def test_keys_of_a_plain_pickle_that_all_collide_take_no_time() -> None:
    # Ints that are multiples of 2**61 - 1 hash to 0, and so do tuples of them to one number.
    most = 0
    for count in range(200, 4_000, 200):
        keys = b"".join(
            b"\x8a\x0a" + ((2**61 - 1) * number).to_bytes(10, "little") + b"\x85\x94N"
            for number in range(count)
        )
        data = b"\x80\x04}\x94(" + keys + b"u."
        if is_plain(data, Limits()):
            most = count
            began = time.perf_counter()
            assert len(loads_inert(data)) == count  # type: ignore[arg-type]
            assert time.perf_counter() - began < 2
    assert most >= 200


def test_the_store_is_bounded(monkeypatch: pytest.MonkeyPatch, runs: KnownRuns) -> None:
    monkeypatch.setattr(KnownRuns, "BYTES", 64 << 10)
    monkeypatch.setattr(KnownRuns, "WORTH_LEARNING", 0)
    for entry in range(200):
        data = pickle.dumps([f"{entry} line {number} of an entry" for number in range(100)], 4)
        assert is_plain(data, Limits())
        assert is_plain(data, Limits())
        kept = [run for found in runs.by_key.values() for run in found]
        assert sum(len(run.code) for run in kept) <= 64 << 10
    assert kept


def test_a_line_of_its_own_leaves_the_rest_of_a_run_known(runs: KnownRuns) -> None:
    hashes = [sha256(b"%d" % number).hexdigest()[:51] for number in range(300)]
    lines = [f"[{text}] inductor_config[option_{number}]: False" for number, text in enumerate(hashes)]
    for _ in range(2):
        assert is_plain(pickle.dumps(lines, 4), Limits())
    for at in range(0, 300, 7):
        data = pickle.dumps([*lines[:at], "a line of its own", *lines[at + 1 :]], 4)
        program = Plain(data, Limits(), runs)
        assert program.follow()
        # No more than the piece around it is followed line by line.
        assert 1 <= len(program.strings) <= KnownRuns.PIECE_BYTES // len(lines[0])
        assert counted(data, runs) == counted(data, None)


def test_large_pickles_are_neither_kept_nor_learned_from(runs: KnownRuns) -> None:
    data = pickle.dumps([f"line {number} of an entry" for number in range(60_000)], 4)
    assert len(data) > KnownRuns.LARGEST_PICKLE
    assert is_plain(data, Limits())
    assert is_plain(data, Limits())
    assert not runs.by_key


@pytest.mark.parametrize("shift", [-3, -1, 1, 3])
def test_frames_stay_only_where_they_end_between_opcodes(shift: int) -> None:
    value = [f"{number} of a long list of lines" for number in range(5_000)]
    data = pickle.dumps(value, 4)
    assert is_plain(data, Limits())
    assert check_program(data, Limits()) == []
    at = data.index(b"\x95", 20)
    length = int.from_bytes(data[at + 1 : at + 9], "little") + shift
    wrong = data[: at + 1] + length.to_bytes(8, "little") + data[at + 9 :]
    assert not is_plain(wrong, Limits())
    assert len(check_program(wrong, Limits())) >= 2
    assert loads_inert(wrong) == value


def test_runs_that_are_given_up_are_not_walked_again_and_again(
    runs: KnownRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked: list[int] = []
    end_in_run = plain_pickle.end_in_run
    monkeypatch.setattr(
        plain_pickle, "end_in_run", lambda data, pos: walked.append(pos) or end_in_run(data, pos)
    )
    # Each string begins what is the same in both, and is of no use after two opcodes.
    framed = b"\x95" + (3).to_bytes(8, "little") + code("a")
    data = b"](" + framed * 9_000 + b"\x95" + (2).to_bytes(8, "little") + b"e."
    is_plain(data, Limits())
    is_plain(data, Limits())
    assert 0 < len(walked) <= 3 * len(data) // 10
    assert not runs.by_key
