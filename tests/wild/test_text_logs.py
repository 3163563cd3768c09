"""Text logs as the world leaves them, over every recording: cut, thinned, prefixed, packed.

The truth is torch's own trace of the same processes: each key with its hash details, and what came of each lookup.
What a damaged log gives must be among that, or be called unknown or incomplete.

Of the ways to thin the logs of a recording and the places to do it some are drawn, the same in every run. `CACHESCOPE_DAMAGES` says
how many of each recording, or ``all``.
"""

import bz2
import gzip
import lzma
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from cachescope.columns import records
from cachescope.readers.assemble import Tables, assemble
from cachescope.readers.kinds import looks_like_text_log
from cachescope.readers.logs.text_log import read_text_log
from cachescope.readers.logs.trace_log import read_trace_log
from cachescope.readers.reading import Reading
from tests.conftest import Recording
from tests.recordings import Recorded
from tests.sampling import sampled
from tests.wild import damaged_logs as logs
from tests.wild.unsaved import UNSAVED

Details = frozenset[tuple[str, str]]
Lines = list[bytes]

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
    """What the traces of a recording say."""

    def __init__(self, folder: Path) -> None:
        reading = Reading()
        for path in sorted((folder / "trace").iterdir()):
            read_trace_log(str(path), reading)
        tables = assemble(reading)
        self.details = dict(details_of(tables))
        self.outcomes = outcomes_of(tables)


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


def read_texts(texts: list[bytes], folder: Path) -> Tables:
    reading = Reading()
    for number, data in enumerate(texts):
        path = folder / f"{number}.log"
        path.write_bytes(data)
        if looks_like_text_log(data):
            read_text_log(str(path), reading)
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


Change = Callable[[bytes, random.Random], bytes]
THINNED: dict[str, Change] = {
    "one line lost": logs.without_lines(1),
    "5 % of the lines lost": logs.without_a_share(0.05),
    "half of the lines lost": logs.without_a_share(0.5),
    "runs of lines lost": logs.without_stretches,
    "cut at its end": logs.without_tail,
    "cut at its beginning": logs.without_head,
    "lines cut short": shortened,
}


def those(cases: list[tuple[str, str]], quick: set[tuple[str, str]]) -> list[ParameterSet]:
    return [
        pytest.param(*case, id=" ".join(case), marks=() if case in quick else pytest.mark.slow)
        for case in cases
    ]


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
    cases = [(name, time) for name in THINNED for time in range(3)]
    drawn = sampled(cases, _OFTEN, f"{version} {scenario}")
    rng = random.Random(f"{version} {scenario}")
    for name, time in cases:
        # All are made, so that those that are read are the same however many there are.
        damaged = [THINNED[name](data, rng) for data in texts]
        if (name, time) in drawn:
            counts = assert_nothing_is_invented(read_texts(damaged, recorded.room), truth)
            print(f"{version} {scenario}, {name}, {time}: {dict(counts)}")


def test_a_hit_is_no_miss_where_the_lookup_behind_it_lost_its_key(
    recording: Recording, tmp_path: Path
) -> None:
    folder = recording("2.13.0", "in_process")
    cold, _ = texts_of(folder)
    lines = cold.split(b"\n")
    keys = [at for at, line in enumerate(lines) if b" hash details for key " in line]
    outcomes = [
        at
        for at, line in enumerate(lines)
        if b" cache hit for key " in line or b" cache miss for key " in line
    ]
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
    """All lookups, in an order of their own."""
    details = iter(details_of(tables))
    rows = [
        (
            row["cache"],
            row["cache_key"],
            row["outcome"],
            row["compile_id"],
            row["order"],
            row["bypass_reason"],
        )
        + (() if row["detail_set"] is None else (tuple(sorted(next(details)[1])),))
        for row in records(tables.lookups.frame)
    ]
    return sorted(rows, key=str)


class Clock:
    """A time of day that goes on with every line."""

    def __init__(self) -> None:
        self.seconds = 0

    def __call__(self) -> bytes:
        self.seconds += 1
        hours, rest = divmod(self.seconds, 3600)
        return b"%02d:%02d:%02d" % (hours % 24, rest // 60, rest % 60)


PREFIXES: dict[str, Callable[[bytes, Clock], bytes]] = {
    "docker compose": lambda name, _: b"%s-1  | " % name,
    "kubectl --prefix": lambda name, _: b"[pod/%s-5f7c/main] " % name,
    "kubectl --timestamps": lambda name, clock: b"[pod/%s/main] 2026-11-22T%s.123Z " % (name, clock()),
    "journald": lambda name, clock: b"Nov 22 %s host %s[1]: " % (clock(), name),
    "srun -l": lambda name, _: b"%d: " % len(name),
    "mpirun --tag-output": lambda name, _: b"[1,%d]<stderr>:" % len(name),
    "torchrun": lambda name, _: b"[default%d]:" % len(name),
    "Ray": lambda name, _: b"\x1b[36m(%s pid=%d, ip=10.0.0.1)\x1b[0m " % (name, len(name)),
    "a name and a time": lambda name, clock: b"<<%s>> %s " % (name, clock()),
}


@pytest.mark.sweep
@pytest.mark.parametrize(("version", "scenario"), SOME, ids=[" ".join(one) for one in SOME])
def test_prefixes_tell_streams_apart(
    version: str, scenario: str, recording: Recording, tmp_path: Path
) -> None:
    texts = texts_of(recording(version, scenario))
    plain = readings(read_texts(texts, tmp_path))
    for form, prefix in PREFIXES.items():
        one = [b"\n".join(prefixed(data, prefix, b"web")) + b"\n" for data in texts]
        assert readings(read_texts(one, tmp_path)) == plain, form
        rng = random.Random(form)
        both = [mixed([prefixed(data, prefix, name) for name in (b"web", b"worker")], rng) for data in texts]
        assert readings(read_texts(both, tmp_path)) == sorted([*plain, *plain], key=str), form


def prefixed(data: bytes, prefix: Callable[[bytes, Clock], bytes], name: bytes) -> Lines:
    clock = Clock()
    return [prefix(name, clock) + line for line in data.split(b"\n")[:-1]]


def mixed(streams: list[Lines], rng: random.Random) -> bytes:
    """Some lines of the one, some of the other."""
    found: Lines = []
    while streams := [lines for lines in streams if lines]:
        lines, count = rng.choice(streams), rng.randrange(1, 40)
        found += lines[:count]
        del lines[:count]
    return b"\n".join(found) + b"\n"


def in_cri_lines(data: bytes, rng: random.Random) -> bytes:
    """What container runtimes write below kubelet: lines of 16 kB at most, with P for a part and F for the last."""
    found = []
    for line in data.split(b"\n")[:-1]:
        parts = [line[at : at + 16384] for at in range(0, len(line), 16384)] or [b""]
        flags = [b"P"] * (len(parts) - 1) + [b"F"]
        found += [b"2026-11-22T12:00:00.1Z stderr %s %s\n" % one for one in zip(flags, parts, strict=True)]
    return b"".join(found)


def compressed(compress: Callable[[bytes], bytes], change: Change = lambda data, rng: data) -> Change:
    return lambda data, rng: compress(change(data, rng))


PACKED: dict[str, Change] = {
    "colours": logs.coloured,
    "a colour code at the end": logs.reset_at_ends,
    "CR LF": logs.with_crlf,
    "UTF-16": logs.in_utf16,
    "UTF-16 with CR LF": lambda data, rng: logs.in_utf16(logs.with_crlf(data, rng), rng),
    "a byte order mark": logs.behind(b"\xef\xbb\xbf"),
    "xz": compressed(lzma.compress),
    "bzip2": compressed(bz2.compress),
    "gzip": compressed(gzip.compress),
    "docker": logs.docker_json,
    "docker, xz": compressed(lzma.compress, logs.docker_json),
    "container runtime": in_cri_lines,
}


@pytest.mark.sweep
@pytest.mark.parametrize(("version", "scenario"), SOME, ids=[" ".join(one) for one in SOME])
def test_a_log_in_another_form_says_the_same(
    version: str, scenario: str, recording: Recording, tmp_path: Path
) -> None:
    texts = texts_of(recording(version, scenario))
    plain = readings(read_texts(texts, tmp_path))
    for form, packed in PACKED.items():
        reading = Reading()
        for number, data in enumerate(texts):
            path = tmp_path / f"{number}.packed"
            path.write_bytes(packed(data, random.Random(form)))
            read_text_log(str(path), reading)
        assert readings(assemble(reading)) == plain, form


@pytest.mark.slow
@pytest.mark.parametrize(("version", "scenario"), those(SOME, {("2.13.0", "config_flip")}))
def test_a_trace_and_its_thinned_log_are_one_run(
    version: str, scenario: str, recording: Recording, tmp_path: Path
) -> None:
    folder = recording(version, scenario)
    traces = sorted((folder / "trace").iterdir())
    alone = Reading()
    for path in traces:
        read_trace_log(str(path), alone)
    without = assemble(alone)
    rng = random.Random(scenario)
    for name, thin in THINNED.items():
        reading = Reading()
        for path in traces:
            read_trace_log(str(path), reading)
        for number, data in enumerate(texts_of(folder)):
            path = tmp_path / f"{number}.log"
            path.write_bytes(thin(data, rng))
            if looks_like_text_log(path.read_bytes()):
                read_text_log(str(path), reading)
        tables = assemble(reading)
        assert len(tables.runs.frame) == len(without.runs.frame), name
        # Traces of 2.6 do not tell everything, and what the log adds comes and goes with its lines.
        assert version == "2.6.0" or told_outcomes(tables) == told_outcomes(without), name


def told_outcomes(tables: Tables) -> list[tuple[object, ...]]:
    names = ("run", "order", "cache", "cache_key", "outcome")
    return [tuple(row[name] for name in names) for row in records(tables.lookups.frame)]
