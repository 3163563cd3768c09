"""Traces and text logs with some records changed: what was not touched is told, or a problem says what was lost; and logs of vLLM."""

import bz2
import gzip
import json
import lzma
import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa

from cachescope.errors import CachescopeError
from cachescope.readers.logs import trace_records
from cachescope.readers.logs.log_events import fold_events
from cachescope.readers.logs.many_logs import read_alone
from cachescope.readers.logs.text_log import TEXT
from cachescope.readers.logs.trace_log import TRACE, parts_of_trace, read_trace_part
from cachescope.readers.logs.trace_process import TraceProcess
from cachescope.readers.reading import Reading
from cachescope.scope import Scope
from fuzz.outputs import PLANTED
from fuzz.seeds import Piece, Seeds, record_of, taken_apart
from fuzz.use import check_reading, emptied, scope_at, scope_of, use
from fuzz.values import changed_bytes, changed_json

Read = Callable[[str, Reading], None]
_STRAY = (
    b"Segmentation fault", b"\xff\xfe\x00", b"", b"\ttab", b"V1120 nonsense",
    b'V9999 99:99:99.999999 0 x.py:1] {"artifact"', b"\x00" * 50,
)  # fmt: skip
_FULLY = 150
"""Of so many inputs one is asked everything."""


def changed_record(chance: random.Random, piece: Piece) -> Piece:
    """One record with its envelope, its payload, its prefix or any of its bytes changed."""
    line, payload = taken_apart(piece.data)
    prefix, brace, envelope = line.partition(b"{")
    kind = chance.randrange(10)
    try:
        if kind < 3:
            changed = changed_json(chance, json.loads(brace + envelope))
            return piece.changed(record_of(prefix + changed, payload))
        if kind < 7 and payload is not None:
            changed = changed_json(chance, json.loads(payload), chance.choice((1, 1, 3)))
            return piece.changed(record_of(line, changed))
    except (ValueError, RecursionError):
        pass  # changed before
    if kind == 7:
        return piece.changed(changed_bytes(chance, prefix, 2) + brace + envelope + piece.data[len(line) :])
    return piece.changed(changed_bytes(chance, piece.data, chance.choice((1, 1, 4, 20))))


def changed_line(chance: random.Random, piece: Piece) -> Piece:
    if chance.random() < 0.2 and piece.lookup is not None:
        key = piece.lookup[1].encode()
        return piece.changed(piece.data.replace(key, changed_bytes(chance, key)))
    if chance.random() < 0.2:
        words = piece.data.split(b" ")
        words[chance.randrange(len(words))] = chance.choice(PLANTED).encode()
        return piece.changed(b" ".join(words))
    return piece.changed(changed_bytes(chance, piece.data, chance.choice((1, 1, 3))))


def log_of(
    chance: random.Random, seed: list[Piece], change: Callable[[random.Random, Piece], Piece]
) -> list[Piece]:
    """Some pieces of a log, in their order or another, some of them changed, none, twice or cut."""
    start = chance.randrange(len(seed))
    pieces = seed[start : start + chance.choice((2, 5, 12, 30))]
    # Of a log that begins with anything nobody can say that it is one.
    pieces = [seed[0], *pieces] if seed[0] not in pieces else pieces
    for _ in range(chance.choice((0, 1, 1, 2, 5))):
        at = chance.randrange(1, len(pieces)) if len(pieces) > 1 else 0
        match chance.randrange(8):
            case 0:
                pieces.insert(at, pieces[chance.randrange(len(pieces))])
            case 1 if len(pieces) > 2:
                del pieces[at]
            case 2:
                pieces.insert(max(at, 1), Piece(chance.choice(_STRAY), is_touched=True))
            case 3 if at:
                other = chance.randrange(1, len(pieces))
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case _ if at:
                pieces[at] = change(chance, pieces[at])
    if chance.random() < 0.1:
        pieces[-1] = pieces[-1].changed(pieces[-1].data[: chance.randrange(len(pieces[-1].data) + 1)])
    return pieces


class Logs:
    """Inputs of one form of log, read by one reader."""

    def __init__(
        self, name: str, seeds: list[list[Piece]], change: Callable[[random.Random, Piece], Piece], read: Read
    ) -> None:
        self.name = name
        self._seeds, self._change, self._read = seeds, change, read
        self.pieces: list[Piece] = []
        self._is_full = False

    def make(self, chance: random.Random) -> bytes:
        self.pieces = log_of(chance, chance.choice(self._seeds), self._change)
        self._is_full = chance.randrange(_FULLY) == 0
        trace_records.BLOCK_BYTES = chance.choice((1_000, 4_000, 1 << 15))
        return b"\n".join(piece.data for piece in self.pieces) + b"\n"

    def check(self, data: bytes, folder: Path) -> None:
        path = folder / "one.log"
        path.write_bytes(data)
        reading = Reading()
        try:
            self._read(str(path), reading)
        except CachescopeError:
            return
        check_reading(reading)
        self._conserves(reading)
        if self._is_full:
            use(scope_of(reading), folder / "saved", path, len(data))

    def _conserves(self, reading: Reading) -> None:
        if reading.problems:
            return
        told = {(one.cache, one.cache_key) for process in reading.processes for one in process.lookups}
        # A record that stands in the log twice is known by its first line, which has the hash of its payload.
        changed = {piece.data.partition(b"\n")[0] for piece in self.pieces if piece.is_touched}
        for piece in self.pieces:
            is_of_another = piece.is_touched or piece.data.partition(b"\n")[0] in changed
            is_lost = not is_of_another and piece.lookup is not None and piece.lookup not in told
            assert not is_lost, f"nothing tells of {piece.lookup}"
        if self._read is TRACE.read:
            # A record that stands in the log twice is one lookup.
            whole = (piece for piece in self.pieces if piece.lookup and not piece.is_touched)
            records = {piece.data for piece in whole if piece.data.partition(b"\n")[0] not in changed}
            found = sum(len(process.lookups) for process in reading.processes)
            assert found >= len(records), f"{found} lookups told of {len(records)}"


class TracesInParts(Logs):
    """Traces read in parts, which tell what reading them in one tells."""

    def __init__(self, seeds: list[list[Piece]]) -> None:
        super().__init__("traces in parts", seeds, changed_record, TRACE.read)
        self._part_bytes = 0

    def make(self, chance: random.Random) -> bytes:
        data = super().make(chance)
        self._part_bytes = max(len(data) // chance.choice((2, 3, 5, 20)), 1)
        return data

    def check(self, data: bytes, folder: Path) -> None:
        path = folder / "one.log"
        path.write_bytes(data)
        places = parts_of_trace(str(path), self._part_bytes)
        if not places:
            return
        whole, together = Reading(), Reading()
        parts = [read_alone(partial(read_trace_part, start=a, end=b), str(path)) for a, b in places]
        TRACE.read(str(path), whole)
        fold_events(TraceProcess(str(path), together), together, parts)
        # None of it is shown: it may be megabytes.
        assert together.processes == whole.processes, "other processes than in one"
        assert together.problems == whole.problems, "other problems than in one"
        assert together.details.components == whole.details.components, "other hash details than in one"
        sets = [[codes.tobytes() for codes in one.details.sets] for one in (together, whole)]
        assert sets[0] == sets[1], "other sets of hash details than in one"


def _docker(data: bytes) -> bytes:
    lines = data.decode("utf-8", "replace").split("\n")
    return b"".join(json.dumps({"log": line + "\n", "stream": "stderr"}).encode() + b"\n" for line in lines)


PACKINGS: tuple[Callable[[bytes], bytes], ...] = (
    lambda data: gzip.compress(data, 1),
    lambda data: pa.compress(data, codec="zstd", asbytes=True),
    bz2.compress,
    lambda data: lzma.compress(data, preset=0),
    lambda data: b"\xff\xfe" + data.decode("utf-8", "replace").encode("utf-16-le"),
    lambda data: data.replace(b"\n", b"\r\n"),
    _docker,
    lambda data: b"\n".join(reversed(data.split(b"\n"))),
    lambda data: json.dumps(
        [{"message": one} for one in data.decode("utf-8", "replace").split("\n")]
    ).encode(),
    lambda data: (
        b"time,message\n" + b"".join(b'1,"%s"\n' % one.replace(b'"', b'""') for one in data.split(b"\n"))
    ),
    lambda data: b"".join(b"2026-01-01T00:00:00.0Z stderr F " + line + b"\n" for line in data.split(b"\n")),
)


class Packed:
    """Logs packed in every way, once or twice, with bytes of the packing changed."""

    name = "packed logs"

    def __init__(self, seeds: Seeds) -> None:
        self._seeds = [*seeds.traces, *seeds.texts]

    def make(self, chance: random.Random) -> bytes:
        pieces = chance.choice(self._seeds)[: chance.choice((3, 10, 30))]
        data = b"\n".join(piece.data for piece in pieces) + b"\n"
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            data = chance.choice(PACKINGS)(data)
            if chance.random() < 0.6:
                data = changed_bytes(chance, data, chance.choice((1, 1, 3, 10)))
        return data

    def check(self, data: bytes, folder: Path) -> None:
        path = folder / "packed.log"
        path.write_bytes(data)
        if (scope := scope_at(path)) is None:
            return
        assert len(json.dumps(scope.problems.to_dict("records"))) < 1 << 20


def log_kinds(seeds: Seeds) -> list[Logs | Packed]:
    return [
        Logs("trace records", seeds.traces, changed_record, TRACE.read),
        TracesInParts(seeds.traces),
        Logs("text lines", seeds.texts, changed_line, TEXT.read),
        Packed(seeds),
    ]


_STRAY_OF_VLLM = (
    b"INFO 11-23 20:31:35 [compilation/backends.py:417] Compiling a graph for dynamic shape takes 1.0 s",
    b"(EngineCore pid=999999999) INFO 99-99 99:99:99 [decorators.py:1] Directly load AOT compilation from path /rank_0_0/model",
    b"WARNING 02-29 23:59:60 [decorators.py:1] Cannot load aot compilation from path /a/rank_1_1/model, error: \xff\x1b[2J",
    b"INFO 11-23 20:31:35 [backends.py:500] Using cache directory: / for vLLM's torch.compile",
    b"INFO 11-23 20:31:35 [monitor.py:1] torch.compile takes 999999999.999999999 s in total",
    b"I1123 20:31:35.000000 7772 torch/_inductor/codecache.py:1] fx graph cache miss for key",
    b'{"asctime": "2026-11-24 15:00:07,410", "levelname": "INFO", "name": "vllm.compilation.backends", "processName": "MainProcess", "process": 42, '
    b'"message": "[backbone] Compiling a graph for compile range (1, 8) takes 7.83 s", "vllm_process_name": "EngineCore_DP0"}',
    b"",
)
_SECOND = 1_000_000_000
_FULLY_OF_VLLM = 20
"""Of so many inputs one is asked everything."""


class VllmLogs:
    """What is said of each start is said once, and a change is named only beside another folder of the same part."""

    name = "vLLM logs"

    def __init__(self, seeds: Seeds) -> None:
        root = seeds.folder / "shipped" / "vllm"
        self._logs = [
            [line for line in path.read_bytes().split(b"\n") if b"ompil" in line or b"Dynamo" in line]
            for path in sorted(root.glob("*/logs/*.log"))
        ]
        self._factors = [
            (
                Path(*path.parts[path.parts.index("torch_compile_cache") :]),
                path.read_bytes(),
                path.stat().st_mtime_ns,
            )
            for path in sorted(root.glob("*/cache/**/cache_key_factors.json"))
        ]
        assert self._logs and self._factors
        self._is_full = False

    def make(self, chance: random.Random) -> bytes:
        self._is_full = chance.randrange(_FULLY_OF_VLLM) == 0
        lines = [line for log in chance.sample(self._logs, chance.choice((1, 2, 4, 8))) for line in log]
        for _ in range(chance.choice((0, 1, 3, 10))):
            at = chance.randrange(len(lines))
            match chance.randrange(6):
                case 0 if len(lines) > 2:
                    del lines[at]
                case 1:
                    lines.insert(at, chance.choice(lines))
                case 2:
                    lines.insert(at, chance.choice(_STRAY_OF_VLLM))
                case 3:
                    other = chance.randrange(len(lines))
                    lines[at], lines[other] = lines[other], lines[at]
                case _:
                    lines[at] = changed_bytes(chance, lines[at], chance.choice((1, 1, 4)))
        shown = chance.sample(range(len(self._factors)), chance.randrange(len(self._factors)))
        shifts = [chance.choice((0, 0, 0, 1, -1, 3_600, -86_400, -9 * 10**9)) for _ in shown]
        head = json.dumps([shown, shifts, chance.randrange(-50_000, 50_000)]).encode()
        return head + b"\n" + b"\n".join(lines)

    def check(self, data: bytes, folder: Path) -> None:
        root = emptied(folder / "vllm")
        head, _, text = data.partition(b"\n")
        shown, shifts, off = json.loads(head)
        for number, shift in zip(shown, shifts, strict=True):
            at, content, written = self._factors[number]
            path = root / at
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            moment = max(0, written + shift * _SECOND)
            os.utime(path, ns=(moment, moment))
        log = root / "server.log"
        log.write_bytes(text)
        latest = self._factors[-1][2] + (86_400 + off) * _SECOND
        os.utime(log, ns=(latest, latest))
        if (scope := scope_at(root)) is None:
            return
        _holds(scope)
        if self._is_full:
            use(scope, folder / "saved", root, len(data))


def _holds(scope: Scope) -> None:
    lookups = scope.lookups[scope.lookups["cache"] == "vllm"].set_index("lookup")
    assert sorted(scope.vllm_starts["lookup"]) == sorted(lookups.index), "a start that is no lookup, or two"
    keys = scope.lookups.set_index("lookup")["cache_key"]
    entries = scope.entries.set_index("entry")["cache_key"]
    for lookup, miss in scope.facts.misses.items():
        if lookup not in lookups.index:
            continue
        is_changed = miss.verdict == "key_changed"
        assert is_changed == bool(miss.changed), "blamed on nothing, or named and not blamed"
        assert miss.evidence != "not_known" or not miss.changed, "blamed, and not known"
        fields = [change.field for change in scope.changes(lookup)]
        assert fields == list(miss.changed), "other changes than fields"
        beside = None if miss.baseline_lookup is None else keys[miss.baseline_lookup]
        beside = beside if miss.baseline_entry is None else entries[miss.baseline_entry]
        assert not miss.changed or beside is None or beside != keys[lookup], "a folder beside itself"
