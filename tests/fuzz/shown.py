"""Recordings in which texts are replaced by secrets and by markup, and what every command says of them."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from cachescope.keys.hashing import entry_name
from fuzz.outputs import PLANTED, check_outputs
from fuzz.seeds import Seeds
from fuzz.use import emptied
from fuzz.values import changed_bytes
from tests.planted import plant_in_pickle, plant_in_text_log, plant_in_trace

_COMMANDS = 3
"""Of so many an input is asked."""


class Shown:
    """A trace, a text log, two entries and a snapshot, planted and then changed."""

    name = "planted recordings"

    def __init__(self, seeds: Seeds) -> None:
        self._seeds = seeds
        self._entries = [(cache, data) for cache, data in seeds.entries if len(data) < 60_000]
        self._chance = random.Random()

    def make(self, chance: random.Random) -> bytes:
        self._chance = chance
        seed = chance.choice(chance.choice((self._seeds.traces, self._seeds.texts)))
        start = chance.randrange(len(seed))
        pieces = (seed[0], *seed[start : start + chance.choice((5, 30))])
        return b"\n".join(piece.data for piece in pieces) + b"\n"

    def check(self, data: bytes, folder: Path) -> None:
        chance, root = self._chance, emptied(folder / "planted")
        often = chance.choice((0.05, 0.2, 0.6))

        def choose(old: str) -> str:
            if chance.random() > often:
                return old
            return old[:40] * chance.randrange(2) + chance.choice(PLANTED)

        log = root / "one.log"
        log.write_bytes(data)
        (plant_in_trace if b'] {"' in data else plant_in_text_log)(log, choose)
        log.write_bytes(changed_bytes(chance, log.read_bytes(), chance.choice((0, 0, 1, 4))))
        for cache, whole in chance.sample(self._entries, chance.choice((0, 1, 2))):
            entry = plant_in_pickle(whole, choose)
            place = root / "cache" / cache / "aa" if cache == "fxgraph" else root / "cache" / cache
            place = place / (("f" if cache == "fxgraph" else "a") + "a" * 51)
            place.mkdir(parents=True, exist_ok=True)
            (place / entry_name(entry)).write_bytes(changed_bytes(chance, entry, chance.choice((0, 0, 1))))
            name = choose("x.py").replace("/", "|").replace("\0", "")[:100]
            (place.parent / name).write_text(choose("# x"))
        if chance.random() < 0.3:
            (root / "context.json").write_text(_snapshot(choose))
        for which in chance.sample(range(10), _COMMANDS):
            check_outputs(root, folder, which)
        shutil.rmtree(root)


def _snapshot(choose: Callable[[str], str]) -> str:
    texts = {name: choose("a") for name in ("host", "platform", "python_version", "torch_version")}
    context = {
        "runtime_context": {"inductor_configs": {"a": choose("b")}},
        "compile_context": {"runtime": choose("CUDA")},
    }
    return json.dumps({
        "cachescope_snapshot": 1, "context": context, "pid": 7, "time": "2026-01-01T00:00:00+00:00", "settings": {"a": choose("1")},
        "environment": {"A": choose("b")}, "key_fields": {"a": "b" * 51}, **texts,
    })  # fmt: skip
