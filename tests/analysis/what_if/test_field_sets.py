"""Sets of fields that separate keys of one graph, against comparing the keys pair by pair; made by hand."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.analysis.history.history import History
from cachescope.analysis.history.rows import RunRow
from cachescope.analysis.what_if import field_sets as searched
from cachescope.analysis.what_if.field_sets import field_sets
from cachescope.analysis.what_if.replay import Replay
from cachescope.details import HashDetails
from tests.analysis.what_if.test_replay import hash_of, row

FIELDS = ("a", "b", "c", "d")
# The graph, the values of the fields, and whether the key was missed; distinct, as keys are.
keys = st.lists(
    st.tuples(st.integers(0, 1), st.tuples(*[st.integers(0, 2)] * len(FIELDS)), st.booleans()),
    min_size=2,
    max_size=14,
    unique_by=lambda one: one[:2],
)
Key = tuple[int, tuple[int, ...], bool]


def replay_of(found: list[Key]) -> Replay:
    store = HashDetails()
    rows = []
    for at, (graph, values, is_missed) in enumerate(found):
        lines = [f"[{hash_of(f'gm{graph}')}] gm: g"]
        lines += [f"[{hash_of(f'{f}{v}')}] {f}: {v}" for f, v in zip(FIELDS, values, strict=True)]
        code, _ = store.add(lines)
        took = 1 if is_missed else None
        rows.append(row(at, 0, 10 + at, "fxgraph", f"f{at}", not is_missed, None, took, code))
    return Replay(History.of_rows(rows, runs=[RunRow(0, None, None, "d")]), store)


def slow(found: list[Key], largest: int) -> list[frozenset[str]]:
    count: Counter[frozenset[str]] = Counter()
    for _, group in groupby(sorted(found, key=lambda one: one[0]), key=lambda one: one[0]):
        graph = list(group)
        for at, (_, values, is_missed) in enumerate(graph):
            nearest: frozenset[str] | None = None
            # The first of its graph, then those before it, the latest first.
            for _, others, other_missed in [graph[0], *graph[1:at][::-1]] if at else []:
                names = frozenset(
                    f for f, one, other in zip(FIELDS, values, others, strict=True) if one != other
                )
                is_nearer = nearest is None or len(names) < len(nearest)
                if not (is_missed or other_missed) or not (len(names) <= largest or is_nearer):
                    continue
                count[names] += 2 <= len(names) <= largest
                nearest = names if is_nearer else nearest
            if nearest is not None and len(nearest) > max(largest, 1):
                count[nearest] += 1
    ordered = sorted(count.items(), key=lambda item: (-item[1], sorted(item[0])))
    return [names for names, n in ordered if n][:32]


@given(keys, st.integers(1, 3), st.sampled_from([1, 1 << 25]))
def test_every_pair_of_keys_is_compared(found: list[Key], largest: int, at_once: int) -> None:
    replay = replay_of(found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searched, "_VALUES", at_once)
        assert field_sets(replay, largest) == (slow(found, largest) if len(replay.table.varying) > 1 else [])
