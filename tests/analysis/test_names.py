"""What a number or the beginning of a key names: frames in, a lookup or a set of hash details out; made by hand."""

from __future__ import annotations

import pytest

from cachescope.errors import NotFoundError
from tests.made import CODE, entry, fx, run, scope_of

G = {"gm": CODE}
SCOPE = scope_of(
    run(
        fx("fabc1", details=G, at=0, compile_id="0/0"),
        fx("fabc1", "guard_miss", G, at=1, compile_id="1/0"),
        fx("fabc1", "hit", G, at=2, compile_id="2/0"),
        fx("fabd2", "hit", G, at=3, compile_id="3/0"),
        fx("fxyz3", details=None, at=4, compile_id="4/0"),
    ),
    entries=[entry("fxgraph", "fent4", {**G, "x": "1"}), entry("code", "cabc1")],
)


@pytest.mark.parametrize(
    ("named", "lookup"),
    [("fabc1", 1), ("fabc", 1), ("fabd", 3), ("fx", 4), (0, 0), ("2", 2), (4, 4)],
)
def test_the_last_miss_of_a_key_or_a_number(named: int | str, lookup: int) -> None:
    assert repr(SCOPE.explain(named)).startswith(f"lookup {lookup}, run 0 ")


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("fab", "fab"),
        ("fnothing", "fnothing"),
        ("", ""),
        (9, "no lookup 9; there are 5"),
        ("fent", "no lookup of it was recorded"),
    ],
)
def test_what_is_nothing_or_several_is_said(named: int | str, said: str) -> None:
    with pytest.raises(NotFoundError) as error:
        SCOPE.explain(named)
    assert said in str(error.value)


def test_hash_details_by_key_and_by_lookup() -> None:
    assert SCOPE.hash_details("fent4")["field"].tolist() == ["gm", "x"]
    assert SCOPE.hash_details("fabc1").equals(SCOPE.hash_details(lookup=3))
    for asked in ({"cache_key": "fxyz3"}, {"lookup": 4}, {"lookup": 77}):
        with pytest.raises(NotFoundError):
            SCOPE.hash_details(**asked)
    for wrong in ({}, {"cache_key": "fabc1", "lookup": 0}):
        with pytest.raises(TypeError):
            SCOPE.hash_details(**wrong)
