"""Hand-made pickles for the readers' tests: hostile ones, and entries of versions that were not recorded."""

import struct
from typing import Any

from cachescope.keys.hashing import entry_name


def line(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text.encode())) + text.encode()


def found(module: str, name: str) -> bytes:
    return b"c" + f"{module}\n{name}\n".encode()


# Made once: hundreds of tests take one pickle each out of all of them.
_WIDE = b"\x80\x04(" + b"N" * 300_000 + b"t\x940"
WIDE_KEY = _WIDE + b"}(" + b"h\x00N" * 300_000 + b"u."
WIDE_ARGUMENTS = _WIDE + found("os", "system") + b"\x940(" + b"h\x01h\x00R" * 200_000 + b"l."
COLLIDING = (
    b"\x80\x04}("
    + b"".join(b"\x8a\x0a" + ((2**61 - 1) * number).to_bytes(10, "little") + b"N" for number in range(80_000))
    + b"u."
)
MANY_GLOBALS = b"".join(b"0" * (number > 0) + b"cm\nn%d\n" % number for number in range(10_000)) + b"."


# Those that ask for more than the reader gives: nothing says that an unpickler without limits could not read them.
BEYOND_LIMITS = frozenset({
    *(f"10,000 {what} deep" for what in ("calls", "dicts", "lists", "marks", "tuples")),
    *(
        "2**31 - 1 in an int", "an int of many digits", "big ints that collide", "comparison bomb",
        "deep tuple as a key",
    ),
    *(
        "hash bomb", "hash bomb in a frozenset", "hash bomb in a set", "hash bomb through the memo",
        "many globals",
    ),
    *("memo bomb", "memo bomb in text", "memo bomb, 2**31 - 1"),
    *("one wide key again and again", "wide arguments again and again"),
})  # fmt: skip


def hostile(sentinel: str) -> dict[str, bytes]:
    """Pickles that create `sentinel`, or exhaust time, stack or memory, where an unpickler trusts them."""
    shell = line(f"touch {sentinel}")
    system = found("os", "system")
    nested = b"\x80\x04" + found("builtins", "getattr") + found("os", "path") + line("os") + b"\x86R"
    deep_tuple = b"\x80\x04)" + b"\x85" * 10_000 + b"."
    doubled = b"\x80\x04)\x94" + b"".join(b"h%c\x86\x94" % index for index in range(200)).replace(b"h", b"0h")
    return {
        "reduce": b"\x80\x04" + system + b"(" + shell + b"tR.",
        "reduce with stack_global": b"\x80\x04" + line("os") + line("system") + b"\x93" + shell + b"\x85R.",
        "dotted name": b"\x80\x04" + line("os") + line("path.os.system") + b"\x93" + shell + b"\x85R.",
        "inst": b"(" + shell + b"ios\nsystem\n.",
        "obj": b"(" + system + shell + b"o.",
        "newobj": b"\x80\x02" + found("subprocess", "Popen") + shell + b"\x85\x81.",
        "newobj_ex": b"\x80\x04" + found("subprocess", "Popen") + b")}" + line("args") + shell + b"s\x92.",
        "nested reduce": nested + line("system") + b"\x86R" + shell + b"\x85R.",
        "result called": b"\x80\x04" + system + b")R" + shell + b"\x85R.",
        "build with __setstate__": b"\x80\x04" + system + b")\x81}" + line("__setstate__") + system + b"sb" + shell + b"b.",
        "build a class": b"\x80\x04" + system + b"N}" + line("__new__") + system + b"s\x86b" + b")R.",
        "build a class with a call": b"\x80\x04" + system + shell + b"b.",
        "build __class__": b"\x80\x04" + system + b")\x81N}" + line("__class__") + system + b"s\x86b.",
        "extension code 1": b"\x80\x02\x82\x01.",
        "extension code 2": b"\x80\x02\x83\x01\x01.",
        "extension code 4": b"\x80\x02\x84\x01\x01\x01\x01.",
        "persistent id": b"P" + sentinel.encode() + b"\n.",
        "binary persistent id": b"\x80\x02" + shell + b"Q.",
        "out-of-band buffer": b"\x80\x05\x97.",
        **{
            f"2**60 with opcode {opcode:02x}": b"\x80\x05" + bytes([opcode]) + struct.pack("<Q", 2**60) + b"abc."
            for opcode in (0x8D, 0x8E, 0x95, 0x96)
        },
        "2**31 - 1 in an int": b"\x80\x05\x8b" + struct.pack("<i", 2**31 - 1) + b"abc.",
        "4 GiB of bytes": b"\x80\x05B\xff\xff\xff\xffabc.",
        "memo bomb": b"\x80\x02Nr\xff\xff\xff\xff.",
        "memo bomb, 2**31 - 1": b"\x80\x02Nr\xff\xff\xff\x7f.",
        "memo bomb in text": b"Np4294967295\n.",
        "memo bomb with signs": b"Np+4294967295\n.",
        "10,000 lists deep": b"\x80\x04" + b"]" * 10_000 + b"a" * 9_999 + b".",
        "10,000 dicts deep": b"\x80\x04" + b"}K\x00" * 10_000 + b"N" + b"s" * 10_000 + b".",
        "10,000 tuples deep": deep_tuple,
        "10,000 calls deep": b"\x80\x04" + system * 10_000 + b")R" + b"\x85R" * 9_999 + b".",
        "10,000 marks deep": b"\x80\x04" + b"(" * 10_000 + b"t" * 10_000 + b".",
        "deep tuple as a key": b"\x80\x04})" + b"\x85" * 100_000 + b"Ns.",
        "hash bomb": b"\x80\x04})" + b"2\x86" * 100 + b"Ns.",
        "hash bomb in a set": b"\x80\x04\x8f()" + b"2\x86" * 100 + b"\x90.",
        "hash bomb in a frozenset": b"\x80\x04()" + b"2\x86" * 100 + b"\x91.",
        "hash bomb through the memo": doubled[:3]
        + b"".join(b"\x94h" + bytes([index]) + b"\x86" for index in range(100))
        + b"\x940}h\x64Ns.",
        "comparison bomb": b"\x80\x04"
        + b"".join(
            b"K\x00\x85" + b"".join(b"\x94(h%c\x912\x86" % (61 * start + index) for index in range(61))
            for start in range(2)
        )
        + b".",
        "one wide key again and again": WIDE_KEY,
        "wide arguments again and again": WIDE_ARGUMENTS,
        "big ints that collide": COLLIDING,
        "an int of many digits": b"L" + b"9" * 1_000_000 + b"L\n.",
        "many globals": MANY_GLOBALS,
        "many keyword arguments": b"\x80\x04}(" + b"".join(line(f"k{number}") + b"N" for number in range(1000))
        + b"u\x940" + system + b")h\x00\x92.",
        "state given twice": b"\x80\x04" + system + b")\x81}b}b.",
        "frame that hides a program": b"\x80\x04\x95" + struct.pack("<Q", 12) + b"(" * 11 + b"B\x08\x00\x00\x00"
        + b"Nr\xff\xff\xff\x7f." + b"1" * 11 + b"." + system + shell + b"\x85R.",
    }  # fmt: skip


def text_of(value: str) -> bytes:
    return b"\x8c" + bytes([len(value)]) + value.encode() if len(value) < 256 else line(value)


def plain(value: Any) -> bytes:
    """The opcodes of a plain value, or of an `Object` of a class that is not there."""
    if isinstance(value, Object):
        state = b"" if value.state is None else plain(value.state) + b"b"
        return text_of(value.module) + text_of(value.name) + b"\x93" + plain(value.args) + b"\x81" + state
    if isinstance(value, str):
        return text_of(value)
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if isinstance(value, int):
        return b"\x8a\x08" + value.to_bytes(8, "little", signed=True)
    if value is None:
        return b"N"
    if isinstance(value, list):
        return b"](" + b"".join(map(plain, value)) + b"e"
    if isinstance(value, tuple):
        return b"(" + b"".join(map(plain, value)) + b"t"
    if isinstance(value, dict):
        return b"}(" + b"".join(plain(key) + plain(item) for key, item in value.items()) + b"u"
    if isinstance(value, set):
        return b"\x8f(" + b"".join(map(plain, sorted(value))) + b"\x90"
    raise TypeError(type(value))


class Object:
    """An object of a class that is not there, as NEWOBJ and BUILD make it."""

    def __init__(self, path: str, state: Any = None, args: tuple[Any, ...] = ()) -> None:
        self.module, _, self.name = path.rpartition(".")
        self.state = state
        self.args = args


def entry_bytes(value: Any) -> bytes:
    return b"\x80\x04" + plain(value) + b"."


def detail_line(field: str, value: str, letter: str = "a") -> str:
    return f"[{letter * 51}] {field}: {value}"


__all__ = ["Object", "detail_line", "entry_bytes", "entry_name", "hostile", "plain"]
