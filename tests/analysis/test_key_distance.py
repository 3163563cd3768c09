"""Distances between keys, and the nearest of earlier ones: against comparing each pair field by field; and how alike two printed graphs are."""

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cachescope.analysis.graphs import graph_diff, graph_words, likeness
from cachescope.analysis.key_distance import EarlierKeys, KeyDistances, shows_symbol
from cachescope.details import HashDetails
from tests.made import component

FIELDS = ("gm", "example_inputs[0]", "inputs_to_check[0]", "x", "y", "z", "w")
# Fields in any order, some of them missing or there twice; most sets differ from another one in little.
values = st.tuples(*[st.sampled_from("1112")] * len(FIELDS))
usual = values.map(lambda found: list(zip(FIELDS, found, strict=True)))
odd = st.lists(st.tuples(st.sampled_from(FIELDS), st.sampled_from("12")), min_size=1, max_size=9)
sets = st.lists(usual | odd, min_size=1, max_size=8)


def stored(found: list[list[tuple[str, str]]]) -> tuple[HashDetails, list[int]]:
    store = HashDetails()
    codes = []
    for fields in found:
        code, _ = store.add(component(field, value) for field, value in fields)
        assert code is not None
        codes.append(code)
    return store, codes


def differing(one: list[tuple[str, str]], other: list[tuple[str, str]]) -> set[str]:
    """Of a field that is there twice the last counts."""
    mine, others = dict(one), dict(other)
    return {field for field in mine.keys() | others.keys() if mine.get(field) != others.get(field)}


# The last is printed like the one before but for the graph, in which that differs from the first.
@example([list(zip(FIELDS, "1111111", strict=True)), [("gm", "2")], [("gm", "1")]])
@given(sets)
def test_in_how_many_fields_two_keys_differ(found: list[list[tuple[str, str]]]) -> None:
    store, codes = stored(found)
    keys = KeyDistances(store)
    for one, mine in zip(codes, found, strict=True):
        for other, others in zip(codes, found, strict=True):
            wanted = differing(mine, others)
            assert keys.fields(one, other) == len(wanted)
            contents = keys.content(one), keys.content(other)
            assert {store.fields[field] for field in keys.changed(*contents)} == wanted - {"gm"}
            assert (contents[0] == contents[1]) == (not wanted - {"gm"})
            assert (keys.graph(one) == keys.graph(other)) == ("gm" not in wanted)
            inputs = {field for field in wanted if "input" in field}
            assert keys.only_inputs(*contents) == (bool(inputs) and inputs == wanted - {"gm"})
            change = keys.change(one, other)
            assert set(change.names) == wanted
            assert change.are_inputs == (bool(wanted) and inputs == wanted)


@given(sets, sets)
def test_a_store_may_grow(found: list[list[tuple[str, str]]], more: list[list[tuple[str, str]]]) -> None:
    store, codes = stored(found)
    keys = KeyDistances(store)
    assert [keys.fields(codes[0], one) for one in codes] == [len(differing(found[0], one)) for one in found]
    for fields in more:
        code, _ = store.add(component(f"new {field}" if field == "x" else field, v) for field, v in fields)
        if code is not None:
            assert keys.fields(codes[0], code) == len(store.changes(codes[0], code))


def key(graph: str, first: str, second: str) -> list[tuple[str, str]]:
    return [("gm", graph), ("x", first), ("y", second)]


# Of two that differ in as many fields the later one, though a content of the other was seen again since, with another graph.
@example([key("1", "2", "2"), key("1", "3", "3"), key("2", "2", "2"), key("1", "1", "1")])
@given(sets)
def test_the_nearest_earlier_key_is_what_a_full_search_finds(found: list[list[tuple[str, str]]]) -> None:
    store, codes = stored(found)
    earlier = EarlierKeys(KeyDistances(store), [(10 * at, code) for at, code in enumerate(codes)])
    for at in range(len(codes)):
        distances = [(len(differing(found[one], found[at])), -one) for one in range(at)]
        fewest, latest = min(distances, default=(0, None))
        wanted = None if latest is None else -10 * latest
        assert earlier.nearest(10 * at, codes[at]) == (wanted, fewest)


@pytest.mark.parametrize(("text", "is_symbolic"), [
    ("torch.Size([s77, 8])", True), ("torch.Size([8, s77])", True), ("torch.Size([8, 2*u0])", True), ("('s77',)", True),
    ("('u3', 1)", True), ("torch.Size([8, 8])", False), ("[s77, 8]", False), ("torch.Size([8]), [s1]", False),
    ("('x77',)", False), ("torch.Size([bs1])", False), ("", False),
])  # fmt: skip
def test_a_symbolic_size_in_a_text(text: str, is_symbolic: bool) -> None:
    assert shows_symbol(text) is is_symbolic


def test_inputs_of_symbolic_size() -> None:
    symbolic, fixed = (f"TensorMetadata(shape=torch.Size([{size}, 8]))" for size in ("s77", "7"))
    store, codes = stored([
        [("gm", symbolic), ("example_inputs[0]", fixed), ("example_inputs[1]", symbolic)],
        [("gm", symbolic), ("example_inputs[0]", fixed), ("example_inputs[1]", fixed)],
        [("example_inputs[0]", symbolic)],
        [("x", symbolic)],
    ])  # fmt: skip
    keys = KeyDistances(store)
    assert [keys.has_symbols(code) for code in codes] == [True, False, True, False]


@pytest.mark.parametrize(("code", "words"), [
    ("", {}),
    # What every graph contains, and placeholders by their number, are no words of it.
    ("def forward(self, p_0):\n    return torch.ops.aten.mm.default(p_0, p_0)", {"mm": 1}),
    ("arg1_1 primals_2 tangents_3 p_0 s77 x_1_2 L_self_weight_ None", {}),
    ("args1 primal_2 y_0 L_self", {"args1": 1, "primal_2": 1, "y_0": 1, "L_self": 1}),
    ("a = b + b * 2.5", {"a": 1, "b": 2, "+": 1, "*": 1, "2": 1, "5": 1}),
    ("mul\n# To see more debug info, call sin", {"mul": 1}),
    ("mul  # To see more", {"mul": 1, "To": 1, "see": 1, "more": 1}),
])  # fmt: skip
def test_the_words_of_a_graph(code: str, words: dict[str, int]) -> None:
    assert graph_words(code) == Counter(words)


@pytest.mark.parametrize(
    ("a", "b", "share"),
    [("", "", 1.0), ("u", "", 0.0), ("u v", "u w", 0.5), ("u u v v", "u v", 2 * 2 / 6), ("u v", "u v", 1.0)],
)
def test_how_alike_two_graphs_are(a: str, b: str, share: float) -> None:
    assert likeness(graph_words(a), graph_words(b)) == pytest.approx(share)
    assert likeness(graph_words(b), graph_words(a)) == pytest.approx(share)


LINES = [f"line {n}" for n in range(9)]


@pytest.mark.parametrize(
    ("context", "shown"), [(None, [" line 2", " line 3"]), (0, []), (1, [" line 3"]), (9, [f" {line}" for line in LINES[:4]])]
)  # fmt: skip
def test_a_difference_with_the_lines_around_it(context: int | None, shown: list[str]) -> None:
    before, after = "\n".join(LINES), "\n".join([*LINES[:4], "other"])
    diff = graph_diff(before, after) if context is None else graph_diff(before, after, context)
    lines = diff.split("\n")
    assert lines[:2] == ["--- before", "+++ after"]
    assert lines[3:] == [*shown, *(f"-{line}" for line in LINES[4:]), "+other"]


@pytest.mark.parametrize(
    ("before", "after"),
    [("a\nb", "a\nb"), ("a  \nb", "a\nb\n\n"), ("\n\na", "a"), ("a\n# To see more debug info, x", "a\n# To see more debug info, y"), ("", "")],
)  # fmt: skip
def test_what_makes_no_difference(before: str, after: str) -> None:
    assert graph_diff(before, after) == ""
