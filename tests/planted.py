"""Real recordings in which texts are replaced, by hand and in place, by hostile ones: nothing of these is torch's.

The framing of records, lines and pickles stays sound, so that the texts arrive wherever cachescope reads one.
"""

import itertools
import json
import pickletools
import re
import struct
from base64 import b32encode
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd

from cachescope.scope import Scope
from cachescope.table import Table
from tests.hostile_texts import TEXTS

SHORT = tuple(text for name, text in TEXTS.items() if name != "long")
# What a reader tells records and fields apart by. Each is planted in alone, in `STRUCTURAL_COLUMNS` and below.
_STRUCTURAL = {
    "name", "encoding", "key", "cache_state", "ph", "cat", "compile_id", "has_payload", "components",
}  # fmt: skip
_DETAIL = re.compile(r"(\[\w+\] )([^:\n]+)(: )(.*)", re.DOTALL)
_IDENTIFIER = re.compile(r"[\w.]*")
_STRINGS = {"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"}

Choose = Callable[[str], str]


def taking_turns(turn: int, turns: int = len(SHORT)) -> Choose:
    """So many texts in turn, beginning with another one each time; each begins, or stands after what was there."""
    first = turn % len(SHORT)
    texts = itertools.cycle((SHORT[first:] + SHORT[:first])[:turns])
    return lambda old: next(texts) if len(old) % 2 else old[:40] + next(texts)


def plant_in_trace(path: Path, choose: Choose) -> None:
    """Every text of a trace but what frames it, and the values of hash details behind their names."""
    planted = []
    for line in path.read_bytes().decode().splitlines(keepends=True):
        head, brace, metadata = line.partition("] {")
        if brace and not line.startswith("\t"):
            planted.append([f"{head}] " + _json("{" + metadata, choose) + "\n"])
        elif planted:
            planted[-1].append(line)
    path.write_bytes(b"".join(_record(record, choose) for record in planted))


def _record(lines: list[str], choose: Choose) -> bytes:
    head, *payload = lines
    text = "".join(line.removeprefix("\t") for line in payload)
    if text.startswith(("{", "[")):
        text = _json(text, choose, indent=0) + "\n"
    body = "".join(f"\t{line}" for line in text.splitlines(keepends=True))
    return (head + body).encode("utf-8", "surrogatepass")


def _json(text: str, choose: Choose, indent: int | None = None) -> str:
    try:
        return json.dumps(_in_value(json.loads(text), choose), indent=indent)
    except ValueError:
        return text.rstrip("\n")


def _in_value(value: Any, choose: Choose, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _in_value(item, choose, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_in_value(item, choose, name) for item in value]
    if not isinstance(value, str):
        return value
    return value if name in _STRUCTURAL and not _DETAIL.fullmatch(value) else _in_text(value, choose)


def _in_text(text: str, choose: Choose) -> str:
    detail = _DETAIL.fullmatch(text)
    return detail[1] + detail[2] + detail[3] + choose(detail[4]) if detail else choose(text)


def plant_in_text_log(path: Path, choose: Choose) -> None:
    """The values of hash details, names of files and what torch said otherwise; a newline in it begins a line of its own."""
    lines = path.read_bytes().split(b"\n")
    for at, line in enumerate(lines):
        head, detail, value = line.rpartition(b"]: ") if b"]: " in line else line.partition(b": ")
        if detail and at % 3 == 0:
            lines[at] = head + detail + _bytes(choose(value.decode("utf-8", "replace")))
    path.write_bytes(b"\n".join(lines))


def plant_in_pickle(data: bytes, choose: Choose) -> bytes:
    """Every text of a pickle but names of classes and attributes; without frames, whose lengths would be others."""
    made, ends = [], [*(at for _, _, at in pickletools.genops(data)), len(data)][1:]
    for (opcode, argument, at), end in zip(pickletools.genops(data), ends, strict=True):
        if opcode.name == "FRAME":
            continue
        if opcode.name in _STRINGS and not _IDENTIFIER.fullmatch(argument):
            text = _bytes(_in_text(argument, choose))
            made.append(b"X" + struct.pack("<I", len(text)) + text)
        else:
            made.append(data[at:end])
    return b"".join(made)


def plant_in_cache(cache: Path, turn: int) -> None:
    """The texts in every entry of two caches, and in the names of files that no pickle is."""
    choose = taking_turns(turn)
    for pattern in ("fxgraph/*/*/*", "aotautograd/*/*"):
        for path in list(cache.glob(pattern)):
            data = plant_in_pickle(path.read_bytes(), choose)
            path.unlink()
            # torch/_inductor/codecache.py, `sha256_hash`: what an entry is called.
            path.with_name(b32encode(sha256(data).digest())[:51].decode().lower()).write_bytes(data)
    for text in SHORT:
        name = text.replace("/", "|").replace("\0", "").encode("utf-8", "surrogatepass")[:200]
        for folder in (cache, cache / "fxgraph"):
            with open(bytes(folder) + b"/" + name, "wb") as file:
                file.write(_bytes(text))


def plant_in_columns(
    scope: Scope, turn: int, only: tuple[str, str] | None = None, turns: int = len(SHORT)
) -> Scope:
    """The texts in every column that holds texts, but for those in which rows name each other and kinds; or in one."""
    changed = {}
    for field in fields(scope.tables):
        table = getattr(scope.tables, field.name)
        if not isinstance(table, Table):
            continue
        planted, columns = table.frame.copy(), 0
        for name in planted.columns:
            place = (field.name, name)
            if place == only or (only is None and place not in STRUCTURAL_COLUMNS):
                planted[name] = _column(planted[name], taking_turns(turn, turns))
                columns += 1
        if columns:
            changed[field.name] = Table(table.kind, frame=planted)
    assert changed, "no text was planted"
    return Scope(replace(scope.tables, **changed))


# By these rows are joined and told apart: planted in all of them at once, nothing would be left to show.
STRUCTURAL_COLUMNS = {
    *(("lookups", name) for name in ("cache", "cache_key", "outcome", "compile_id", "direction", "details")),
    *(("entries", name) for name in ("cache", "cache_key", "status", "root", "path")),
    *(("runs", name) for name in ("source", "sources", "cache_dir")),
    *(("problems", name) for name in ("where",)),
}


def _column(values: pd.Series, choose: Choose) -> pd.Series:
    if not (values.dtype == "str" or values.dtype == object):
        return values
    return pd.Series([_cell(value, choose) for value in values], dtype=values.dtype, index=values.index)


def _cell(value: Any, choose: Choose) -> Any:
    if isinstance(value, tuple):
        return tuple(_cell(item, choose) for item in value)
    if isinstance(value, str) and value.startswith(("{", "[", '"')):
        return _json(value, choose)
    # A column of texts holds no half of a surrogate pair: Arrow refuses it.
    return choose(value).encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def files_of(folder: Path, pattern: str) -> Iterator[Path]:
    """The files of a recording, which a copy may be changed in."""
    return (path for path in sorted(folder.glob(pattern)) if path.is_file())
