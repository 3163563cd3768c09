"""What has changed since another scope compiled the same graph: two small scopes in, made by hand."""

from collections.abc import Sequence
from typing import Any

import pytest

from cachescope.frames.directory_rows import EntryRow
from cachescope.scope import Scope
from tests.made import CODE, Details, Made, aot, entry, fx, run, scope_of

G: Details = {"gm": CODE, "x": "1", "y": "1", "example_inputs[0]": "Tensor(4)"}
H: Details = {**G, "gm": "def forward(self, z):\n    return (torch.sort(torch.erf(z)),)"}
X2, BOTH = {"x": "2"}, {"x": "2", "y": "2"}
BACKWARD = {"fx_kwargs[is_backward]": "True", "fx_kwargs[is_inference]": "False"}


def key(name: str, changed: Details | None = None, of: Details = G, **told: Any) -> Made:
    return fx(f"f{name}", details={**of, **(changed or {})}, took=1.0, **told)


def scope(*lookups: Made, entries: Sequence[tuple[EntryRow, Details | None]] = ()) -> Scope:
    numbered = [(at, made) for at, made in enumerate(lookups)]
    for at, made in numbered:
        made.at = float(at)
        made.told["compile_id"] = f"{at}/0"
    return scope_of(run(*lookups), entries=entries)


Found = list[tuple[tuple[str, ...], tuple[int, ...]]]
CASES: dict[str, tuple[list[Made], list[Made], Found]] = {
    "the same key": ([key("1")], [key("1")], []),
    "another key of the same graph": ([key("1")], [key("2", X2)], [(("x",), (0,))]),
    "another graph": ([key("1")], [key("2", of=H)], []),
    "of another direction": ([key("1")], [key("2", {**X2, **BACKWARD})], []),
    "of another cache": ([aot("f1", details=G)], [key("2", X2)], []),
    # The key was there in any case, whatever it is compared with.
    "one of two keys": ([key("1"), key("2", X2)], [key("2", X2)], []),
    "the nearest": ([key("1"), key("3", {"y": "2"})], [key("2", BOTH)], [(("x",), (0,))]),
    "the nearest, before a farther one": ([key("3", {"y": "2"}), key("1")], [key("2", BOTH)], [(("x",), (0,))]),
    "the first of equals": ([key("1", {"x": "3"}), key("3", {"y": "3"})], [key("2")], [(("x",), (0,))]),
    "equal fields": ([key("1")], [key("2")], []),
    "equal fields, and a farther key": ([key("1"), key("3", X2)], [key("2")], [(("x",), (0,))]),
    # Calls on other inputs: one that is made here as well has not changed into the other.
    "other inputs": ([key("1")], [key("2", {"example_inputs[0]": "Tensor(5)"})], [(("example_inputs[0]",), (0,))]),
    "other inputs, and those of before": (
        [key("1")], [key("1", outcome="hit"), key("2", {"example_inputs[0]": "Tensor(5)"})], []),
    "those of before, and another field": ([key("1")], [key("1", outcome="hit"), key("2", X2)], []),
    "without details": ([key("1")], [fx("f2", details=None)], []),
    "without details before": ([fx("f1", details=None)], [key("2", X2)], []),
    "a hit": ([key("1")], [key("2", X2, outcome="hit")], []),
    "two graphs by one field": (
        [key("1"), key("2", of=H)], [key("3", X2), key("4", X2, of=H)], [(("x",), (0, 1))]),
    "two graphs by two fields": (
        [key("1"), key("2", of=H)], [key("3", X2), key("4", {"y": "2"}, of=H)], [(("x",), (0,)), (("y",), (1,))]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_changed_since(case: str) -> None:
    before, after, wanted = CASES[case]
    found = scope(*after).changed_since(scope(*before))
    assert [(one.fields, one.lookups) for one in found] == wanted
    for one in found:
        assert tuple(change.field for change in one.changes) == one.fields
        assert one.cause == 0


def test_the_values_are_those_of_before_and_of_now() -> None:
    (found,) = scope(key("2", X2)).changed_since(scope(key("1")))
    assert [(change.before, change.after) for change in found.changes] == [("1", "2")]


def test_an_entry_of_before_is_as_good_as_a_lookup() -> None:
    before = scope_of(entries=[entry("fxgraph", "f1", G), entry("fxgraph", "f3", {**G, "y": "2"})])
    assert [one.fields for one in scope(key("2", BOTH)).changed_since(before)] == [("x",)]
    assert scope(key("1")).changed_since(before) == []


@pytest.mark.parametrize(("above", "wanted"), [
    # What follows from a first lookup is told with that, and of one without details it is told here.
    (aot("a2", details={**G, **X2}), ["a1 x"]),
    (aot("a2", details=None), ["f1 x"]),
])  # fmt: skip
def test_what_follows_from_another_first_lookup_is_not_told_again(above: Made, wanted: list[str]) -> None:
    before = scope(aot("a1", details=G), key("1"))
    above.at, below = 0, fx("f2", details={**G, **X2}, at=1, took=1.0)
    after = scope_of(run(above, below))
    keys = after.lookups.set_index("lookup")["cache_key"]
    found = [f"{keys[one.lookups[0]][0]}1 {' '.join(one.fields)}" for one in after.changed_since(before)]
    assert found == wanted
