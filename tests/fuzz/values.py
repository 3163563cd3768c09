"""Values that no torch writes, and changes of bytes and of JSON that put them into what torch wrote."""

import json
import random
import re
from typing import Any

from fuzz.outputs import PLANTED, planted_json

# As they stand in JSON, right or wrong.
BAD = (
    "null", "true", "false", "0", "-1", "1.5", "-0.0", "NaN", "Infinity", "-Infinity", "1e400", "1e-400",
    str(1 << 31), str((1 << 53) + 1), str((1 << 63) - 1), str(1 << 63), str(-(1 << 63)), str(1 << 64), "9" * 5_000,
    '""', '" "', '"x"', '"0"', '"\\u0000"', '"\\ud800"', '"\\udfff\\ud800"', '"\\u202e"', '"../../etc/passwd"', '"/"',
    '"::set-output name=x::y"', '"<script>"', '"\\u001b[31m"', '"nan"', '"1/0"', '"!1"', '"hit"', '"miss"', '"a\\nb"',
    '"' + "x" * 20_000 + '"', '"[' + "a" * 51 + '] gm: x"', '"٣.٢"', '"2..5"', '"2.13.0"', '"0001-01-01T00:00:00"',
    "[]", "[[]]", "[1, null, \"x\"]", "{}", '{"a": 1}', '{"\\ud800": "\\ud800"}', "[" * 1_500 + "]" * 1_500,
    "-62135596800000000000", "100000000000000000000", "4102444800000000000", "99999999999999",
)  # fmt: skip
_RARE = ("[" * 100_000 + "]" * 100_000, '{"a":' * 50_000 + "1" + "}" * 50_000)
# What a hash detail or a guard may say: Python as it is printed, or what looks like it.
_SAID = (
    "", "(" * 3_000, "[" * 100_000, "{'a': " * 2_000, "-" * 5_000 + "1", "not " * 5_000 + "x", "9" * 5_000, "1e999999", "nan", "10**10**10",
    "1 << 10**9", "'x' * 10**9", "L['t0'] " + "+ 1 " * 3_000 + "> 0", "L['t0'] % 0 == 0", "2 <= L['t" + "9" * 5_000 + "'] <= 3", "lambda: 0",
    "{1: 2, 1: 3}", "frozenset({nan})", "OrderedDict({'a': [1]})", "'\ud800'", "'\0'", "\x00", "b'\\xff'", "'a' 'b'", "f'{1}'", "True", "None",
    "TensorMetadata(dtype=torch.float32, shape=torch.Size([" + "9" * 5_000 + "]))", "torch.Size([8, 8])", "(" + "1, " * 5_000 + ")",
    "<torch._C.Generator object at 0x" + "f" * 5_000 + ">", "_CudaDeviceProperties(name='x', major=" + "9" * 5_000 + ")", "cuda:999999999999999999999",
    "{'device': {'name': 'NVIDIA H100'}, 'version': {'triton': 5}}", "{'device': {'name': []}}", "\n" * 3_000, " " * 20_000 + "x", "x" * 50_000,
)  # fmt: skip
_PLANTED = planted_json()
_DETAIL = re.compile(r"\[[a-z2-7]{51}\] [A-Za-z_]\w*(?:\[.*?\])?: ")
_TOKEN = "\x01value\x01"


def bad_value(chance: random.Random) -> str:
    return chance.choice(_RARE) if chance.random() < 0.003 else chance.choice((*BAD, *_PLANTED))


def changed_json(chance: random.Random, value: Any, times: int = 1) -> bytes:
    """The text of a JSON value, with some of what is in it put away or replaced."""
    value = json.loads(json.dumps(value))
    raw = []
    for _ in range(times):
        holder, name = _place(chance, value)
        if holder is None:
            return bad_value(chance).encode()
        match chance.randrange(8):
            case 0:
                del holder[name]
            case 1 if isinstance(holder, dict):
                holder[chance.choice(("\ud800", "", "x" * 1_000, "rank", "key", str(name) + "\x00"))] = (
                    holder.pop(name)
                )
            case 3 | 4 if isinstance(holder[name], str):
                holder[name] = _said(chance, holder[name])
            case 2:
                other, key = _place(chance, value)
                holder[name] = json.loads(json.dumps(other[key] if other is not None else None))
            case _:
                holder[name] = _TOKEN
                raw.append(bad_value(chance))
        if not isinstance(value, dict | list) or not value:
            break
    text = json.dumps(value)
    for one in raw:
        text = text.replace(json.dumps(_TOKEN), one, 1)
    return text.encode("utf-8", "surrogatepass")


def _said(chance: random.Random, text: str) -> str:
    """Other words: of a hash detail its value, with another hash or the same."""
    detail = _DETAIL.match(text)
    if detail is None:
        return chance.choice((*_SAID, *PLANTED))
    fields = ("fx_kwargs[is_backward]", "example_inputs[0]", "system_info[device]", "inductor_config[x]")
    other = chance.choice(fields)
    start = detail[0] if chance.random() < 0.7 else f"{detail[0][:54]}{other}: "
    return "[" + chance.choice("abc") + start[2:] + chance.choice((*_SAID, *PLANTED))


def _place(chance: random.Random, value: Any) -> tuple[Any, Any]:
    """A container somewhere in a value, and one of its keys."""
    holder, name = None, None
    while isinstance(value, dict | list) and value:
        holder, names = value, list(value) if isinstance(value, dict) else range(len(value))
        name = chance.choice(names)
        value = holder[name]
        if chance.random() < 0.4:
            break
    return holder, name


def changed_bytes(chance: random.Random, data: bytes, times: int = 1) -> bytes:
    changed = bytearray(data)
    for _ in range(times):
        at = chance.randrange(len(changed) + 1)
        match chance.randrange(8):
            case 0 if at < len(changed):
                changed[at] ^= 1 << chance.randrange(8)
            case 1 if at < len(changed):
                values = (0, 9, 10, 13, 32, 34, 92, 123, 127, 128, 255, chance.randrange(256))
                changed[at] = chance.choice(values)
            case 2:
                changed[at:at] = chance.randbytes(chance.choice((1, 2, 4, 8, 64)))
            case 3:
                del changed[at : at + chance.choice((1, 2, 4, 8, 100, 1_000))]
            case 4:
                changed[at : at + 4] = chance.choice(
                    (b"\xff" * 4, b"\0" * 4, b"\xff\xff\xff\x7f", b"\0\0\1\0")
                )
            case 5:
                changed[at : at + 8] = chance.choice((b"\xff" * 8, b"\0" * 8, b"\xff" * 7 + b"\x7f"))
            case 6:
                start = chance.randrange(len(changed) + 1)
                changed[at:at] = changed[start : start + chance.choice((1, 8, 64, 1_000))]
            case 7:
                digits = [i for i in range(at, min(at + 200, len(changed))) if 48 <= changed[i] < 58]
                if digits:
                    changed[digits[0] : digits[0] + 1] = chance.choice(
                        (b"9" * 30, b"9" * 5_000, b"-1", b"0", b"")
                    )
    return bytes(changed)
