"""How the code of a graph changed: two codes in, names alone, numbers alone, or other code out."""

from __future__ import annotations

import pytest

from cachescope.analysis.differences import field_change
from cachescope.analysis.verdicts.change_advice import graph_advice

NAMES, NUMBERS, OTHER, EQUAL = (
    "Only names in the code",
    "A number in the code",
    "The code of the graph changed",
    "The printed code is equal",
)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("a = b + 1", "a = b + 2", NUMBERS),
        ("a = b * 1.5e-3", "a = b * 2", NUMBERS),
        ("a = f(1, 2)", "a = f(3, 4)", NUMBERS),
        # A name in place of a number, and a number in place of a name.
        ("a = b + 1", "a = b + c", OTHER),
        ("a = b + c", "a = b + 1", OTHER),
        ("a = b + 1", "c = b + 2", OTHER),
        ("a = b", "c = b", NAMES),
        ("a = b; c = a", "d = b; c = d", NAMES),
        ("a = b", "b = a", NAMES),
        # Not throughout, or two that become one.
        ("a = b; c = a", "d = b; c = a", OTHER),
        ("a = b; c = a", "a = a; c = a", OTHER),
        ("a = b + c", "a = b + b", OTHER),
        # What is called or looked up is no name of the graph's own.
        ("a = sin(b)", "a = cos(b)", OTHER),
        ("a = b.sin", "a = b.cos", OTHER),
        ("a = torch.sin(b)", "a = np.sin(b)", OTHER),
        ("a = b + c", "a = b - c", OTHER),
        ("a = b", "a = b + c", OTHER),
        ("a = b", "a = b\n", EQUAL),
        ("a = b", "a = b", EQUAL),
    ],
)
def test_how_code_changed(before: str, after: str, said: str) -> None:
    assert graph_advice(field_change("gm", before, after)).startswith(said)


def test_a_graph_on_one_side_alone() -> None:
    assert graph_advice(field_change("gm", None, "a = b")).startswith(OTHER)
    assert graph_advice(field_change("gm", "a = b", None)).startswith(OTHER)
