"""Pickles read without running them: what a stand-in keeps of what a pickle did to its object, which globals are refused by their names, and frames of any length at any place."""

import contextlib
import copyreg
import pickle
import pickletools
import random
import struct
import sys
import textwrap
import time
import tracemalloc
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hostile_pickles import hostile
from hypothesis import given
from hypothesis import strategies as st

from cachescope.readers.pickles.inert_pickle import (
    Limits,
    NotRead,
    Stub,
    UnreadablePickle,
    global_name,
    loads_harmless,
    loads_inert,
)
from cachescope.readers.pickles.pickle_check import check_program
from tests.programs import python

# What only builds inert stubs is harmless and may be read; every other hostile pickle must be refused.
CALLS = {"reduce", "reduce with stack_global", "inst", "obj", "newobj", "newobj_ex"}
HARMLESS = CALLS | {"dotted name", "build __class__"}
# What pickle writes without naming a global: sets need protocol 4 for that, and bytes protocol 3.
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
keys = scalars | st.tuples(scalars, scalars)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner) | st.dictionaries(keys, inner) | st.tuples(inner, inner) | st.lists(inner).map(tuple)
    ),
    max_leaves=30,
)
late_values = st.recursive(
    scalars | st.binary() | st.frozensets(keys) | st.sets(keys),
    lambda inner: (
        st.lists(inner) | st.dictionaries(keys | st.frozensets(scalars), inner) | st.lists(inner).map(tuple)
    ),
    max_leaves=30,
)


@pytest.mark.slow
@given(values, st.integers(0, 5))
def test_plain_values_are_read_as_pickle_reads_them(value: Any, protocol: int) -> None:
    assert loads_inert(pickle.dumps(value, protocol)) == value


@pytest.mark.slow
@given(late_values, st.integers(4, 5))
def test_sets_and_bytes_are_read_as_pickle_reads_them(value: Any, protocol: int) -> None:
    assert loads_inert(pickle.dumps(value, protocol)) == value


def test_shared_and_recursive_values_keep_their_shape() -> None:
    shared: list[Any] = ["x" * 3000, (1, 2)]
    value: list[Any] = [shared, shared, {"t": shared[1]}]
    value.append(value)
    for protocol in range(6):
        read: Any = loads_inert(pickle.dumps(value, protocol))
        assert read[0] is read[1]
        assert read[3] is read
        assert read[2]["t"] == (1, 2)


def test_values_over_several_frames_and_large_strings_are_read() -> None:
    value = [f"{number}" * 40 for number in range(5_000)] + ["y" * 200_000, b"z" * 100_000]
    for protocol in (4, 5):
        assert loads_inert(pickle.dumps(value, protocol)) == value


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(hostile("")))
def test_a_hostile_pickle_executes_nothing_and_costs_little(name: str, tmp_path: Path) -> None:
    sentinel = tmp_path / "executed"
    data = hostile(str(sentinel))[name]
    tracemalloc.start()
    try:
        if name in HARMLESS:
            assert isinstance(loads_inert(data), Stub)
        else:
            with pytest.raises(UnreadablePickle):
                loads_inert(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert not sentinel.exists()
    assert peak < 64 << 20


def test_a_registered_extension_is_not_looked_up() -> None:
    copyreg.add_extension("os", "system", 0xF0)
    try:
        with pytest.raises(UnreadablePickle, match="extension code"):
            loads_inert(b"\x80\x02\x82\xf0.")
    finally:
        copyreg.remove_extension("os", "system", 0xF0)


def test_a_stand_in_class_is_not_changed_by_a_pickle() -> None:
    data = hostile("")["build a class"]
    for _ in range(2):
        with pytest.raises(UnreadablePickle):
            loads_inert(data)
    read = loads_inert(b"cos\nsystem\n)R.")
    assert isinstance(read, Stub)
    assert read.args == ()
    with pytest.raises(AttributeError):
        type(read).module = "x"


@pytest.mark.sweep
def test_deep_values_within_the_limits_survive_what_python_does_with_values() -> None:
    program = """
        import gc
        from cachescope.readers.pickles.inert_pickle import Limits, loads_inert
        depth = 200_000
        limits = Limits(depth=2 * depth + 5, opcodes=2_000_000)
        for data in (
            b"]" * depth + b"a" * (depth - 1) + b".",
            b"}K\\x00" * depth + b"N" + b"s" * depth + b".",
            b"cm\\nn\\n" * depth + b")R" + b"\\x85R" * (depth - 1) + b".",
            # Inside out through the memo, where the depth is not counted.
            b"]q\\x00" + b"0]h\\x00aq\\x00" * (depth // 2) + b".",
        ):
            value = loads_inert(data, limits)
            other = loads_inert(data, limits)
            for use in (repr, hash, lambda v: v == other):
                try:
                    use(value)
                except (RecursionError, TypeError):
                    pass
            gc.collect()
            del value, other
            gc.collect()
        print("alive")
    """
    assert python(textwrap.dedent(program)).stdout == "alive\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in sorted(hostile("")) if "bomb" in name or "2**" in name or "GiB" in name]
)
def test_bombs_fit_in_little_address_space(name: str, tmp_path: Path) -> None:
    pytest.importorskip("resource")
    program = """
        import resource, sys
        from cachescope.readers.pickles.inert_pickle import UnreadablePickle, loads_inert
        data = sys.stdin.buffer.read()
        held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + (128 << 20), held + (128 << 20)))
        try:
            loads_inert(data)
        except UnreadablePickle as error:
            print("MemoryError" in str(error))
    """
    data = hostile(str(tmp_path / "x"))[name]
    assert python(textwrap.dedent(program), input=data, text=False).stdout == b"False\n"


def test_every_cut_of_a_pickle_is_truncated() -> None:
    data = pickle.dumps({"a": [1, 2.5, "x" * 300, (None, True)], "b": b"y"}, 4)
    for end in range(len(data)):
        with pytest.raises(UnreadablePickle) as caught:
            loads_inert(data[:end])
        assert caught.value.what == "truncated"


@pytest.mark.parametrize("count", [1_999, 3_000])
def test_no_answer_depends_on_what_was_read_before(count: int) -> None:
    names = b"".join(b"cmodule\nname_%d_of_%d\n" % (number, count) for number in range(count))
    for _ in range(3):
        if count < Limits().stand_ins:
            assert len(loads_inert(b"(" + names + b"l.")) == count  # type: ignore[arg-type]
        else:
            with pytest.raises(NotRead, match="too many globals"):
                loads_inert(b"(" + names + b"l.")


@pytest.mark.slow
def test_keys_that_all_collide_take_no_time() -> None:
    # Ints that are multiples of 2**61 - 1 hash to 0, and so do tuples of them to one number.
    most = 0
    for count in range(200, 4_000, 200):
        keys = b"".join(
            b"\x8a\x0a" + ((2**61 - 1) * number).to_bytes(10, "little") + b"\x85\x94N"
            for number in range(count)
        )
        began = time.process_time()
        with contextlib.suppress(NotRead):
            assert len(loads_inert(b"\x80\x04}\x94(" + keys + b"u.")) == count  # type: ignore[arg-type]
            most = count
        assert time.process_time() - began < 5
    assert most >= 200


def test_the_check_knows_every_opcode() -> None:
    for op in pickletools.opcodes:
        data = b"\x80\x05NNNN" + op.code.encode("latin-1") + b"\x00" * 8
        what = ""
        try:
            check_program(data, Limits())
        except UnreadablePickle as error:
            what = error.what
        assert f"no opcode 0x{ord(op.code):02x}" not in what, op.name


MADE = b"\x80\x04cmine\nThing\n)R"


def made(rest: bytes) -> Stub:
    value = loads_inert(MADE + rest + b".")
    assert isinstance(value, Stub)
    return value


def test_items_and_pairs_are_kept_in_their_order() -> None:
    assert made(b"").items == made(b"").pairs == ()
    assert made(b"K\x01aK\x02a(K\x03K\x04e").items == [1, 2, 3, 4]
    assert made(b"(K\x01K\x02\x90").items == [1, 2]
    assert made(b"K\x01K\x02s(K\x03K\x04u").pairs == [(1, 2), (3, 4)]


@pytest.mark.parametrize(("state", "wanted"), [(state, wanted) for wanted, states in [
    ({1: 2}, [b"}K\x01K\x02s", b"}K\x01K\x02sN\x86"]),
    ({1: 2, 3: 4}, [b"}K\x01K\x02s}K\x03K\x04s\x86"]),
    ({3: 4}, [b"N}K\x03K\x04s\x86"]),
    ({}, [b"NN\x86", b"}K\x01K\x02s\x85", b"}}}\x87", b"}K\x01\x86", b"K\x01}\x86", b"K\x07"]),
] for state in states])  # fmt: skip
def test_the_state_is_one_dict_or_none(state: bytes, wanted: dict[int, int]) -> None:
    assert made(state + b"b").state == wanted
    assert made(b"K\x05b").raw_state == 5


def test_keywords_are_kept_up_to_a_hundred() -> None:
    def called(count: int) -> Stub:
        words = b"".join(b"\x8c\x04k%03dN" % number for number in range(count))
        value = loads_inert(b"\x80\x04cmine\nThing\n)}(" + words + b"u\x92.")
        assert isinstance(value, Stub)
        return value

    assert dict(called(0).keywords) == dict(made(b"").keywords) == {}
    assert dict(called(2).keywords) == {"k000": None, "k001": None}
    assert len(called(100).keywords) == 100
    with pytest.raises(NotRead, match="more than 100 keyword arguments"):
        called(101)
    # One that was given none shares what it has with all of these: nothing can be put into it.
    with pytest.raises(TypeError):
        called(0).keywords["k"] = 1  # type: ignore[index]


def test_what_is_named_says_its_name() -> None:
    assert global_name(loads_inert(b"cmine\nThing\n.")) == global_name(made(b"")) == "mine.Thing"
    assert repr(loads_inert(b"cmine\nThing\n.")) == "<stand-in for mine.Thing>"
    assert repr(made(b"")) == "<mine.Thing stand-in>"
    assert global_name("mine.Thing") is None
    assert not hasattr(made(b""), "anything")
    # The names of Python 2 are left as they are.
    for protocol in (b"", b"\x80\x02", b"\x80\x04"):
        assert global_name(loads_inert(protocol + b"c__builtin__\nset\n.")) == "__builtin__.set"
    read = loads_inert(pickle.dumps(OrderedDict(a=1)))
    assert isinstance(read, Stub)
    assert (read.module, read.name, read.pairs) == ("collections", "OrderedDict", [("a", 1)])


def test_so_many_globals_and_so_many_bytes() -> None:
    loads_inert(b"cm\na\n0cm\nb\n.cm\nc\n.", Limits(stand_ins=2))
    loads_inert(b"cm\na\n0cm\na\n.", Limits(stand_ins=1))
    loads_inert(b"N.", Limits(size_bytes=2))


@pytest.mark.parametrize(("data", "limit", "message"), [
    (b"cm\na\n0cm\nb\n.", {"stand_ins": 1}, "too many globals"),
    (b"NN.", {"size_bytes": 2}, r"^3 bytes, more than 2$"),
    # Those of the check.
    (pickle.dumps(list(range(20))), {"opcodes": 10}, "more than 10 opcodes"),
    (pickle.dumps([[[[1]]]]), {"depth": 3}, "deeper than 3"),
])  # fmt: skip
def test_what_is_beyond_a_limit_is_not_read(data: bytes, limit: dict[str, int], message: str) -> None:
    with pytest.raises(NotRead, match=message):
        loads_inert(data, Limits(**limit))


def test_an_error_names_its_byte() -> None:
    with pytest.raises(UnreadablePickle, match=r"^not a pickle: no opcode 0xff \(byte 1\)$"):
        loads_inert(b"N\xff.")
    assert str(UnreadablePickle("why")) == "why"


@pytest.mark.parametrize(("module", "name", "is_refused"), [
    ("os", "system", True), ("os.path", "join", True), ("subprocess", "Popen", True),
    ("builtins", "eval", True), ("__builtin__", "eval", True), ("builtins", "eval.__call__", True),
    ("builtins", "set", False),
    # A module of that name within another is the user's own, and so is a function.
    ("mine.os", "system", False), ("mine", "eval", False), ("mine.builtins", "eval", False),
    ("osmosis", "system", False), ("torch._inductor.codecache", "CompiledFxGraph", False),
])  # fmt: skip
def test_hostile_names(module: str, name: str, is_refused: bool) -> None:
    data = f"c{module}\n{name}\n.".encode()
    if is_refused:
        with pytest.raises(UnreadablePickle, match=f"^hostile: names {module}.{name}$"):
            loads_harmless(data)
    else:
        assert global_name(loads_harmless(data)) == f"{module}.{name}"
    with pytest.raises(NotRead):
        loads_harmless(data, Limits(size_bytes=3))


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


def loaded(load: Callable[[bytes], object], data: bytes, error: type[Exception]) -> tuple[bool, object]:
    try:
        return True, load(data)
    except error:
        return False, None


def test_a_frame_is_damaged_where_python_refuses_it() -> None:
    chance = random.Random(20_263)
    sound = 0
    for _ in range(PICKLES):
        data = framed(chance)
        told = loaded(pickle.loads, data, Exception)
        # Python 3.14 also refuses frames that end in an opcode or in another frame; earlier ones load them.
        if told[0] or sys.version_info < (3, 14):
            assert loaded(loads_inert, data, UnreadablePickle) == told, data
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
