"""Pickles by a grammar over all opcodes of protocols 0 to 5: mostly such as an unpickler can follow."""

import pickletools
import random
import struct

from fuzz.followed import KNOWN

_NAMES = (
    ("torch._inductor.output_code", "CompiledFxGraph"), ("torch._functorch._aot_autograd.autograd_cache", "AOTAutogradCacheEntry"),
    ("collections", "OrderedDict"), ("collections", "defaultdict"), ("builtins", "set"), ("builtins", "eval"), ("builtins", "getattr"),
    ("os", "system"), ("posix", "system"), ("subprocess", "Popen"), ("operator", "attrgetter"), ("copyreg", "_reconstructor"),
    ("torch._dynamo.pgo", "CodeId"), ("torch._inductor.runtime.caching.interfaces", "CacheEntry"), ("", ""), ("x" * 300, "é"), ("a.b", "c.d.__class__"),
)  # fmt: skip
# What torch's own entries name and call so: what is built of these alone may be proven.
_TORCHS = [name for name, forms in KNOWN.items() if forms and name.rpartition(".")[0]]
_KEYS = (
    "guards_expr", "_fx_graph_cache_debug_lines", "source_code", "_time_taken_ns", "__setstate__",
    "__class__", "__dict__", "x",
)  # fmt: skip
_OPCODES = [one.code.encode("latin-1") for one in pickletools.opcodes]
# How many values lie on the stack: what an opcode takes from it, and what it leaves there.
_EFFECTS = {
    b"0": -1, b"2": 1, b"N": 1, b"\x88": 1, b"\x89": 1, b"]": 1, b"}": 1, b")": 1, b"\x8f": 1, b"\x85": 0, b"\x86": -1, b"\x87": -2,
    b"a": -1, b"s": -2, b"b": -1, b"R": -1, b"\x81": -1, b"\x92": -2, b"\x94": 0, b"\x93": -1,
}  # fmt: skip
_TO_MARK = {b"t": 1, b"l": 1, b"d": 1, b"e": 0, b"u": 0, b"\x90": 0, b"\x91": 1, b"o": 1, b"1": 0, b"i": 1}


def made_pickle(chance: random.Random, *, most: int = 60) -> bytes:
    """One pickle; now and then cut, with bytes changed or opcodes in any order."""
    parts = [b"\x80" + bytes([chance.choice((0, 1, 2, 3, 4, 5, 5, 255))])] if chance.random() < 0.9 else []
    if chance.random() < 0.3:
        return _broken(chance, b"".join(parts), _call_of_torch(chance))
    depth, marks, memo = 0, [], 0
    is_wild = chance.random() < 0.2
    for _ in range(chance.randrange(1, most)):
        fits = [
            op for op, effect in _EFFECTS.items()
            if is_wild or (depth - (marks[-1] if marks else 0) + min(effect - 1, 0) >= 0 and depth + effect >= 0)
        ]  # fmt: skip
        kind = chance.random()
        if kind < 0.4:
            parts.append(_pushed(chance))
            depth += 1
        elif kind < 0.5:
            parts.append(b"(")
            marks.append(depth)
        elif kind < 0.62 and (marks or is_wild):
            op = chance.choice(list(_TO_MARK))
            parts.append(op + (_two_lines(chance) if op == b"i" else b""))
            depth = (marks.pop() if marks else 0) + _TO_MARK[op]
        elif kind < 0.7 and (memo or is_wild):
            index = chance.randrange(max(memo, 1)) if chance.random() < 0.95 else chance.randrange(1 << 32)
            parts.append(_fetched(chance, index))
            depth += 1
        elif kind < 0.74 and depth:
            forms = (b"\x94", b"q" + bytes([memo % 256]), b"r" + struct.pack("<I", memo), b"p%d\n" % memo)
            parts.append(chance.choice(forms))
            memo += 1
        elif kind < 0.76:
            parts.append(b"\x95" + struct.pack("<Q", chance.choice((0, 1, 5, 30, 100, 1 << 31, 1 << 63))))
        elif kind < 0.78:
            parts.append(chance.choice(_OPCODES) + chance.randbytes(chance.randrange(9)))
        elif fits:
            op = chance.choice(fits)
            parts.append(op)
            depth += _EFFECTS[op]
            memo += op == b"\x94"
    if marks and chance.random() < 0.8:
        parts.append(b"t" * len(marks))
    data = b"".join(parts) + b"."
    if chance.random() < 0.1:
        data = data[: chance.randrange(len(data) + 1)]
    return data


def _broken(chance: random.Random, start: bytes, data: bytes) -> bytes:
    """Whole, cut, in a frame of any length, or with something behind it that is no pickle."""
    length = b"\x96" + bytes([99]) + bytes(7)
    data += chance.choice((b".", b".", b".", b"", b"\xd3", b"s.", length, b".N.", b"X\xff\xff\xff\xff"))
    if chance.random() < 0.3:
        length = max(0, len(data) + chance.choice((0, 0, 1, -1, -4, 3, 60)))
        data = b"\x95" + struct.pack("<Q", length) + data + b"N" * chance.choice((0, 60))
    return start + data


_OF_LETTERS = {
    "n": b"N", "b": b"\x88", "i": b"K\x01", "f": b"G" + struct.pack(">d", 0.5), "s": b"\x8c\x01s", "x": b"C\x04abcd", "t": b")", "l": b"]", "d": b"}",
    "e": b"\x8f",
}  # fmt: skip


def _call_of_torch(chance: random.Random, depth: int = 0) -> bytes:
    """A call as torch's entries have it, of others or of plain values; now and then with what they never have."""
    module, name = _name(chance)
    forms = KNOWN.get(f"{module}.{name}", {})
    named = b"c" + f"{module}\n{name}\n".encode()

    def given(how: str) -> list[bytes]:
        letters = sorted(forms.get(how, "s")) if chance.random() < 0.9 else sorted(_OF_LETTERS)
        return [
            _OF_LETTERS.get(one) or (_call_of_torch(chance, depth + 1) if depth < 4 else b"N")
            for one in letters
        ]

    arguments = b"(" + b"".join(given("call")) + b"t"
    made = chance.choice((
        named + arguments + b"R", named + arguments + b"\x81", named + arguments + b"}\x92",
        b"(" + named + arguments[1:-1] + b"o", b"(" + arguments[1:-1] + b"i" + named[1:], named,
    ))  # fmt: skip
    if chance.random() < 0.2:
        inner = made_pickle(chance, most=4)
        made += b"C" + bytes([len(inner)]) + inner + b"\x86" if len(inner) < 256 else b""
    if "build" in forms or chance.random() < 0.1:
        state = b"".join(given("build")[:1])
        if state == b"}":
            state = b"}\x8c\x01" + chance.choice((b"x", b"_")) + state + b"s"
        made += (state or b"N") + b"b"
    return made


def _two_lines(chance: random.Random) -> bytes:
    return "{}\n{}\n".format(*_name(chance)).encode()


def _name(chance: random.Random) -> tuple[str, str]:
    if chance.random() < 0.4:
        return chance.choice(_NAMES)
    module, _, name = chance.choice(_TORCHS).rpartition(".")
    return module, name


def _fetched(chance: random.Random, index: int) -> bytes:
    short = [b"h" + bytes([index])] if index < 256 else []
    return chance.choice([b"j" + struct.pack("<I", index), b"g%d\n" % index, *short])


def _pushed(chance: random.Random) -> bytes:
    others = ("", "é" * 9, "[" + "a" * 51 + "] gm: x", "y" * 300)
    raw = chance.choice(_KEYS if chance.random() < 0.7 else others).encode()
    number = chance.choice((0, 1, -1, 255, 1 << 31, -(1 << 31), (1 << 63) - 1, 1 << 70))
    forms = (
        lambda: b"\x8c" + bytes([len(raw) % 256]) + raw[: len(raw) % 256],
        lambda: b"X" + struct.pack("<I", len(raw)) + raw,
        lambda: b"\x8d" + struct.pack("<Q", chance.choice((len(raw), len(raw), 1 << 40))) + raw,
        lambda: b"V" + raw.replace(b"\n", b"") + b"\n",
        lambda: b"C" + bytes([len(raw) % 256]) + raw[: len(raw) % 256],
        lambda: b"B" + struct.pack("<I", len(raw)) + raw,
        lambda: chance.choice((b"\x8e", b"\x96")) + struct.pack("<Q", len(raw)) + raw,
        lambda: b"K" + bytes([number % 256]),
        lambda: b"M" + struct.pack("<H", number % 65_536),
        lambda: b"J" + struct.pack("<I", number % (1 << 32)),
        lambda: b"\x8a\x09" + number.to_bytes(9, "little", signed=True),
        lambda: b"\x8b" + struct.pack("<i", chance.choice((9, 9, -1, 1 << 30))) + bytes(9),
        lambda: chance.choice((b"I%d\n", b"L%dL\n")) % number,
        lambda: chance.choice((b"I01\n", b"I00\n", b"F1e400\n", b"Fnan\n", b"F0.5\n", b"Ix\n", b"I0x10\n", b"L 1_0L\n", b"F\n")),
        lambda: b"G" + struct.pack(">d", chance.choice((0.0, 1e300, float("nan")))),
        lambda: chance.choice((b"N", b"\x88", b"\x89", b"]", b"}", b")", b"\x8f")),
        lambda: b"c" + _two_lines(chance),
        lambda: b"".join(b"\x8c" + bytes([len(part.encode()) % 256]) + part.encode()[:255] for part in _name(chance)) + b"\x93",
        lambda: chance.choice((b"S'x'\n", b"T\x01\0\0\0x", b"U\x01x", b"Px\n", b"Q", b"\x82\x01", b"\x83\x01\x01", b"\x84\1\0\0\0", b"\x97", b"\x98")),
    )  # fmt: skip
    # The last are refused outright.
    return chance.choice(forms if chance.random() < 0.1 else forms[:-1])()
