"""Logs of vLLM with lines changed, lost, twice or of several processes, beside folders whose times and names change."""

import json
import os
import random
from pathlib import Path

from cachescope.scope import Scope
from fuzz.seeds import Seeds
from fuzz.use import emptied, scope_at, use
from fuzz.values import changed_bytes

_STRAY = (
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
_FULLY = 20
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
        self._is_full = chance.randrange(_FULLY) == 0
        lines = [line for log in chance.sample(self._logs, chance.choice((1, 2, 4, 8))) for line in log]
        for _ in range(chance.choice((0, 1, 3, 10))):
            at = chance.randrange(len(lines))
            match chance.randrange(6):
                case 0 if len(lines) > 2:
                    del lines[at]
                case 1:
                    lines.insert(at, chance.choice(lines))
                case 2:
                    lines.insert(at, chance.choice(_STRAY))
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
