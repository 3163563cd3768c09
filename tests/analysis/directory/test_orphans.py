"""What is alone in a directory: its files in, those that nothing uses or that lack something out; made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.made import Stored, entry, scope_of


def fx(key: str = "f11", code: str | None = "c11", **told: Any) -> Stored:
    return entry("fxgraph", key, code_key=code, **told)


def aot(*keys: str, **told: Any) -> Stored:
    return entry("aotautograd", "a11", fx_keys=keys, **told)


def code(key: str = "c11", **told: Any) -> Stored:
    return entry("code", key, **{"name": f"{key}.py", **told})


def alone(*entries: Stored) -> list[tuple[int, str]]:
    frame = scope_of(entries=entries).orphans
    return list(zip(frame["entry"].tolist(), frame["reason"].tolist(), strict=True))


UNUSED = "no FX entry uses this code"


@pytest.mark.parametrize(
    ("entries", "wanted"),
    [
        ([fx(), code()], []),
        ([fx(), code(), code("c22")], [(2, UNUSED)]),
        # Only code is alone for want of an FX entry.
        ([fx(), code(), entry("triton", "k22", name="k22.py")], []),
        ([fx(), code(), code("c22", status="temporary")], []),
        ([fx(), code(), code("c22", root="/other")], []),
        # Without an FX entry nothing tells what is used.
        ([code("c22")], []),
        ([fx(code=None), code("c22")], []),
        # Nor where some of them could not be read.
        ([fx(), code(), code("c22"), fx("f22", None, status="unreadable")], []),
        ([fx(), code(), code("c22"), entry("precompile", "p1")], []),
        ([fx(), code(), code("c22"), entry("lock", "l1", status="unreadable")], [(2, UNUSED), (3, "")]),
        # What lacks something.
        ([fx()], [(0, "its generated code c11 is gone")]),
        ([aot("f11"), fx(), code()], []),
        ([aot("f99"), fx(), code()], [(0, "its FX entry f99 is gone")]),
        ([aot("f99", status="damaged", damage="truncated"), fx(), code()], []),
        ([aot("f11"), fx(root="/other"), code(root="/other")], None),
        # Where something was not read it may lie there.
        ([aot("f99"), fx(), code(), entry("other", "o1", status="unreadable")], []),
        ([aot("f99"), fx(), code(), fx("f22", None, status="unreadable")], []),
        ([aot("f99"), fx(), code(), code("c22", status="unreadable")], [(0, "its FX entry f99 is gone")]),
    ],
)
def test_what_is_alone(entries: list[Stored], wanted: list[tuple[int, str]] | None) -> None:
    found = alone(*entries)
    if wanted is None:
        # Another directory is another one.
        assert [number for number, _ in found] == [0]
    else:
        assert [one for one in found if entries[one[0]][0].cache != "lock"] == [
            one for one in wanted if entries[one[0]][0].cache != "lock"
        ]
