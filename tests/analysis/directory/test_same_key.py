"""What lies beside an entry under its key, from directories in which it was made so by torch or by what was done."""

from typing import Any

import pytest

import cachescope
from cachescope.analysis.directory.same_key import candidates, marks_beside
from cachescope.frames.directory_rows import EntryRow
from tests.conftest import Recording


@pytest.mark.parametrize("version", ["2.10.0", "2.13.0", "2.15.0"])
def test_other_guards_and_other_code_under_one_key_are_marked(version: str, recording: Recording) -> None:
    guards = cachescope.read(recording(version, "dynamic_guards") / "cache").guards
    fx = guards[guards["cache"] == "fxgraph"]
    assert len(fx) == 2
    assert fx["cache_key"].nunique() == 1
    assert set(fx["beside"]) == {("other_code", "other_guards")}
    # An AOTAutograd entry has no code of its own.
    assert set(guards.loc[guards["cache"] == "aotautograd", "beside"]) == {("other_guards",)}


@pytest.mark.parametrize(("rows", "marks"), [
    ([{}], {}),
    ([{}, {"cache": "aotautograd"}], {}),
    ([{}, {"cache_key": "f2"}], {}),
    ([{"cache": "code"}, {"cache": "code"}], {}),
    ([{"cache_key": None}, {"cache_key": None}], {}),
    ([{}, {"status": "unreadable"}], {}),
    ([{}, {"status": "temporary"}], {}),
    ([{}, {"root": "/other"}], {}),
    ([{}, {}], dict.fromkeys((0, 1), ("equal_guards",))),
    ([{"guards_expr": "s"}, {"guards_expr": "s"}], dict.fromkeys((0, 1), ("equal_guards",))),
    ([{"guards_expr": "s"}, {}], dict.fromkeys((0, 1), ("other_guards",))),
    ([{"code_key": "c1"}, {"code_key": "c1"}], dict.fromkeys((0, 1), ("equal_guards",))),
    ([{"code_key": "c1"}, {"code_key": "c2"}], dict.fromkeys((0, 1), ("other_code", "equal_guards"))),
    ([{"code_key": "c1"}, {}], dict.fromkeys((0, 1), ("equal_guards",))),
    # The contents of a damaged one are compared with nothing.
    ([{}, {"status": "damaged", "code_key": "c2"}], {0: ("damaged",), 1: ()}),
    ([{"status": "damaged"}, {"status": "damaged"}], {0: ("damaged",), 1: ("damaged",)}),
    # In the order in which a reader should learn of them.
    (
        [{"code_key": "c1"}, {"code_key": "c2"}, {"code_key": "c1", "guards_expr": "s"}, {"status": "damaged"}],
        {
            0: ("damaged", "other_code", "other_guards", "equal_guards"),
            1: ("damaged", "other_code", "other_guards", "equal_guards"),
            2: ("damaged", "other_code", "other_guards"),
            3: (),
        },
    ),
])  # fmt: skip
def test_marks_by_rows(rows: list[dict[str, Any]], marks: dict[int, tuple[str, ...]]) -> None:
    """Made by hand; what shares its key with no other has none."""
    made = {"cache": "fxgraph", "cache_key": "f1", "root": "/c", "status": "ok"}
    assert marks_beside(EntryRow(**{**made, "entry": at, **told}) for at, told in enumerate(rows)) == marks  # fmt: skip


def test_candidates_are_sound_and_in_order_of_cache_key_and_time() -> None:
    """Made by hand; one without a time comes first."""
    told: list[tuple[str, str | None, float | None, str]] = [
        ("fxgraph", "f2", 1, "ok"), ("fxgraph", "f1", 9, "ok"), ("fxgraph", "f1", None, "ok"),
        ("aotautograd", "f3", 9, "ok"), ("fxgraph", "f1", 5, "damaged"), ("code", "f1", 5, "ok"),
        ("fxgraph", None, 5, "ok"),
    ]  # fmt: skip
    rows = [
        EntryRow(**{"entry": at, "cache": cache, "cache_key": key, "path": f"/c/{at}", "root": "/c", "modified_time": time, "status": status, "guards_expr": "L['s0'] > 1"})
        for at, (cache, key, time, status) in enumerate(told)
    ]  # fmt: skip
    found = candidates(rows)
    assert [row.entry for row in found] == [3, 2, 1, 0]
    assert {row.symbols for row in found} == {("s0",)}
