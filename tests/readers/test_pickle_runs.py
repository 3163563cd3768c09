"""Known runs of opcodes may change how fast a pickle is followed, and nothing else."""

from __future__ import annotations

import contextlib
import pickle
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile_pickles import hostile
from hypothesis import given, settings
from hypothesis import strategies as st

from cachescope.readers import pickle_check
from cachescope.readers.inert_pickle import Limits, UnreadablePickle, loads_inert
from cachescope.readers.pickle_check import Program
from cachescope.readers.pickle_runs import KnownRuns

Recording = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def runs(monkeypatch: pytest.MonkeyPatch) -> KnownRuns:
    known = KnownRuns()
    monkeypatch.setattr(pickle_check, "KNOWN_RUNS", known)
    return known


def followed(data: bytes, known: KnownRuns | None) -> object:
    """Everything the check knows about a pickle at its end, or what it found wrong with it."""
    program = Program(data, Limits(), known)
    try:
        program.run()
    except UnreadablePickle as error:
        return error.what, error.offset
    except IndexError:
        return "takes what is not there", program.pos
    return program.stack, program.marks, program.memo, program.work, program.frames, program.pos


def learn(data: bytes) -> None:
    # Twice, because what is learned is what two pickles have in common.
    for _ in range(2):
        try:
            pickle_check.check_program(data, Limits())
        except UnreadablePickle:
            return


def code(text: str) -> bytes:
    return b"\x8c" + bytes([len(text)]) + text.encode()


# Pieces that push, take, mark, remember, and reach below what is theirs.
PIECES = [
    *(code(text) for text in ("", "a", "b" * 60, "c" * 255)),
    b"X\x10\x08\x00\x00" + b"x" * 0x810,
    *(bytes([op]) for op in b"N]}\x8f)\x94(012ate\x85\x86\x87\x90\x91\x93R\x81b.sudl"),
    b"K\x07",
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
    code("m") + b"\x94" + code("n") + b"\x94\x93\x94)\x81\x94}\x94(" + code("k") + b"\x94K\x01",
    code("deep") + b"\x85" * 12 + b"\x94" + code("z") + b"(" + code("y") + b"1",
    code("set") + b"\x8f(" + code("u") + b"\x85" + code("v") + b"\x86\x900",
]


@settings(max_examples=500, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from(SECTIONS) | st.sampled_from(PIECES), max_size=14).map(b"".join),
        min_size=2,
        max_size=6,
    )
)
def test_known_runs_leave_the_same_as_following_them(programs: list[bytes]) -> None:
    known = KnownRuns()
    # A prelude with much below, so that most pieces find what they take.
    prelude = b"\x80\x04" + b"]\x94(" + b"(N)\x94" * 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pickle_check, "KNOWN_RUNS", known)
        for program in programs:
            learn(prelude + program + b".")
            learn(prelude + program + program + b".")
    for program in programs:
        for data in (prelude + program + b".", b"N" + program * 2 + b".", program, program + b".rest"):
            assert followed(data, known) == followed(data, None)


def test_real_entries_are_followed_by_known_runs(recording: Recording, runs: KnownRuns) -> None:
    folders = [recording(version, "cold_warm") / "cache" for version in ("2.10.0", "2.13.0", "2.15.0")]
    entries = [
        path.read_bytes()
        for folder in folders
        for kind in ("fxgraph", "aotautograd")
        for path in sorted((folder / kind).rglob("*"))
        if path.is_file()
    ]
    assert len(entries) >= 6
    for data in entries:
        learn(data)
    chance = random.Random(7)
    for data in entries:
        program = Program(data, Limits(), runs)
        program.run()
        assert len(program.strings) * 3 < data.count(b"\x94")
        assert followed(data, runs) == followed(data, None)
        for _ in range(100):
            changed = bytearray(data)
            changed[chance.randrange(len(data))] = chance.randrange(256)
            assert followed(bytes(changed), runs) == followed(bytes(changed), None)


def test_a_run_ends_before_an_opcode_that_reaches_below_it() -> None:
    start = code("a" * 40) + b"\x94" + code("b") + b"\x94" + code("c") + code("d")
    for reaches in (b"0" * 5, b"\x87\x86\x86", b"a" * 4, b"t", b"1", b"(0" + b"0" * 5, b"\x93\x93\x93\x93"):
        run = pickle_check.run_alone(start + reaches)
        assert run is not None
        assert len(start) <= len(run.code) < len(start + reaches)


@pytest.mark.parametrize("opcode", [b"h\x00", b"j\x00\x00\x00\x00", b"g0\n", b"q\x00", b"r\x00\x00\x00\x00"])
def test_no_run_names_a_memo_index(opcode: bytes, runs: KnownRuns) -> None:
    line = code("a" * 60)
    learn(b"]\x94" + (line + opcode) * 40 + b".")
    assert not any(opcode in run.code for known in runs.by_first.values() for run in known)


def test_known_runs_count_against_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickle_check, "_LIMITS", Limits(opcodes=100, depth=20))
    limits = Limits(opcodes=100, depth=20)
    lines = b"".join(code(f"line {number}") + b"\x94" for number in range(30))
    for _ in range(3):
        loads_inert(b"](" + lines + b"e.", limits)
        loads_inert(b"](" + lines * 3 + b"e.", limits)
        with pytest.raises(UnreadablePickle, match="more than 100 opcodes"):
            loads_inert(b"](" + lines * 4 + b"e.", limits)
    # Sixteen levels within a run, and more around it.
    deep = code("deep") + b"\x85" * 16
    for _ in range(3):
        loads_inert(b"N" + deep + b"\x85.", limits)
        with pytest.raises(UnreadablePickle, match="deeper than 20"):
            loads_inert(b"N" + deep + b"\x85" * 5 + b".", limits)


def test_other_limits_do_not_use_runs() -> None:
    data = pickle.dumps([("a" * 40, f"{number}") for number in range(50)], 4)
    learn(data)
    with pytest.raises(UnreadablePickle, match="deeper than 1"):
        loads_inert(data, Limits(depth=1))


def test_work_in_a_known_run_is_spent_every_time(runs: KnownRuns) -> None:
    keys = (
        code("keys") + b"\x8f(" + b"".join(code(f"key {number}") + b"\x85" for number in range(200)) + b"\x90"
    )
    learn(b"(" + keys * 2 + b"l.")
    assert any(run.work for known in runs.by_first.values() for run in known)
    with pytest.raises(UnreadablePickle, match="hashes or copies too much"):
        loads_inert(b"(" + keys * 30 + b"l.")


def test_hostile_pickles_are_refused_among_known_runs(tmp_path: Path, runs: KnownRuns) -> None:
    sentinel = tmp_path / "executed"
    programs = hostile(str(sentinel))
    expected = {name: followed(data, None) for name, data in programs.items()}
    for _ in range(3):
        for name, data in programs.items():
            with contextlib.suppress(UnreadablePickle):
                loads_inert(data)
            assert followed(data, runs) == expected[name]
    assert not sentinel.exists()


def test_the_store_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KnownRuns, "BYTES", 64 << 10)
    known = KnownRuns()
    monkeypatch.setattr(pickle_check, "KNOWN_RUNS", known)
    for entry in range(200):
        learn(pickle.dumps([f"{entry} line {number} of an entry" for number in range(100)], 4))
        kept = [run for runs in known.by_first.values() for run in runs]
        assert sum(len(run.code) + 8 * (len(run.stack) + len(run.memo)) for run in kept) <= 64 << 10
    assert kept


def test_large_pickles_are_neither_kept_nor_learned_from(runs: KnownRuns) -> None:
    data = pickle.dumps([f"line {number} of an entry" for number in range(60_000)], 4)
    assert len(data) > KnownRuns.LARGEST_PICKLE
    learn(data)
    assert not runs.by_first


@pytest.mark.parametrize("shift", [-3, -1, 1, 3])
def test_frames_stay_only_where_they_end_between_opcodes(shift: int) -> None:
    value = [f"{number} of a long list of lines" for number in range(5_000)]
    data = pickle.dumps(value, 4)
    assert pickle_check.check_program(data, Limits()) == []
    at = data.index(b"\x95", 20)
    length = int.from_bytes(data[at + 1 : at + 9], "little") + shift
    wrong = data[: at + 1] + length.to_bytes(8, "little") + data[at + 9 :]
    assert len(pickle_check.check_program(wrong, Limits())) >= 2
    assert loads_inert(wrong) == value


def test_runs_that_are_given_up_are_not_walked_again_and_again(
    runs: KnownRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked: list[int] = []
    alone = pickle_check.run_alone
    monkeypatch.setattr(pickle_check, "run_alone", lambda code: walked.append(len(code)) or alone(code))
    # Each string begins what is the same in both, and is of no use after two opcodes.
    data = b"N" * 9_000 + (code("a") + b"00") * 4_000 + b"."
    learn(data)
    assert sum(walked) <= len(data) + KnownRuns.RUN_BYTES
