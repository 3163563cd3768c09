"""What cachescope itself keeps and reads again: locks, the index, saved scopes and collected logs, with bytes, values or columns changed."""

import hashlib
import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

import cachescope
from cachescope.errors import CachescopeError
from cachescope.locking import verifying
from cachescope.locking.lock import CacheLock, lock_text, read_lock
from cachescope.locking.machine import installed_torch, installed_triton
from cachescope.locking.verifying import Verification
from cachescope.readers.index import kept_logs
from cachescope.readers.index.kept_logs import Index
from cachescope.readers.index.log_tables import LogTables
from cachescope.readers.logs.trace_log import TRACE
from cachescope.readers.reading import Reading
from fuzz.outputs import run
from fuzz.seeds import Seeds
from fuzz.use import emptied, use
from fuzz.values import changed_bytes, changed_json

_FULLY = 20
"""Of so many inputs one is asked by the command."""


class Locks:
    """A lock is refused in one line, or every file that is not as it says is found, and no other."""

    name = "locks"

    def __init__(self, seeds: Seeds) -> None:
        self._caches = [folder for folder in seeds.directories if folder.is_dir()][:12]
        self._whole: dict[Path, bytes] = {}
        # What is installed is the same for all.
        torch, triton = installed_torch(), installed_triton()
        verifying.installed_torch = lambda: torch
        verifying.installed_triton = lambda **_: triton
        for cache in self._caches:
            try:
                self._whole[cache] = lock_text(cachescope.lock(cache)).encode()
            except CachescopeError:
                continue  # links that lead outside
        self._cache = Path()

    def make(self, chance: random.Random) -> bytes:
        self._cache = chance.choice(list(self._whole))
        data = self._whole[self._cache]
        kind, value = chance.random(), json.loads(data)
        if kind < 0.3 and value["files"]:
            # As valid as before, of another cache.
            one = chance.choice(value["files"])
            match chance.randrange(4):
                case 0:
                    one["size"] += 1
                case 1:
                    one["path"] += "x"
                case 2:
                    value["files"].remove(one)
                case _:
                    one["sha256"] = one["sha256"][:-1] + chance.choice("0123456789abcdef")
            return json.dumps(value).encode()
        if kind < 0.7:
            return changed_json(chance, value, chance.choice((0, 1, 1, 2)))
        return changed_bytes(chance, data, chance.choice((0, 1, 1, 4)))

    def check(self, data: bytes, folder: Path) -> None:
        path = folder / "one.lock"
        path.write_bytes(data)
        if len(data) % _FULLY == 0:
            for hides in ((), ("--redact",)):
                run("verify", path, self._cache, *hides)
        try:
            lock = read_lock(path)
        except CachescopeError as error:
            refused = str(error)
        else:
            refused = ""
            self._holds(data, lock)
        assert len(refused.splitlines()) < 2, "refused in more than one line"

    def _holds(self, data: bytes, lock: CacheLock) -> None:
        said = json.loads(data.decode("utf-8-sig"))
        told = {one["path"]: (one["size"], one["sha256"]) for one in said["files"]}
        assert {name: (one.size, one.sha256) for name, one in lock.files.items()} == told
        there = {
            str(one.relative_to(self._cache)): one
            for one in self._cache.rglob("*")
            if one.is_file() and not one.is_symlink() and (one.suffix != ".lock" or one.stat().st_size)
        }
        found = {(one.kind, one.path) for one in Verification.of(lock, self._cache).findings}
        for name in told.keys() | there.keys():
            if name not in there:
                assert ("missing", name) in found, f"{name!r} is not missed"
            elif name not in told:
                kinds = {kind for kind, path in found if path == name}
                assert kinds & {"extra", "altered"}, f"{name!r} is new"
            else:
                data = there[name].read_bytes()
                is_same = told[name] == (len(data), hashlib.sha256(data).hexdigest())
                assert (("altered", name) in found) != is_same, f"{name!r} is not as locked"


class Indexes:
    """A changed file of the index is not believed: the log is read again, or what was kept is what was read."""

    name = "indexes"

    def __init__(self, seeds: Seeds) -> None:
        kept_logs._LEAST_BYTES, kept_logs.is_quiet = 1, lambda _: True
        root = seeds.folder / "indexed"
        root.mkdir()
        self._kept = []
        for number, pieces in enumerate(seeds.traces[:8]):
            log = root / f"{number}.log"
            log.write_bytes(b"\n".join(piece.data for piece in pieces) + b"\n")
            reading = Reading()
            TRACE.read(str(log), reading)
            kept = Index(root / "kept").kept(str(log))
            assert kept is not None
            tables = LogTables.of(str(log), reading)
            kept.store(tables)
            self._kept.append((kept, tables.to_json(), kept.file.read_bytes()))
        self._at = 0

    def make(self, chance: random.Random) -> bytes:
        self._at = chance.randrange(len(self._kept))
        _, _, data = self._kept[self._at]
        kind = chance.random()
        if kind < 0.2:
            return chance.choice(self._kept)[2]
        if kind < 0.5:
            magic, head, body = data.split(b"\n", 2)
            return b"\n".join((magic, changed_json(chance, json.loads(head)), body))
        return changed_bytes(chance, data, chance.choice((0, 1, 1, 4, 20)))

    def check(self, data: bytes, folder: Path) -> None:
        kept, right, whole = self._kept[self._at]
        here = Index(emptied(folder / "index"))
        file = here.folder / kept.file.name
        file.write_bytes(data)
        again = here.kept(kept.path)
        for read in (again.as_it_is, again.as_it_was):
            tables = read()
            assert tables is None or tables.to_json() == right, "another log than was kept"
        assert data != whole or again.as_it_is() is not None, "what was not touched is not read"
        here.logs()


def kept_kinds(seeds: Seeds) -> list[object]:
    return [Locks(seeds), Indexes(seeds)]


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
