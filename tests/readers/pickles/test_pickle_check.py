"""What the check of a pickle lets pass and what it refuses, opcode by opcode: at a limit and one beyond it."""

import struct

import pytest

from cachescope.readers.pickles.inert_pickle import Limits, NotRead, UnreadablePickle
from cachescope.readers.pickles.pickle_check import check_program, frames_fit

PASSES = None
TRUNCATED = "truncated"


def checked(data: bytes, **limits: int) -> str | None:
    """None if the program passes; else what is wrong with it, with the offset, and whether it was only not read."""
    try:
        check_program(data, Limits(**limits))
    except UnreadablePickle as error:
        if error.what == "truncated":
            return error.what if error.offset == len(data) else f"truncated at {error.offset}"
        return f"{'not read: ' if isinstance(error, NotRead) else ''}{error.what} at {error.offset}"
    return PASSES


def line(text: str) -> bytes:
    return text.encode() + b"\n"


TAKES = "not a pickle: takes what is not there at"
# A tuple counts as itself, its items, and what these count as: an empty one as 1, one around it as 3.
PAIR = b")\x85"


@pytest.mark.parametrize(("data", "wanted"), [(data, wanted) for wanted, programs in [
    # Values of fixed size, each followed by what must be there.
    (PASSES, [b"N.", b"\x88\x89\x86.", b"K\x01.", b"M\x01\x02.", b"J\x01\x02\x03\x04.", b"G12345678."]),
    (TRUNCATED, [b"K.", b"M\x01.", b"J\x01\x02\x03.", b"G1234567.", b"N", b""]),
    # STOP takes a value.
    (f"{TAKES} 0", [b"."]),
    (f"{TAKES} 2", [b"N0."]),
    # Strings and bytes by their declared lengths.
    (PASSES, [b"\x8c\x02ab.", b"\x8c\x01a\x94.", b"X\x02\0\0\0ab.", b"\x8d\x02\0\0\0\0\0\0\0ab.", b"C\x02ab.",
     b"B\x02\0\0\0ab.", b"\x8e\x02\0\0\0\0\0\0\0ab.", b"\x96\x02\0\0\0\0\0\0\0ab."]),
    (TRUNCATED, [b"\x8c\x03ab.", b"\x8c", b"X\x04\0\0\0ab.", b"X\x02\0\0", b"\x8d\x04\0\0\0\0\0\0\0ab.",
     b"C\x04ab."]),
    # Numbers in bytes.
    (PASSES, [b"\x8a\x02\x01\x02.", b"\x8b\x02\0\0\0\x01\x02."]),
    (TRUNCATED, [b"\x8a\x02\x01", b"\x8b\x02\0\0"]),
    # The memo: put in order, and got back.
    (PASSES, [b"N\x94h\x00.", b"Nq\x00h\x00.", b"Nq\x00q\x01h\x01.", b"Nq\x00q\x00q\x01.",
     b"Nr\0\0\0\0j\0\0\0\0.", b"\x8c\x01a\x94h\x00."]),
    (f"{TAKES} 2", [b"N\x94h\x01.", b"N\x94j\x01\0\0\0.", b"N\x94j\0\0\0\x01."]),
    (f"{TAKES} 0", [b"\x94.", b"q\x00."]),
    ("not read: memo index 1 where 0 are in use at 1", [b"Nq\x01."]),
    ("not read: memo index 2 where 1 are in use at 3", [b"Nq\x00q\x02."]),
    (TRUNCATED, [b"N\x94j\0\0\0", b"Nr\0\0\0", b"N\x94h"]),
    ("not a pickle: no opcode 0x6b at 2", [b"N\x94k\0\0\0\0."]),
    # One put again is in the place of the one before.
    (f"{TAKES} 5", [b"Nq\x00q\x00h\x01."]),
    (PASSES, [b"Nq\x00q\x01q\x00h\x01.", b"Np0\ng0\n.", b"Np0000000000\n."]),
    ("not read: memo index 1 where 0 are in use at 1", [b"Np1\n."]),
    ("a memo index that is no number at 1", [b"Np-1\n.", b"Np\n.", b"Np00000000000\n."]),
    (f"{TAKES} 4", [b"Np0\ng1\n."]),
    (TRUNCATED, [b"Np0"]),
    # Lines.
    (PASSES, [b"I1\n.", b"F1.5\n.", b"L1L\n.", b"Vtext\n.", b"cmodule\nname\n.", b"(imodule\nname\n.",
     b"(Nimodule\nname\n."]),
    (TRUNCATED, [b"Vtext.", b"cmodule\nname."]),
    (f"{TAKES} 0", [b"imodule\nname\n."]),
    # Containers.
    (PASSES, [b"].", b"}.", b").", b"\x8f.", b"(t.", b"(Nt.", b"(l.", b"(d.", b"(\x91.", b"]Na.", b"](NNe.",
     b"}NNs.", b"}(NNu.", b"\x8f(N\x90.", b"N\x85.", b"NN\x86.", b"NNN\x87."]),
    (f"{TAKES} 1", [b"(.", b"Na.", b"N\x86."]),
    (f"{TAKES} 0", [b"t.", b"\x85."]),
    (f"{TAKES} 3", [b"(NNe.", b"(NNu."]),
    (f"{TAKES} 2", [b"NNs.", b"(N\x90.", b"NN\x87."]),
    # The stack.
    (PASSES, [b"NN0.", b"N(0.", b"N(N00.", b"N(N0t.", b"N(NN1.", b"N20."]),
    (f"{TAKES} 0", [b"0.", b"2."]),
    (f"{TAKES} 4", [b"N(N0."]),
    (f"{TAKES} 5", [b"N(N00t.", b"(N(0tt."]),
    (f"{TAKES} 1", [b"N1."]),
    # Calls of globals.
    (PASSES, [b"cm\nn\n)R.", b"cm\nn\n)\x81.", b"cm\nn\n)}\x92.", b"(cm\nn\no.", b"cm\nn\n)RNb.",
     b"\x8c\x01m\x8c\x01n\x93."]),
    (f"{TAKES} 1", [b")R.", b"Nb."]),
    (f"{TAKES} 2", [b")}\x92."]),
    (f"{TAKES} 5", [b"cm\nn\no."]),
    (f"{TAKES} 3", [b"\x8c\x01m\x93."]),
    # What the unpickler is never given.
    ("persistent id at 2", [b"\x80\x04Q.", b"\x80\x04P1\n."]),
    ("extension code at 2", [b"\x80\x02\x82\x01."]),
    ("buffer from outside the pickle at 2", [b"\x80\x05\x97."]),
    ("buffer from outside the pickle at 3", [b"\x80\x05N\x98."]),
    ("string of Python 2 at 0", [b"U\x01a.", b"S'a'\n."]),
    ("not a pickle: no opcode 0xff at 2", [b"NN\xff."]),
    # A frame is there as a whole.
    (PASSES, [b"\x80\x04\x95" + struct.pack("<Q", 2) + b"N."]),
    (TRUNCATED, [b"\x80\x04\x95" + struct.pack("<Q", 3) + b"N.", b"\x80\x04\x95\x02\0\0"]),
    # Whatever follows the end is no part of it.
    (PASSES, [b"N.\xff\xff"]),
] for data in programs])  # fmt: skip
def test_each_opcode_takes_and_leaves_what_it_should(data: bytes, wanted: str | None) -> None:
    assert checked(data) == wanted


@pytest.mark.parametrize(("data", "limit", "most", "said"), [
    (b"NN.", "opcodes", 3, "more than 2 opcodes at 2"),
    (b"\x8c\x01a\x940N.", "opcodes", 4, "more than 3 opcodes at 6"),
    (b"\x8a\x03123.", "int_bytes", 3, "an int of 3 bytes at 0"),
    (b"N\x8b\x03\0\0\x00123.", "int_bytes", 3, "an int of 3 bytes at 1"),
    (b"I123\n.", "line_bytes", 3, "a line of 3 bytes at 0"),
    (b"cmod\nx\n.", "line_bytes", 3, "a line of 3 bytes at 0"),
    (b"cm\nname\n.", "line_bytes", 4, "a line of 4 bytes at 0"),
    (b"]]a]a.", "depth", 2, "nested deeper than 1 levels at 2"),
    (b"]]]aa.", "depth", 3, "nested deeper than 2 levels at 4"),
    (b"])a.", "depth", 2, "nested deeper than 1 levels at 2"),
    (b"(]l.", "depth", 2, "nested deeper than 1 levels at 2"),
    (b"(N]d.", "depth", 2, "nested deeper than 1 levels at 3"),
    (b"](N]e.", "depth", 2, "nested deeper than 1 levels at 4"),
    (b"}N]s.", "depth", 2, "nested deeper than 1 levels at 3"),
    (b"}(N]u.", "depth", 2, "nested deeper than 1 levels at 4"),
    (b"])\x86.", "depth", 2, "nested deeper than 1 levels at 2"),
    (b"cm\nn\n]\x85R.", "depth", 3, "nested deeper than 2 levels at 7"),
    (b"(cm\nn\n]o.", "depth", 2, "nested deeper than 1 levels at 7"),
    (b"(l.", "depth", 1, "nested deeper than 0 levels at 1"),
    (b"((00N.", "depth", 1, "marks nested deeper than 0 levels at 1"),
    (b"cm\nn\n)]]]aa\x92.", "depth", 4, "nested deeper than 3 levels at 11"),
    # Only the container that is filled becomes deeper.
    (b"]]]aa]]a\x85.", "depth", 3, "nested deeper than 2 levels at 4"),
    (b"(]im\nn\n.", "depth", 2, "nested deeper than 1 levels at 2"),
    # A container that holds one that is deeper than others is as deep as that one.
    (b"]]]aaNa].", "depth", 3, "nested deeper than 2 levels at 4"),
    (b"]]]aa]a\x85.", "depth", 4, "nested deeper than 3 levels at 7"),
])  # fmt: skip
def test_a_limit_is_held_to_the_unit(data: bytes, limit: str, most: int, said: str) -> None:
    assert checked(data, **{limit: most}) is PASSES
    assert checked(data, **{limit: most - 1}) == f"not read: {said}"


@pytest.mark.parametrize(("data", "work"), [(data, work) for work, programs in [
    # A key without parts costs nothing; one with n parts 1,000 and n squared, since keys may all collide.
    (0, [b"}NNs.", b"}N" + PAIR + b"s.", b"}(N)u."]),
    (1_001, [b"})Ns.", b"}()Nu.", b"()Nd.", b"(NN)Nd."]),
    (1_009, [b"}" + PAIR + b"Ns."]),
    (2_002, [b"}()N)Nu."]),
    # A string is no cost, wherever it comes from; nor is a global.
    (0, [b"}\x8c\x01aNs.", b"}\x8c\x01a\x940h\x00Ns.", b"}cm\nn\nNs.", b"}\x8c\x01m\x8c\x01n\x93Ns.",
     b"})\x8c\x01n\x93Ns."]),
    # A key that is copied or comes from the memo is the same key.
    (1_001, [b"})2Ns.", b"})\x940h\x00Ns.", b"})q\x000h\x00Ns.", b"N\x94)\x940}j\x01\0\0\0Ns.",
     b"\x8f()\x90.", b"\x8f(N)\x90.", b"()\x91."]),
    (0, [b"(N)d."]),
    (1_004, [b"((N\x91\x91."]),
    # A tuple's parts are itself and theirs.
    (1_009, [b"}NN\x86Ns."]),
    (1_016, [b"}NNN\x87Ns.", b"})N\x86Ns."]),
    (1_036, [b"}(N))tNs."]),
    # Lists and dicts are no keys, and cost nothing: the unpickler refuses them.
    (0, [b"}]Ns."]),
    # A call copies its arguments.
    (1, [b"cm\nn\n)R.", b"cm\nn\n)\x81."]),
    (3, [b"cm\nn\nNN\x86R."]),
    (1_001, [b"cm\nn\n)}\x92."]),
    # Long strings and numbers take as long as they are.
    (0, [b"}B\xff\x03\0\0" + b"x" * 1_023 + b"Ns.", b"}V" + b"x" * 1_023 + b"\nNs.",
     b"}\x8a\x07" + b"x" * 7 + b"Ns.", b"}I" + b"1" * 19 + b"\nNs."]),
    (1_001, [b"}B\0\x04\0\0" + b"x" * 1_024 + b"Ns.", b"}V" + b"x" * 1_024 + b"\nNs."]),
    (1_004, [b"}\x8e\0\x08\0\0\0\0\0\0" + b"x" * 2_048 + b"Ns.", b"}\x8a\x10" + b"x" * 16 + b"Ns.",
     b"}I" + b"1" * 40 + b"\nNs."]),
] for data in programs])  # fmt: skip
def test_what_hashing_and_copying_cost(data: bytes, work: int) -> None:
    assert checked(data, work=work) is PASSES
    if work:
        found = checked(data, work=work - 1)
        assert found is not None and found.startswith("not read: hashes or copies too much at ")


def frame(length: int) -> bytes:
    return b"\x95" + struct.pack("<Q", length)


@pytest.mark.parametrize(("data", "frames"), [(data, frames) for frames, programs in [
    ([], [frame(2) + b"N.", frame(2) + b"N." + b"tail", frame(1) + b"N" + frame(2) + b"0N" + frame(1) + b".",
     frame(1) + b"N" + frame(3) + b"0N.", b"N."]),
    ([0], [frame(1) + b"N.", frame(3) + b"N.x"]),
    ([0, 10], [frame(2) + b"N" + frame(3) + b"0N.", frame(1) + b"N" + frame(2) + b"0N."]),
] for data in programs])  # fmt: skip
def test_frames_that_do_not_meet_are_taken_out(data: bytes, frames: list[int]) -> None:
    assert check_program(data, Limits()) == frames


def test_frames_fit_where_each_ends_as_the_next_begins() -> None:
    assert frames_fit(b"", [], 7)
    assert frames_fit(frame(4) + b"NNNN", [0], 13)
    assert not frames_fit(frame(4) + b"NNNN", [0], 12)
    assert not frames_fit(frame(4) + b"NNNN", [0], 14)
