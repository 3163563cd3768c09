"""Whether two printed values are one, but for the order of a set."""

from __future__ import annotations

import pytest

from cachescope.analysis.differences import is_reordered


@pytest.mark.parametrize(
    ("before", "after", "is_one"),
    [
        ("{'a', 'b'}", "{'b', 'a'}", True),
        ("[1, {'a', 'b'}]", "[1, {'b', 'a'}]", True),
        ("{'a': {1, 2}}", "{'a': {2, 1}}", True),
        # A list in another order is another list, with or without a set in it.
        ("['a', 'b']", "['b', 'a']", False),
        ("[{1}, 'a', 'b']", "[{1}, 'b', 'a']", False),
        ("{'a', 'b'}", "{'a', 'b'}", False),
        ("{'ab'}", "{'ba'}", False),
        ("{'a', 'b'}", "{'a', 'c'}", False),
        ("{f(1), 2}", "{2, f(1)}", False),
        # Written in another way it is no other order.
        ("{1, 2}", "{2,1}", False),
        ("{1, 2}", "{1.0, 2}", False),
        ("{1, 2", "2, 1{", False),
        (None, "{1}", False),
        ("{1}", None, False),
    ],
)
def test_a_set_in_another_order(before: str | None, after: str | None, is_one: bool) -> None:
    assert is_reordered(before, after) is is_one
