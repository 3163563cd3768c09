"""Sets of fields that separate keys of one graph, against comparing the keys pair by pair; made by hand, but for one recording."""

import re
from collections import Counter
from dataclasses import replace
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.analysis.what_if import sensitivity as searched
from cachescope.analysis.what_if.replay import Replay
from cachescope.analysis.what_if.sensitivity import field_sets
from cachescope.details import HashDetails
from tests.analysis.plain_rows import history_of, run_row
from tests.analysis.what_if.test_replay import hash_of, row
from tests.conftest import Archive

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
    return Replay(history_of(rows, store, runs=[run_row(0, cache_dir="d")]))


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


@pytest.mark.slow
@given(keys, st.integers(1, 3))
def test_every_pair_of_keys_is_compared(found: list[Key], largest: int) -> None:
    assert field_sets(replay_of(found), largest) == slow(found, largest)


def keys_of(*values: str, missed: str = "") -> list[Key]:
    """Keys of one graph; a letter of `values` is the value of a field, one of `missed` says m or h."""
    return [
        (0, tuple(map(int, each)), (missed or "m" * len(values))[at] == "m") for at, each in enumerate(values)
    ]


def sets_of(found: list[Key], largest: int = 2) -> list[str]:
    return ["".join(sorted(fields)) for fields in field_sets(replay_of(found), largest)]


def test_with_many_keys_the_first_and_a_few_before_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searched, "_COMPARISONS", 1)
    # The last differs from the second in a and b; between these stand three, or four, that are far off.
    far = ["2222", "1212", "2121", "1221"]
    near, too_far = (["0000", "1111", *far[:n], "0011"] for n in (3, 4))
    assert "ab" in sets_of(keys_of(*near, missed="hm" + "h" * (len(near) - 2)))
    assert "ab" not in sets_of(keys_of(*too_far, missed="hm" + "h" * (len(too_far) - 2)))
    # With the first, each is.
    assert "cd" in sets_of(keys_of(*too_far, missed="m" + "h" * 6))


def test_so_many_sets_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    found = keys_of("0000", "0011", "0022", "1100", "1111")
    every = sets_of(found)
    assert len(every) > 1
    monkeypatch.setattr(searched, "_SETS", 1)
    assert sets_of(found) == every[:1]


def test_a_graph_of_another_direction_is_another() -> None:
    """The first and the last are forward: of what separates them from the other nothing is counted."""
    store = HashDetails()
    rows = []
    for at, (values, direction) in enumerate((("000", "forward"), ("011", "backward"), ("110", "forward"))):
        lines = [f"[{hash_of('g')}] gm: g"]
        lines += [f"[{hash_of(f'{f}{v}')}] {f}: {v}" for f, v in zip("abc", values, strict=True)]
        code, _ = store.add(lines)
        one = row(at, 0, 10 + at, "fxgraph", f"f{at}", False, None, 1, code)
        rows.append(replace(one, direction=direction))
    replay = Replay(history_of(rows, store, runs=[run_row(0, cache_dir="d")]))
    assert field_sets(replay, 2) == [frozenset("ab")]


@pytest.mark.slow
def test_inputs_are_named_by_number(archive: Archive) -> None:
    sets = cachescope.read(archive("models/small_generation")).sensitivity()["fields"]
    numbers = [[int(n) for n in re.findall(r"example_inputs\[(\d+)\]", " ".join(one))] for one in sets]
    assert max(max(one, default=0) for one in numbers) >= 10
    assert all(one == sorted(one) for one in numbers)
