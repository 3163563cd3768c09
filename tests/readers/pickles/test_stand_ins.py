"""What a stand-in keeps of what a pickle did to its object, and which globals are refused by their names."""

import pickle
from collections import OrderedDict

import pytest

from cachescope.readers.pickles.inert_pickle import (
    Limits,
    NotRead,
    Stub,
    UnreadablePickle,
    global_name,
    loads_harmless,
    loads_inert,
)

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


@pytest.mark.parametrize(("state", "wanted"), [
    (b"}K\x01K\x02s", {1: 2}),
    (b"}K\x01K\x02s}K\x03K\x04s\x86", {1: 2, 3: 4}),
    (b"N}K\x03K\x04s\x86", {3: 4}),
    (b"}K\x01K\x02sN\x86", {1: 2}),
    (b"NN\x86", {}),
    (b"}K\x01K\x02s\x85", {}),
    (b"}}}\x87", {}),
    (b"}K\x01\x86", {}),
    (b"K\x01}\x86", {}),
    (b"K\x07", {}),
])  # fmt: skip
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
    two = b"cm\na\n0cm\nb\n."
    loads_inert(two + b"cm\nc\n.", Limits(stand_ins=2))
    loads_inert(b"cm\na\n0cm\na\n.", Limits(stand_ins=1))
    with pytest.raises(NotRead, match="too many globals"):
        loads_inert(two, Limits(stand_ins=1))
    loads_inert(b"N.", Limits(size_bytes=2))
    with pytest.raises(NotRead, match=r"^3 bytes, more than 2$"):
        loads_inert(b"NN.", Limits(size_bytes=2))


def test_the_limits_are_those_of_the_check() -> None:
    with pytest.raises(NotRead, match="more than 10 opcodes"):
        loads_inert(pickle.dumps(list(range(20))), Limits(opcodes=10))
    with pytest.raises(NotRead, match="deeper than 3"):
        loads_inert(pickle.dumps([[[[1]]]]), Limits(depth=3))


def test_an_error_names_its_byte() -> None:
    with pytest.raises(UnreadablePickle, match=r"^not a pickle: no opcode 0xff \(byte 1\)$"):
        loads_inert(b"N\xff.")
    assert str(UnreadablePickle("why")) == "why"


@pytest.mark.parametrize(("module", "name", "is_refused"), [
    ("os", "system", True),
    ("os.path", "join", True),
    ("subprocess", "Popen", True),
    ("builtins", "eval", True),
    ("__builtin__", "eval", True),
    ("builtins", "eval.__call__", True),
    ("builtins", "set", False),
    # A module of that name within another is the user's own, and so is a function.
    ("mine.os", "system", False),
    ("mine", "eval", False),
    ("mine.builtins", "eval", False),
    ("osmosis", "system", False),
    ("torch._inductor.codecache", "CompiledFxGraph", False),
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
