"""The words of printed graphs, how alike two are, and how they differ."""

from collections import Counter

import pytest

from cachescope.analysis.graphs import graph_diff, graph_words, likeness


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
