"""Text logs as the world leaves them, over every recording: cut, thinned, prefixed, packed.

The truth is torch's own trace of the same processes: each key with its hash details, and what came of each lookup.
What a damaged log gives must be among that, or be called unknown or incomplete.

Of the ways to thin the logs of a recording and the places to do it some are drawn, the same in every run. `CACHESCOPE_DAMAGES` says
how many of each recording, or ``all``.
"""

import bz2
import gzip
import itertools
import lzma
import random
import re
import time
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
from tests.recordings import Recorded
from tests.sampling import sampled
from tests.wild import damaged_logs as logs
from tests.wild.unsaved import UNSAVED

Details = frozenset[tuple[str, str]]

# Text without times, and programs that look nothing up.
LEFT_OUT = {"text_short", "trace_only", "force_disabled"}
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
# Each way to thin a log over a hundred times, in all recordings together.
_OFTEN = 4


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


def check_a_thinned_log_invents_nothing(recorded: Recorded) -> None:
    version, scenario, folder = recorded.version, recorded.name, recorded.folder
    if scenario in LEFT_OUT:
        return
    truth, texts = Truth(folder), texts_of(folder)
    assert texts
    whole = read_texts(texts, recorded.room)
    if version == "2.6.0" or scenario in UNSAVED:
        # Its traces have nothing of FX graphs that miss through an AOTAutograd entry, and none has of an FX graph whose
        # compile failed or did not end.
        truth.outcomes |= outcomes_of(whole)
    assert_nothing_is_invented(whole, truth)
    cases = [(name, turn) for name in THINNED for turn in range(3)]
    drawn = sampled(cases, _OFTEN, f"{version} {scenario}")
    rng = random.Random(f"{version} {scenario}")
    for name, turn in cases:
        # All are made, so that those that are read are the same however many there are.
        damaged = [THINNED[name](data, rng) for data in texts]
        if (name, turn) in drawn:
            counts = assert_nothing_is_invented(read_texts(damaged, recorded.room), truth)
            print(f"{version} {scenario}, {name}, {turn}: {dict(counts)}")


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


@pytest.mark.sweep
def test_each_line_of_a_set_that_is_lost_is_missed(recording: Recording, tmp_path: Path) -> None:
    for version, scenario in (("2.6.0", "config_flip"), ("2.13.0", "config_flip"), ("2.15.0", "config_flip")):
        folder = recording(version, scenario)
        truth, (first, second, *_) = Truth(folder), texts_of(folder)
        lines = second.split(b"\n")
        for at in sampled(range(0, len(lines) - 1, 7), 100, f"{version} {scenario}"):
            damaged = b"\n".join(lines[:at] + lines[at + 1 :])
            assert_nothing_is_invented(read_texts([first, damaged], tmp_path), truth)


def readings(tables: Tables) -> list[tuple[object, ...]]:
    details = iter(details_of(tables))
    names = ("cache", "cache_key", "outcome", "compile_id", "order", "bypass_reason")
    rows = [
        tuple(row[name] for name in names)
        + (() if row["detail_set"] is None else (tuple(sorted(next(details)[1])),))
        for row in records(tables.lookups.frame)
    ]
    return sorted(rows, key=str)


_SECONDS = itertools.count()


def time_of_day() -> bytes:
    """Of each line a second later."""
    return time.strftime("%H:%M:%S", time.gmtime(next(_SECONDS))).encode()


PREFIXES = logs.PREFIXES | {
    "kubectl --timestamps": lambda number, _: b"[pod/%d/main] 2026-11-22T%s.123Z " % (number, time_of_day()),
    "journald": lambda number, _: b"Nov 22 %s host python[%d]: " % (time_of_day(), number),
    "a coloured actor": lambda number, _: b"\x1b[36m(web pid=%d, ip=10.0.0.1)\x1b[0m " % number,
    "a name and a time": lambda number, _: b"<<%d>> %s " % (number, time_of_day()),
}


@pytest.mark.sweep
@pytest.mark.parametrize(("version", "scenario"), SOME, ids=[" ".join(one) for one in SOME])
def test_prefixes_part_streams(version: str, scenario: str, recording: Recording, tmp_path: Path) -> None:
    texts = texts_of(recording(version, scenario))
    plain = readings(read_texts(texts, tmp_path))
    for form, prefix in PREFIXES.items():
        streams = [
            [[prefix(n, b"%d" % n) + line for line in logs.lines_of(data)] for n in (3, 6)] for data in texts
        ]
        assert readings(read_texts([b"".join(one) for one, _ in streams], tmp_path)) == plain, form
        rng = random.Random(form)
        both = [logs.mixed(two, rng) for two in streams]
        assert readings(read_texts(both, tmp_path)) == sorted([*plain, *plain], key=str), form


def in_cri_lines(data: bytes, rng: random.Random) -> bytes:
    """What container runtimes write below kubelet: lines of 16 kB at most, with P for a part and F for the last."""
    found = []
    for line in data.split(b"\n")[:-1]:
        parts = [line[at : at + 16384] for at in range(0, len(line), 16384)] or [b""]
        flags = [b"P"] * (len(parts) - 1) + [b"F"]
        found += [b"2026-11-22T12:00:00.1Z stderr %s %s\n" % one for one in zip(flags, parts, strict=True)]
    return b"".join(found)


PACKED: dict[str, logs.Change] = {
    "colours": logs.coloured,
    "a colour code at the end": logs.reset_at_ends,
    "CR LF": logs.with_crlf,
    "UTF-16": logs.in_utf16,
    "UTF-16 with CR LF": lambda data, rng: logs.in_utf16(logs.with_crlf(data, rng), rng),
    "a byte order mark": partial(logs.behind, b"\xef\xbb\xbf"),
    "xz": lambda data, rng: lzma.compress(data),
    "bzip2": lambda data, rng: bz2.compress(data),
    "gzip": lambda data, rng: gzip.compress(data),
    "docker": logs.docker_json,
    "docker, xz": lambda data, rng: lzma.compress(logs.docker_json(data, rng)),
    "container runtime": in_cri_lines,
}


@pytest.mark.sweep
@pytest.mark.parametrize(("version", "scenario"), SOME, ids=[" ".join(one) for one in SOME])
def test_another_form_says_the_same(
    version: str, scenario: str, recording: Recording, tmp_path: Path
) -> None:
    texts = texts_of(recording(version, scenario))
    plain = readings(read_texts(texts, tmp_path))
    for form, packed in PACKED.items():
        reading = Reading()
        for number, data in enumerate(texts):
            path = tmp_path / f"{number}.packed"
            path.write_bytes(packed(data, random.Random(form)))
            TEXT.read(str(path), reading)
        assert readings(assemble(reading)) == plain, form


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
