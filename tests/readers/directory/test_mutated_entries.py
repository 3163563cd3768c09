"""Ten thousand damaged real entries: each is a value or unreadable, and nothing else happens.

CACHESCOPE_MUTATIONS sets another number.
"""

import os
import pickletools
import random
import sys
import tracemalloc
from pathlib import Path

import pytest
from fuzz.values import changed_bytes
from hostile_pickles import hostile

from cachescope.readers.pickles.inert_pickle import Limits, UnreadablePickle, loads_inert
from cachescope.readers.pickles.pickle_check import Cost
from tests.conftest import Recording

pytestmark = pytest.mark.sweep  # 10,000 mutations

Parts = list[bytes]

MUTATIONS = int(os.environ.get("CACHESCOPE_MUTATIONS", "10000"))
PEAK = 8 << 20
"""No entry of up to 200 kB may take more than this while it is read."""
KEY = "f" + "a" * 51

# What an unpickler that is fooled would do; `find_class` is the C unpickler's own, which must never run.
FORBIDDEN = ("pickle.find_class", "os.", "subprocess.", "import", "exec", "compile", "open", "ctypes.")


class Watch:
    """An audit hook, which cannot be taken off again, but stopped."""

    def __init__(self) -> None:
        self.on = False
        self.seen: list[str] = []
        sys.addaudithook(self)

    def __call__(self, event: str, _: object) -> None:
        if self.on and event.startswith(FORBIDDEN):
            self.seen.append(event)


@pytest.fixture(scope="module")
def entries(recording: Recording) -> list[Parts]:
    """Real entries of four versions, each split into its opcodes."""
    found = []
    for version in ("2.6.0", "2.10.0", "2.13.0", "2.15.0"):
        cache = recording(version, "cold_warm") / "cache"
        for kind in ("fxgraph", "aotautograd"):
            path = next(path for path in sorted((cache / kind).rglob("*")) if path.is_file())
            data = path.read_bytes()
            starts = [at for _, _, at in pickletools.genops(data)]
            ends = [*starts[1:], len(data)]
            found.append([data[start:end] for start, end in zip(starts, ends, strict=True)])
    return found


def mutated(chance: random.Random, entries: list[Parts], programs: list[bytes]) -> bytes:
    parts = list(chance.choice(entries))
    for _ in range(chance.choice((0, 0, 1, 1, 2, 5))):
        change_opcodes(chance, parts, chance.choice(entries), programs)
    data = changed_bytes(chance, b"".join(parts), chance.choice((0, 1, 1, 3, 20)))
    return data[: chance.randrange(len(data) + 1)] if chance.random() < 0.05 else data


def change_opcodes(chance: random.Random, parts: Parts, other: Parts, programs: list[bytes]) -> None:
    at, end = chance.randrange(len(parts)), chance.randrange(len(parts))
    start, length = chance.randrange(len(other)), chance.choice((1, 1, 3, 30, 1_000))
    match chance.randrange(7):
        case 0:
            del parts[at : at + length]
        case 1:
            parts[at:at] = parts[end : end + length]
        case 2:
            parts[at], parts[end] = parts[end], parts[at]
        case 3:  # the front of one entry and the back of another
            parts[at:] = other[start:]
        case 4:
            parts[at] = other[start]
        case 5:
            parts[at:at] = [chance.choice(programs)]
        case 6:  # another opcode with the same argument
            parts[at] = bytes([ord(chance.choice(pickletools.opcodes).code)]) + parts[at][1:]


def test_mutated_entries_are_values_or_unreadable(
    entries: list[Parts], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentinel = tmp_path / "executed"
    programs = [code.removesuffix(b".") for code in hostile(str(sentinel)).values() if len(code) < 1_000]
    followed: list[Cost] = []
    monkeypatch.setattr(
        "cachescope.readers.pickles.pickle_check.Cost",
        lambda *given: followed.append(Cost(*given)) or followed[-1],
    )
    watch = Watch()
    chance = random.Random(20_261)
    limits = Limits()
    sound = largest = 0
    tracemalloc.start()
    try:
        for _ in range(MUTATIONS):
            data = mutated(chance, entries, programs)
            followed.clear()
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            watch.on = True
            try:
                loads_inert(data)
            except UnreadablePickle:
                is_sound = False
            else:
                is_sound = True
            finally:
                watch.on = False
            assert watch.seen == []
            largest = max(largest, tracemalloc.get_traced_memory()[1] - before)
            assert largest < PEAK
            if is_sound:
                sound += 1
                # What bounds the time, beside a step for each byte at most.
                assert all(program.work <= limits.work for program in followed)
    finally:
        tracemalloc.stop()
    print(f"{sound} of {MUTATIONS} sound; the largest took {largest / (1 << 20):.1f} MiB")
    assert not sentinel.exists()
    # Mutations that break everything, or nothing, would prove nothing.
    assert MUTATIONS // 20 < sound < MUTATIONS * 19 // 20
