"""Misses of a text log that can only be guard misses: rows in, their places out; made by hand."""

from dataclasses import replace
from typing import Any

import pytest

from cachescope.analysis.history.past_of_keys import settled_history
from cachescope.details import HashDetails
from cachescope.frames.recorded_rows import LookupRow
from tests.analysis.plain_rows import TEMPLATE, entry_row
from tests.made import component

STORE = HashDetails()
SYMBOLIC, PLAIN, ELSEWHERE, NUMBER = (
    STORE.add([component(field, text)])[0]
    for field, text in (
        ("example_inputs[0]", "TensorMetadata(shape=torch.Size([s7, 8]))"),
        ("example_inputs[0]", "TensorMetadata(shape=torch.Size([7, 8]))"),
        ("inductor_config[a]", "torch.Size([s7, 8])"),
        ("example_inputs[1]", "('s7',)"),
    )
)
Told = dict[str, Any]


def found(*told: Told, entries: tuple[Told, ...] = ()) -> list[int]:
    made: list[LookupRow] = [
        replace(TEMPLATE, **{"lookup": at, "run": at, "time": 100 * at, "time_taken_ns": 1, "cache_key": "k",
                             "detail_set": SYMBOLIC, **one})
        for at, one in enumerate(told)
    ]  # fmt: skip
    stored = [replace(entry_row(n, "fxgraph", "k", "r", "p", None), **one) for n, one in enumerate(entries)]
    return sorted(settled_history(made, stored, [], STORE).inferred)


@pytest.mark.parametrize(("told", "wanted"), [
    ([{}], []),
    ([{}, {}], [1]),
    ([{}, {}, {}], [1, 2]),
    ([{"outcome": "hit"}, {}], [1]),
    ([{}, {"detail_set": NUMBER}], [1]),
    # Of a graph without symbolic sizes, of no details, and of a size that is no input's.
    ([{}, {"detail_set": PLAIN}], []),
    ([{}, {"detail_set": None}], []),
    ([{}, {"detail_set": ELSEWHERE}], []),
    # What a trace says, what torch could not load, what hit, and what has no key.
    ([{}, {"status_detailed": "miss"}], []),
    ([{}, {"load_error": "EOFError"}], []),
    ([{}, {"outcome": "hit"}], []),
    ([{}, {"cache_key": None}], []),
    # It had not been stored, or not of this cache, or was still being compiled.
    ([{"save_error": "OSError"}, {}], []),
    ([{"cache": "aotautograd"}, {}], []),
    ([{"time_taken_ns": 200}, {}], []),
    # The graph below an AOTAutograd guard miss has the same guards, and the lookup above a graph's.
    ([{"cache": "aotautograd", "entry_path": "e"}, {"cache_key": "l"}, {"cache": "aotautograd"}, {"cache_key": "l", "aot_lookup": 2, "detail_set": None}], [2, 3]),
    ([{"cache_key": "a", "cache": "aotautograd", "detail_set": None}, {}, {"cache_key": "a", "cache": "aotautograd", "detail_set": None},
      {"aot_lookup": 2}], [2, 3]),
    ([{"cache_key": "a", "cache": "aotautograd", "detail_set": None}, {"outcome": "guard_miss", "aot_lookup": 0}], [0]),
    ([{"cache_key": "a", "cache": "aotautograd", "status_detailed": "miss"}, {"outcome": "guard_miss", "aot_lookup": 0}], []),
    ([{"cache_key": "a", "cache": "aotautograd", "outcome": "hit"}, {"outcome": "guard_miss", "aot_lookup": 0}], []),
])  # fmt: skip
def test_misses_that_can_only_be_of_guards(told: list[Told], wanted: list[int]) -> None:
    assert found(*told) == wanted


ONE, TWO = {"guards_expr": "s7 > 4"}, {"guards_expr": "s7 < 4"}


@pytest.mark.parametrize(("entries", "is_one"), [
    # A directory that was read decides: a guard miss adds an entry with other guards.
    ([ONE, TWO], True),
    ([ONE], False),
    ([ONE, ONE], False),
    ([ONE, {**TWO, "status": "damaged"}], False),
    ([ONE, {"status": "unreadable"}], True),
    ([{"status": "unreadable"}], False),
    ([{"status": "unreadable"}] * 2, True),
    # Entries of another key, or of another cache, are none of it.
    ([{**ONE, "cache_key": "l"}], True),
    ([{**ONE, "cache": "aotautograd"}], True),
    # A remote cache keeps the last one only.
    ([{**ONE, "path": "redis://host/0/pt2:fx-graph-v1::k:c1"}], True),
])  # fmt: skip
def test_the_entries_that_lie_there_decide(entries: list[Told], is_one: bool) -> None:
    assert found({}, {}, entries=tuple(entries)) == ([1] if is_one else [])
    # Of a key that nobody is known to have stored, entries prove nothing.
    assert found({}, entries=tuple(entries)) == []
