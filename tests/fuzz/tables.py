"""Saved scopes and collected logs whose columns, nested values, pages or footers were changed."""

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

import cachescope
from cachescope.errors import CachescopeError
from fuzz.seeds import Seeds
from fuzz.use import emptied, use
from fuzz.values import changed_bytes

_VALUES = (
    None, True, 0, -1, 7, 1 << 31, (1 << 53) + 1, (1 << 63) - 1, -(1 << 63), "", "x", "\x00", "hit", "trace", "9" * 5_000, "[]", "{}", "[" * 2_000,
    0.5, float("nan"), float("inf"), b"\xff", [], [None], [-1], [1 << 40], ["x"], {"a": 1},
)  # fmt: skip


class Stored:
    """A folder of Parquet files, read again and again with one of them changed."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
        self._changed = ""

    def make(self, chance: random.Random) -> bytes:
        self._changed = chance.choice(list(self._files))
        data = self._files[self._changed]
        kind = chance.random()
        if not self._changed.endswith(".parquet") or kind < 0.3:
            return changed_bytes(chance, data, chance.choice((1, 1, 4)))
        if kind < 0.5:
            # The footer says what lies where.
            at = max(len(data) - chance.choice((8, 100, 2_000)), 0)
            return data[:at] + changed_bytes(chance, data[at:], chance.choice((1, 3)))
        try:
            return _written(_changed_table(chance, parquet.read_table(pa.BufferReader(data))))
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            return changed_bytes(chance, data)

    def check(self, data: bytes, folder: Path) -> None:
        root = emptied(folder / "stored")
        for name, whole in self._files.items():
            (root / name).write_bytes(data if name == self._changed else whole)
        with suppress(CachescopeError):
            use(cachescope.read(root, index=False), None, root, len(data))


def _changed_table(chance: random.Random, table: pa.Table) -> pa.Table:
    at = chance.randrange(table.num_columns)
    field = table.field(at)
    match chance.randrange(6):
        case 0:
            return table.remove_column(at)
        case 1:
            return table.append_column(field, table.column(at))
        case 2:
            return table.slice(0, chance.randrange(len(table) + 1))
        case 3:
            rows = [chance.randrange(len(table)) for _ in range(len(table))] if len(table) else []
            return table.take(rows)
        case 4:
            return table.set_column(at, field.name, pa.array([chance.choice(_VALUES)] * len(table)))
        case _:
            values = [
                _changed_value(chance, value) if chance.random() < 0.3 else value
                for value in table.column(at).to_pylist()
            ]
            try:
                return table.set_column(at, field, pa.array(values, field.type))
            except (pa.ArrowException, OverflowError, TypeError, ValueError):
                return table.set_column(at, field.name, pa.array(values))


def _changed_value(chance: random.Random, value: Any) -> Any:
    """Another value, most often somewhere inside."""
    if isinstance(value, list) and value and chance.random() < 0.8:
        at = chance.randrange(len(value))
        if chance.random() < 0.2:
            return value[:at]
        return [*value[:at], _changed_value(chance, value[at]), *value[at + 1 :]]
    if isinstance(value, dict) and value and chance.random() < 0.9:
        name = chance.choice(list(value))
        return {**value, name: _changed_value(chance, value[name])}
    same = [one for one in _VALUES if type(one) is type(value)]
    return chance.choice(same if same and chance.random() < 0.8 else _VALUES)


def _written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, row_group_size=1 if "set_codes" in table.column_names else None)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def table_kinds(seeds: Seeds, folder: Path) -> list[Stored]:
    """A scope of logs and directories, and logs collected."""
    recording = seeds.folder / "recordings" / "2.13.0" / "entry_truncated"
    cachescope.read(recording, index=False).save(folder / "saved-seed")
    ranks = recording.with_name("four_ranks")
    cachescope.collect(ranks, folder=folder / "collected-seed")
    return [
        Stored("saved scopes", folder / "saved-seed"),
        Stored("collected logs", folder / "collected-seed"),
    ]
