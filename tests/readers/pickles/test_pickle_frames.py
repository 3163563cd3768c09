"""Frames of any length at any place: what `pickle.loads` refuses is damaged, and what it loads is not."""

import pickle
import pickletools
import random
import struct

import pytest

from cachescope.readers.pickles.inert_pickle import UnreadablePickle, loads_inert

PICKLES = 3_000
# No global among them: `pickle.loads` itself, which torch calls, can be asked.
VALUES = ({"a": [1, 2, "x" * 30], "b": ("y" * 100, 1.5)}, ["z" * 300, {1: b"bytes"}, None], "one text")


def framed(chance: random.Random) -> bytes:
    """A pickle without frames, and then some that nothing measured."""
    protocol = chance.choice((4, 5))
    whole = pickle.dumps(chance.choice(VALUES), protocol)
    data = whole[:2] + whole[11:] if whole[2:3] == b"\x95" else whole
    starts = [at for _, _, at in pickletools.genops(data)][1:]
    for at in sorted(chance.choices(starts, k=chance.choice((1, 1, 2, 3))), reverse=True):
        rest = len(data) - at
        near, any_length = rest + chance.randrange(-3, 4), chance.randrange(len(data))
        length = chance.choice((0, 1, rest, near, any_length, 1 << 31, (1 << 63) - 1, 1 << 63))
        data = data[:at] + b"\x95" + struct.pack("<Q", max(length, 0)) + data[at:]
    return data + b"tail" if chance.random() < 0.2 else data


def loaded(data: bytes) -> tuple[bool, object]:
    try:
        return True, pickle.loads(data)
    except Exception:
        return False, None


def read(data: bytes) -> tuple[bool, object]:
    try:
        return True, loads_inert(data)
    except UnreadablePickle:
        return False, None


def test_a_frame_is_damaged_where_python_refuses_it() -> None:
    chance = random.Random(20_263)
    sound = 0
    for _ in range(PICKLES):
        data = framed(chance)
        told = loaded(data)
        assert read(data) == told, data
        sound += told[0]
    assert PICKLES // 10 < sound < PICKLES * 9 // 10


@pytest.mark.parametrize("length", [100, 1 << 31, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_a_frame_past_the_end_is_truncated(length: int) -> None:
    data = b"\x80\x04\x95" + struct.pack("<Q", length) + b"]."
    with pytest.raises(UnreadablePickle, match="truncated") as caught:
        loads_inert(data)
    assert caught.value.what == "truncated"


@pytest.mark.parametrize(
    ("body", "value"),
    [(b"\x8c\x05hello.", "hello"), (b"X\x05\0\0\0hello.", "hello"), (b"]K\x07aK\x08a.", [7, 8])],
)
def test_a_frame_may_end_anywhere(body: bytes, value: object) -> None:
    """The program that runs is the one that was checked, even if an argument crosses the end of its frame."""
    for length in range(len(body) + 1):
        assert loads_inert(b"\x80\x04\x95" + struct.pack("<Q", length) + body) == value
        inner = b"\x80\x04" + body[:1] + b"\x95" + struct.pack("<Q", length) + body[1:]
        if body[:1] == b"]" and length < len(body):
            assert loads_inert(inner) == value
    with pytest.raises(UnreadablePickle, match="truncated"):
        loads_inert(b"\x80\x04\x95" + struct.pack("<Q", len(body) + 1) + body)
