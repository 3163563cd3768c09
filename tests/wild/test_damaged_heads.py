"""A trace that lost its beginning, or got another one, gives every lookup whose record is whole, and says so."""

import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cachescope
from cachescope.readers.kinds import looks_like_trace_log
from cachescope.report.terminal import terminal_lines
from cachescope.report.why_missed import answer_blocks
from tests.conftest import Recording

Found = Counter[tuple[str, str | None]]

# torch's own records, found without cachescope.
_RECORD = re.compile(rb'(?m)^V\d{4} [^\n]*?\] \{"[a-z]')
_LOOKUP = re.compile(
    rb'(?m)^V[^\n]*?\] \{"artifact": \{"name": "(fx_graph_cache|aotautograd_cache)_(?:hit|miss|bypass|hash)"[^\n]*\n'
    rb"(\t[^\n]*\n)+"
)
_CACHES = {b"fx_graph_cache": "fxgraph", b"aotautograd_cache": "aotautograd"}
SOURCES = [
    ("2.13.0", "four_graphs"),
    ("2.13.0", "bypass_custom_pass"),
    ("2.13.0", "killed_before_save"),
    ("2.15.0", "training"),
    ("2.10.0", "dynamic_guards"),
    ("2.6.0", "training"),
]
MARK = b"\xef\xbb\xbf"


def lookups_in(data: bytes) -> Found:
    first = _RECORD.search(data)
    found: Found = Counter()
    for match in _LOOKUP.finditer(data, first.start() if first else len(data)):
        key = json.loads(match[2][1:]).get("key") if match[2].endswith(b"}\n") else None
        found[_CACHES[match[1]], key] += 1
    return found


def read(path: Path) -> tuple[Found, cachescope.Scope]:
    scope = cachescope.read(path)
    rows = scope.lookups[["cache", "cache_key"]].itertuples(index=False)
    keys = ((row.cache, row.cache_key if isinstance(row.cache_key, str) else None) for row in rows)
    return Counter(keys), scope


@pytest.fixture(scope="module")
def traces(recording: Recording) -> list[bytes]:
    found = [sorted((recording(*source) / "trace").iterdir()) for source in SOURCES]
    return [path.read_bytes() for paths in found for path in paths]


def flipped(data: bytes, seed: int) -> bytes:
    size = len(b"V1122 13:52:27.716000")
    chance, head = random.Random(seed), bytearray(data[:size])
    for at in chance.sample(range(size), 4):
        head[at] ^= chance.randrange(1, 128)
        if head[at] == ord("\n"):
            head[at] = 11
    return bytes(head) + data[size:]


DAMAGES: dict[str, Callable[[bytes, int], bytes]] = {
    "byte order mark": lambda data, seed: MARK + data,
    "blank line": lambda data, seed: b"\n" + data,
    "foreign line": lambda data, seed: b"=== log of rank 3, rotated at midnight ===\n" + data,
    "foreign line that begins as a record does": lambda data, seed: (
        b"Error: no space left on device\n" + data
    ),
    "flipped bytes": flipped,
    "cut": lambda data, seed: data[random.Random(seed).randrange(1, len(data) * 4 // 5) :],
}


@pytest.mark.slow
@settings(max_examples=60)
@given(place=st.integers(0, 1000), damage=st.sampled_from(sorted(DAMAGES)), seed=st.integers(0, 10_000))
@example(place=4, damage="cut", seed=5)  # behind its lookups, before the end of their compile
def test_lookups_behind_a_damaged_head_are_all_read(
    place: int, damage: str, seed: int, traces: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = traces[place % len(traces)]
    data = DAMAGES[damage](whole, seed)
    if damage != "cut":
        assert lookups_in(data.removeprefix(MARK)) == lookups_in(whole)
    path = tmp_path_factory.mktemp("damaged") / "dedicated_log_torch_trace.log"
    path.write_bytes(data)
    found, scope = read(path)
    assert found == lookups_in(data.removeprefix(MARK))
    # A cut between two records cannot be seen.
    assert len(scope.problems) or _RECORD.match(data)
    assert scope.runs["looked_up"].all()


@pytest.mark.parametrize("source", [*SOURCES, ("2.13.0", "recompiles")], ids="/".join)
def test_what_was_compiled_has_its_own_name_or_none(
    source: tuple[str, str], recording: Recording, tmp_path: Path
) -> None:
    """Wherever the log begins: the metrics at the end of a compile name it."""
    trace = min((recording(*source) / "trace").iterdir())
    data, cut = trace.read_bytes(), tmp_path / "dedicated_log_torch_trace.log"

    def told(path: Path) -> dict[tuple[str, str], set[tuple[str, str, int]]]:
        found: dict[tuple[str, str], set[tuple[str, str, int]]] = {}
        scope = cachescope.read(path)
        for row in scope.lookups.itertuples():
            place = (row.function, row.file, row.line)
            found.setdefault((row.cache_key, row.compile_id), set()).add(place)
        for row in scope.compiles.itertuples():
            found.setdefault(("", row.compile_id), set()).add((row.function, row.file, row.line))
        return found

    whole, named = told(trace), 0
    starts = [match.start() for match in _RECORD.finditer(data)]
    for at in starts[1 :: len(starts) // 6]:
        cut.write_bytes(data[at:])
        for lookup, places in told(cut).items():
            known = {place for place in places if isinstance(place[0], str)}
            assert known <= whole[lookup]
            named += len(known)
    # Where torch compiles a wrapper, the metrics name no more than that.
    assert named or source[1] == "training"


@pytest.mark.slow
@pytest.mark.parametrize("damage", sorted(DAMAGES))
def test_a_rank_with_a_damaged_head_is_not_lost(damage: str, recording: Recording, tmp_path: Path) -> None:
    first, second = sorted((recording("2.13.0", "killed_before_save") / "trace").iterdir())[:2]
    shutil.copy(first, tmp_path / "dedicated_log_torch_trace_rank_0_a.log")
    damaged = tmp_path / "dedicated_log_torch_trace_rank_1_b.log"
    damaged.write_bytes(DAMAGES[damage](second.read_bytes(), 7))
    scope = cachescope.read(tmp_path)
    assert sorted(scope.runs["rank"]) == [0, 1]
    assert str(damaged) in set(scope.problems["source"])
    assert not any("no lookup is recorded" in line.text for line in terminal_lines(answer_blocks(scope)))


def test_a_payload_that_is_longer_than_the_probe_hides_no_trace(recording: Recording, tmp_path: Path) -> None:
    trace = max((recording("2.13.0", "four_graphs") / "trace").iterdir(), key=lambda one: one.stat().st_size)
    data = trace.read_bytes()
    at = data.index(b"\n\t", data.index(b'{"artifact": {"name": "fx_graph_cache_miss"'))
    rest = data[at + 10 :]
    record = _RECORD.search(rest)
    assert record.start() > 1 << 14
    path = tmp_path / "rotated.log"
    path.write_bytes(rest)
    found, scope = read(path)
    assert found == lookups_in(rest)
    assert found.total() > 0
    assert scope.problems["kind"].tolist() == ["not_a_record"]


def test_a_text_log_is_no_trace_whatever_it_quotes(recording: Recording, tmp_path: Path) -> None:
    folder = recording("2.13.0", "four_graphs")
    text = min((folder / "text").iterdir()).read_bytes()
    record = max((folder / "trace").iterdir()).read_bytes().split(b"\n", 1)[0]
    assert not looks_like_trace_log(text + b"\n" + record)
    assert looks_like_trace_log(b"nothing of torch's\n\n" + record)
