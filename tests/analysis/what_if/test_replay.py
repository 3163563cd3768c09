"""The quick replay against one that goes through the lookups one by one, and guards and frames by hand."""

import base64
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import combinations
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.analysis.directory.equal_code import GeneratedCode
from cachescope.analysis.history.directory import HIT, MISS, UNKNOWN
from cachescope.analysis.what_if.cells import OTHER
from cachescope.analysis.what_if.replay import Replay, Replayed
from cachescope.analysis.what_if.results import difference_rows, warning_rows, with_more_hits
from cachescope.details import HashDetails
from cachescope.frames.answer_rows import RateRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.keys.key_schema import Removed
from tests.analysis.plain_rows import history_of, lookup_row, past_miss, run_row
from tests.made import SECOND_NS, Stored, aot, entry, fx, run, scope_of

AOT_FIELDS = ("gm", "config", "tag", "aot_only")
FX_FIELDS = ("gm", "config", "tag")
SUBSETS = [frozenset(s) for n in range(len(AOT_FIELDS) + 1) for s in combinations(AOT_FIELDS, n)]
Values = tuple[int, ...]


def hash_of(text: str) -> str:
    return base64.b32encode(sha256(text.encode()).digest()).decode().lower()[:51]


@dataclass(frozen=True)
class Compile:
    """One compile of one graph in one process: what it looks up, and how long it takes after a miss."""

    values: Values
    directory: int
    wait: int
    taken: int
    deletes: bool
    has_aot: bool
    hidden: int
    """What the key holds besides, and no recorded field shows."""


compiles = st.builds(
    Compile,
    values=st.tuples(*[st.integers(0, 1)] * len(AOT_FIELDS)),
    directory=st.integers(0, 1),
    wait=st.integers(1, 4),
    taken=st.integers(1, 6),
    deletes=st.sampled_from([False] * 5 + [True]),
    has_aot=st.booleans(),
    hidden=st.sampled_from([0] * 3 + [1]),
)
histories = st.lists(compiles, min_size=1, max_size=14)
of_key = st.tuples(*[st.integers(0, 1)] * len(AOT_FIELDS))
stored_before = st.lists(st.tuples(of_key, st.integers(0, 1)), max_size=2)


class Recording:
    """What torch would have recorded, made by a cache that is simulated with the true keys."""

    def __init__(self, history: list[Compile], before: list[tuple[Values, int]]) -> None:
        self.store = HashDetails()
        self.rows: list[LookupRow] = []
        self.runs = [run_row(n, cache_dir=f"dir{c.directory}") for n, c in enumerate(history)]
        there: dict[tuple[str, Values, int], int] = {}
        for values, directory in before:
            there["aotautograd", (*values, 0), directory] = there["fxgraph", (*values[:-1], 0), directory] = 0
        time = 10
        for process, compile_ in enumerate(history):
            time += compile_.wait
            if compile_.deletes:
                there = {name: since for name, since in there.items() if since > time}
            self._look_up(process, compile_, time, there)
            time += 1

    def _look_up(
        self, process: int, c: Compile, time: int, there: dict[tuple[str, Values, int], int]
    ) -> None:
        aot = ("aotautograd", (*c.values, c.hidden), c.directory)
        fx = ("fxgraph", (*c.values[:-1], c.hidden), c.directory)
        fx_hits = there.get(fx, 10**9) < time + 1
        above = None
        if c.has_aot:
            aot_hits = fx_hits and there.get(aot, 10**9) < time
            above = len(self.rows)
            self._add(process, aot, AOT_FIELDS, time, aot_hits, None, None)
            if not aot_hits:
                # torch overwrites an entry; it is there all along if it was.
                there[aot] = min(there.get(aot, 10**9), time + 1 + c.taken) if fx_hits else time + 1 + c.taken
        self._add(process, fx, FX_FIELDS, time + 1, fx_hits, above, c.taken)
        if not fx_hits:
            there[fx] = min(there.get(fx, 10**9), time + 1 + c.taken)

    def _add(
        self, process: int, name: tuple[str, Values, int], fields: tuple[str, ...], time: int, hits: bool,
        above: int | None, taken: int | None,
    ) -> None:  # fmt: skip
        *values, _ = name[1]
        lines = [f"[{hash_of(f'{f}{v}')}] {f}: {v}" for f, v in zip(fields, values, strict=True)]
        detail_set, _ = self.store.add(lines)
        key = name[0][0] + hash_of(str(name[1]))
        self.rows.append(
            row(len(self.rows), process, time, name[0], key, hits, above, None if hits else taken, detail_set)
        )


def row(
    lookup: int, run: int, time: int, cache: str, key: str, hits: bool, above: int | None, taken: int | None,
    detail_set: int | None,
) -> LookupRow:  # fmt: skip
    values = {
        "lookup": lookup, "run": run, "order": 0, "time": time, "cache": cache, "cache_key": key,
        "outcome": "hit" if hits else "full_miss", "compile_id": "0/0", "aot_lookup": above,
        "direction": None if cache == "aotautograd" else "inference", "time_taken_ns": taken, "detail_set": detail_set,
        "end_time": None,
    }  # fmt: skip
    return lookup_row(**values)


@dataclass
class Entry:
    row: LookupRow | None
    cell: tuple[str, str | None, str | None]
    name: tuple[str | None, ...]
    since: float
    stored_after: bool


def slow(recording: Recording, removed: frozenset[str]) -> list[int]:
    """Look at every lookup in time order, with every entry there is at that moment."""
    details, rows = recording.store, recording.rows
    directory = {run.run: run.cache_dir for run in recording.runs}

    keys_of = defaultdict(set)
    for row in rows:
        keys_of[row.detail_set, row.cache].add(row.cache_key)

    def name_of(row: LookupRow) -> tuple[str | None, ...]:
        # Keys that differ where no field does stay apart, whatever is removed.
        alone = row.cache_key if len(keys_of[row.detail_set, row.cache]) > 1 else None
        counted = (d for d in details.details(row.detail_set) if d.field not in removed)
        fields = (f"{d.field}{d.detail_hash}" for d in counted)
        return row.cache, alone, *fields

    def end_of(row: LookupRow) -> int:
        below = (r for r in rows if r.aot_lookup == row.lookup)
        inner = next(below, None) if row.cache == "aotautograd" else row
        if inner is None or inner.outcome == "hit":
            return row.time + 2_000_000_000 if inner is None else -1
        return inner.time + inner.time_taken_ns

    entries: list[Entry] = []
    seen = set()
    for row in rows:
        cell = (row.cache, row.cache_key, directory[row.run])
        if row.outcome == "hit" and cell not in seen:
            entries.append(Entry(None, cell, name_of(row), -1, True))
        seen.add(cell)
    after: dict[int, int] = {}
    for row in rows:
        cell = (row.cache, row.cache_key, directory[row.run])
        mine = [e for e in entries if e.cell == cell and e.since < row.time]
        if row.outcome == "hit":
            after[row.lookup] = HIT
            if not mine:
                pending = [e for e in entries if e.cell == cell and e.row is not None]
                if pending:
                    min(pending, key=lambda e: e.since).since = row.time - 1
                else:
                    entries.append(Entry(None, cell, name_of(row), row.time - 1, True))
            continue
        entries = [e for e in entries if e not in mine]
        above = rows[row.aot_lookup] if row.aot_lookup is not None else None
        is_nested = above is not None and above.outcome != "hit" and after[above.lookup] == HIT
        there = (e for e in entries if e.stored_after and e.cell[2] == cell[2] and e.since < row.time)
        fits = any(e.name == name_of(row) for e in there)
        after[row.lookup] = HIT if is_nested or fits else MISS
        end = end_of(row)
        if end < 0:
            # The graph was there: nothing was compiled, and the log tells no end.
            end = row.time + 2_000_000_000
        entries.append(Entry(row, cell, name_of(row), end, after[row.lookup] == MISS))
    return [after[row.lookup] for row in rows]


@pytest.mark.slow
@given(histories, stored_before)
def test_it_equals_going_lookup_by_lookup(history: list[Compile], before: list[tuple[Values, int]]) -> None:
    recording = Recording(history, before)
    replay = Replay(history_of(recording.rows, recording.store, runs=recording.runs))
    for removed in SUBSETS:
        assert Replayed(replay, Removed(removed)).after == slow(recording, removed), removed


# Of each lookup its config, the guards that torch showed, and a letter: m for a full miss, g for a guard miss, h for a hit.
Guarded = tuple[int, str, str | None]
OUTCOMES = {"m": "full_miss", "g": "guard_miss", "h": "hit"}


@pytest.mark.parametrize(("lookups", "wanted"), [
    # Guards that the lookup compiled itself hold for it; others may hold or not.
    ([(1, "m", None), (1, "h", "a > 10"), (2, "m", None), (2, "h", "a > 10")], [MISS, HIT, HIT, HIT]),
    ([(1, "m", None), (1, "h", "a > 10"), (2, "m", None), (2, "h", "a < 5")], [MISS, HIT, UNKNOWN, HIT]),
    # An entry without guards fits every lookup.
    ([(1, "m", None), (1, "h", None), (2, "m", None), (2, "h", "a < 5")], [MISS, HIT, HIT, HIT]),
    # Guards that nothing tells leave it unknown.
    ([(1, "m", None), (2, "m", None)], [MISS, UNKNOWN]),
    # The entries of its own key did not fit, and are not tried again.
    ([(1, "m", None), (1, "g", "a > 10"), (1, "h", "a < 5")], [MISS, MISS, HIT]),
    # What may have been stored is no certain hit: the second may have hit, and then stored nothing for the third.
    ([(1, "m", None), (2, "m", None), (2, "h", "a < 5"), (3, "m", None), (3, "h", "a < 5")],
     [MISS, UNKNOWN, HIT, UNKNOWN, HIT]),
])  # fmt: skip
def test_guards(lookups: list[Guarded], wanted: list[int]) -> None:
    """Lookups of one process each, 100 ns apart; compiles take 10."""
    store = HashDetails()
    rows = []
    symbolic = f"[{hash_of('x')}] example_inputs[0]: TensorMetadata(shape=torch.Size([s77, 8]))"
    for at, (config, letter, guards) in enumerate(lookups):
        code, _ = store.add([symbolic, f"[{hash_of(str(config))}] config: {config}"])
        taken = None if letter == "h" else 10
        made = row(at, at, 100 * (at + 1), "fxgraph", f"f{config}", letter == "h", None, taken, code)
        told = OUTCOMES[letter]
        rows.append(replace(made, outcome=told, status_detailed=told, guards_expr=guards))
    replay = Replay(history_of(rows, store, runs=[run_row(at, cache_dir="d") for at in range(len(rows))]))
    assert Replayed(replay, Removed(frozenset({"config"}))).after == wanted
    assert Replayed(replay, Removed()).after == [HIT if letter == "h" else MISS for _, letter, _ in lookups]


G = {"gm": "g", "x": "1"}
HERE = {"cache_dir": "/cache"}
NOTHING = RateRow(4, 1, 3, 0, 0, 0.25, None, None, None)


@pytest.mark.parametrize(("before", "more", "won", "wanted"), [
    ({}, 0, 0, (1, 3, 0.25, None, None, None)),
    ({}, 1, 0, (2, 2, 0.5, None, None, None)),
    # Won where nothing had been saved; what was not known before is not known after.
    ({}, 1, 7, (2, 2, 0.5, 7, None, None)),
    ({"time_lost_ns": 10, "time_hit_rate": 0.0}, 1, 7, (2, 2, 0.5, 7, 3, 0.7)),
    ({"time_saved_ns": 10, "time_lost_ns": 10, "time_hit_rate": 0.5}, 1, 5, (2, 2, 0.5, 15, 5, 0.75)),
    ({"time_saved_ns": 10, "time_hit_rate": 1.0}, 0, 0, (1, 3, 0.25, 10, None, 1.0)),
    # Of lookups whose outcome is known.
    ({"unknown": 2}, 1, 0, (2, 2, 1.0, None, None, None)),
    ({"unknown": 4}, 0, 0, (1, 3, None, None, None, None)),
])  # fmt: skip
def test_rates_of_more(before: dict[str, Any], more: int, won: int, wanted: tuple[float | None, ...]) -> None:
    then = with_more_hits(replace(NOTHING, **before), more, won)
    found = (then.hits, then.misses, then.hit_rate, then.time_saved_ns, then.time_lost_ns, then.time_hit_rate)
    assert found == wanted
    assert (then.lookups, then.bypasses, then.unknown) == (4, 0, before.get("unknown", 0))


def table(rows: Iterable[object], *names: str) -> list[tuple[Any, ...]]:
    return list(map(attrgetter(*names), rows))


def test_compile_times_are_those_of_fx_misses() -> None:
    told = [("f1", "full_miss", 0.0), ("f2", "hit", 9.0), ("f3", "full_miss", None), ("f4", "full_miss", 3.0)]
    each = enumerate(told)
    made = [fx(key, how, G, at=n + 1, took=took, compile_id=f"{n}/0") for n, (key, how, took) in each]
    bypass = fx(None, "bypass", at=8, took=2.0, compile_id="4/0")
    scope = scope_of(run(aot("a1", details=G, at=0, took=9.0), *made, bypass))
    replay = scope.replay
    assert replay.taken == [None, 0, None, None, 3 * SECOND_NS, 2 * SECOND_NS]
    assert [replay.total(some) for some in ([0, 2], [1], [1, 3, 4], [])] == [None, 0, 3 * SECOND_NS, None]
    replayed = Replayed(replay, Removed())
    replayed.after = [HIT, HIT, HIT, HIT, UNKNOWN, OTHER]
    assert (replayed.turned(), replayed.undecided()) == ([0, 1, 3], [4])


def test_differences_in_the_order_of_lookups() -> None:
    """Lookups are numbered by process: what the second process saw came first."""
    scope = scope_of(
        run(fx("f1", details=G, at=0, took=1.0), fx("f1", details=G, at=60, took=1.0, compile_id="1/0"), **HERE),
        run(fx("f2", details=G, at=5, took=None, compile_error="E: x"), fx("f2", "hit", G, at=9, compile_id="1/0"), **HERE),
    )  # fmt: skip
    found = difference_rows(scope.replay, {1: "it was damaged"})
    assert table(found, "lookup", "run", "outcome", "expected", "reason") == [
        (1, 0, "full_miss", "hit", "it was damaged"),
        (3, 1, "hit", "full_miss", "nothing that was stored explains it: the entry came from elsewhere"),
    ]


def warned(
    *entries: Stored,
    past: tuple[tuple[int, int, bool | None], ...] = (),
    without: str = "x",
    sources: dict[int, str] | None = None,
) -> list[tuple[str, int, int]]:
    """`past`: an entry, another one before it, and whether their binaries are the same."""
    scope = scope_of(run(fx("fz", details={"gm": "0", "x": "0"}, at=0)), entries=entries)
    replayed = Replayed(scope.replay, Removed(frozenset({without})))
    code = GeneratedCode(lambda row: (sources or {}).get(row.entry))
    misses = [past_miss(one, other, same_binaries=same) for one, other, same in past]
    return table(warning_rows(replayed, code, misses), "what", "entry", "other_entry")


def stored(key: str, code: str | None, x: str = "1", **told: Any) -> Stored:
    cache = told.pop("cache", "fxgraph")
    return entry(cache, key, {"gm": "g", "x": x}, at=1, code_key=code, **told)


@pytest.mark.parametrize(("entries", "wanted"), [
    ([stored("f1", "c1"), stored("f2", "c2", "2")], [{0, 1}]),
    ([stored("f1", "c1"), stored("f2", "c1", "2")], []),
    ([stored("f1", "c1"), stored("f2", None, "2")], []),
    ([stored("f1", "c1", cache="aotautograd"), stored("f2", "c2", "2", cache="aotautograd")], []),
    ([stored("f1", "c1"), stored("f2", "c2", "2", status="damaged")], []),
    # Under one key each is for its own guards; two keys that share any code are no doubt.
    ([stored("f1", "c1"), stored("f1", "c2", name="b")], []),
    ([stored("f1", "c1"), stored("f1", "c2", name="b"), stored("f2", "c2", "2")], []),
    ([stored("f1", "c1"), stored("f1", "c2", name="b"), stored("f2", "c3", "2")], [{0, 2}]),
    # Of many keys of two codes one pair, of three codes each.
    ([stored(f"f{n}", f"c{n % 2}", str(n)) for n in range(6)], [{0, 1}]),
    ([stored(f"f{n}", f"c{n}", str(n)) for n in range(3)], [{0, 1}, {0, 2}, {1, 2}]),
], ids=range(10))  # fmt: skip
def test_keys_of_other_code(entries: list[Stored], wanted: list[set[int]]) -> None:
    found = warned(*entries)
    assert sorted((sorted(row[1:]) for row in found), key=str) == [sorted(one) for one in wanted]
    assert {what for what, _, _ in found} <= {"generated code"}
    assert warned(*entries, without="y") == []


def test_code_that_is_the_same_but_for_the_process() -> None:
    entries = [stored("f1", "c1"), stored("f2", "c2", "2")]
    assert warned(*entries, sources={0: "x\n# of 1", 1: "x\n# of 2"}) == []
    assert len(warned(*entries, sources={0: "x", 1: "y"})) == 1


@pytest.mark.parametrize(("past", "wanted"), [
    (((1, 0, False),), [("compiled kernels", 0, 1)]),
    (((1, 0, True),), []),
    (((1, 0, None),), []),
    # What is no sound entry, or has another key after all.
    (((2, 0, False),), []),
    (((3, 0, False), (0, 3, False)), []),
    (((1, 0, False), (1, 0, None)), [("compiled kernels", 0, 1)]),
])  # fmt: skip
def test_keys_of_other_kernels(
    past: tuple[tuple[int, int, bool | None], ...], wanted: list[tuple[str, int, int]]
) -> None:
    entries = [
        stored("f1", "c1"),
        stored("f2", "c1", "2"),
        stored("f3", "c1", "3", status="damaged"),
        entry("fxgraph", "f4", {"gm": "h", "x": "1"}, at=1, code_key="c1"),
    ]
    assert warned(*entries, past=past) == wanted
