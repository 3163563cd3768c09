"""Text logs that lost lines: what they still tell is what torch's own trace of the same processes has, and the two stay one run.

Whole recordings are thinned, prefixed and packed in test_damaged_recordings.py.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from cachescope.columns import records
from cachescope.readers.assemble import Tables, assemble
from cachescope.readers.kinds import looks_like_text_log
from cachescope.readers.logs.text_log import TEXT
from cachescope.readers.logs.trace_log import TRACE
from cachescope.readers.reading import Reading
from tests.conftest import Recording
from tests.wild import damaged_logs as logs

Details = frozenset[tuple[str, str]]

SOME = [
    ("2.13.0", "config_flip"),
    ("2.13.0", "training"),
    ("2.13.0", "bypass_custom_pass"),
    ("2.13.0", "entry_truncated"),
    ("2.6.0", "dynamic_guards"),
    ("2.10.0", "training"),
    ("2.15.0", "config_flip"),
]
MISSED = {"full_miss", "guard_miss"}


class Truth:
    def __init__(self, folder: Path) -> None:
        tables = read_texts([], folder, traces_of(folder))
        self.details = dict(details_of(tables))
        self.outcomes = outcomes_of(tables)


def traces_of(folder: Path) -> list[Path]:
    return sorted((folder / "trace").iterdir())


def details_of(tables: Tables) -> Iterator[tuple[tuple[str, str], Details]]:
    for row in records(tables.lookups.frame):
        if row["detail_set"] is not None:
            found = tables.hash_details.details(row["detail_set"])
            key = (row["cache"], row["cache_key"])
            yield key, frozenset((detail.field, detail.detail_hash) for detail in found)


def outcomes_of(tables: Tables) -> Counter[tuple[str, str | None, str]]:
    # Of guard misses a text log tells nothing since 2.8.
    return Counter(
        (row["cache"], row["cache_key"], "missed" if row["outcome"] in MISSED else row["outcome"])
        for row in records(tables.lookups.frame)
        if row["outcome"] != "unknown"
    )


def texts_of(folder: Path) -> list[bytes]:
    found = [path.read_bytes() for path in sorted((folder / "text").iterdir())]
    return [data for data in found if looks_like_text_log(data)]


def read_texts(texts: list[bytes], folder: Path, traces: list[Path] | None = None) -> Tables:
    reading = Reading()
    for path in traces or ():
        TRACE.read(str(path), reading)
    for number, data in enumerate(texts):
        path = folder / f"{number}.log"
        path.write_bytes(data)
        if looks_like_text_log(data):
            TEXT.read(str(path), reading)
    return assemble(reading)


def assert_nothing_is_invented(tables: Tables, truth: Truth) -> Counter[str]:
    found = list(details_of(tables))
    alone = Counter(cache for cache, _ in {key for key, _ in found})
    for key, details in found:
        # Through 2.6 a trace has no details of FX hits that come through AOTAutograd.
        expected = truth.details.get(key, details)
        # Nothing shows that a set without another of its cache has lost a line, and nothing is compared with it.
        assert details == expected or (alone[key[0]] == 1 and details < expected), key
    assert outcomes_of(tables) <= truth.outcomes
    counts = Counter(tables.lookups.frame["outcome"].tolist())
    return counts + Counter(f"details {origin}" for origin in tables.lookups.frame["details"])


def shortened(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    return b"\n".join(line[: rng.randrange(60, 400)] if rng.random() < 0.01 else line for line in lines)


THINNED: dict[str, logs.Change] = {
    "one line lost": partial(logs.without_lines, 1),
    "5 % of the lines lost": partial(logs.without_a_share, 0.05),
    "half of the lines lost": partial(logs.without_a_share, 0.5),
    "runs of lines lost": logs.without_stretches,
    "cut at its end": logs.without_tail,
    "cut at its beginning": logs.without_head,
    "lines cut short": shortened,
}


def test_a_hit_is_no_miss_where_the_next_lookup_lost_its_key(recording: Recording, tmp_path: Path) -> None:
    folder = recording("2.13.0", "in_process")
    cold, _ = texts_of(folder)
    lines = cold.split(b"\n")
    keys = [at for at, line in enumerate(lines) if b" hash details for key " in line]
    is_outcome = re.compile(rb" cache (?:hit|miss) for key ").search
    outcomes = [at for at, line in enumerate(lines) if is_outcome(line)]
    # Three AOTAutograd lookups of one compile id: a miss, a hit, and a miss whose graph missed too.
    hit, behind, graph = keys[-3:]
    lost = {outcomes[-3], behind, outcomes[-2]}
    assert (
        b"AOTAutograd cache hit" in lines[outcomes[-3]] and hit < outcomes[-3] < behind < outcomes[-2] < graph
    )
    damaged = b"\n".join(line for at, line in enumerate(lines) if at not in lost)
    assert_nothing_is_invented(read_texts([damaged], tmp_path), Truth(folder))


SLOW = [SOME[0], *(pytest.param(*one, marks=pytest.mark.slow) for one in SOME[1:])]


@pytest.mark.parametrize(("version", "scenario"), SLOW)
def test_a_trace_and_its_thinned_log_are_one_run(
    version: str, scenario: str, recording: Recording, tmp_path: Path
) -> None:
    folder = recording(version, scenario)
    without = read_texts([], tmp_path, traces_of(folder))
    rng = random.Random(scenario)
    for name, thin in THINNED.items():
        tables = read_texts([thin(data, rng) for data in texts_of(folder)], tmp_path, traces_of(folder))
        assert len(tables.runs.frame) == len(without.runs.frame), name
        # Traces of 2.6 do not tell everything, and what the log adds comes and goes with its lines.
        assert version == "2.6.0" or told_outcomes(tables) == told_outcomes(without), name


def told_outcomes(tables: Tables) -> list[tuple[object, ...]]:
    names = ("run", "order", "cache", "cache_key", "outcome")
    return [tuple(row[name] for name in names) for row in records(tables.lookups.frame)]
