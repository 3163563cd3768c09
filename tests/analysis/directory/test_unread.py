"""What may lie unseen in a directory: its rows in, what is known of the rest out; made by hand."""

from typing import Any

import pytest

from cachescope.analysis.directory.links import Files
from cachescope.analysis.directory.unused import Unread
from cachescope.frames.directory_rows import EntryRow
from cachescope.terms import OTHER_NAME, OTHER_TEXT

TRUNCATED = "truncated at byte 3"


def row(cache: str = "fxgraph", **told: Any) -> EntryRow:
    made = {"entry": 0, "cache": cache, "cache_key": "k", "root": "/c", "path": f"/c/{cache}/k/x"}  # fmt: skip
    return EntryRow(**(made | told))


@pytest.mark.parametrize(
    ("damage", "refused"),
    [(None, False), (TRUNCATED, True), (OTHER_NAME, False), (f"it is not {TRUNCATED}", False)],
)
def test_what_torch_itself_refuses(damage: str | None, refused: bool) -> None:
    assert row(damage=damage).is_refused is refused


@pytest.mark.parametrize(("rows", "kind", "may_hold"), [
    # The folder of a cache in its place: the whole was read.
    ([row()], "fxgraph", False),
    ([row("aotautograd")], "code", False),
    ([row(path="/c/k/x")], "fxgraph", True),
    ([row("code")], "code", True),
    ([row(path="/c/aotautograd/k/x")], "code", True),
    ([row(path="/c/fxgraphs/x")], "code", True),
    ([row(root="/d", path="/d/fxgraph/x")], "code", True),
    ([], "code", True),
    # What could not be read.
    ([row(), row("code", status="unreadable")], "code", True),
    ([row(), row("code", status="unreadable")], "fxgraph", False),
    ([row(), row("code", status="unreadable", root="/d")], "code", False),
    ([row(), row("code", status="damaged")], "code", False),
    ([row(), row("other", status="unreadable")], "fxgraph", True),
    ([row(), row("other", status="unreadable")], "lock", False),
    ([row(), row("lock", status="unreadable")], "lock", True),
], ids=range(15))  # fmt: skip
def test_what_may_lie_unseen(rows: list[EntryRow], kind: str, may_hold: bool) -> None:
    assert Unread(rows).may_hold("/c", kind) is may_hold


def test_whether_anything_could_not_be_read() -> None:
    assert not Unread([row(), row(status="damaged")]).has_unread("/c")
    assert Unread([row(), row("lock", status="unreadable")]).has_unread("/c")
    assert not Unread([row(), row(status="unreadable", root="/d")]).has_unread("/c")


@pytest.mark.parametrize(("more", "all_named"), [
    ([], True),
    ([row("lock", status="unreadable")], True),
    ([row("triton", status="unreadable")], False),
    ([row("lock", status="unreadable"), row("triton", status="unreadable")], False),
    ([row(root="/d", status="unreadable")], True),
    # Graphs that lie inside, and are not read.
    ([row("precompile")], False),
    ([row("aotautograd", code_key="c1")], False),
    ([row("aotautograd")], True),
    # A damaged file may name code that its row does not have; one that torch refuses names none.
    ([row(status="damaged", damage=OTHER_NAME)], False),
    ([row(status="temporary")], False),
    ([row("code", status="damaged")], False),
    ([row("autotune", status="damaged")], False),
    ([row("triton", status="damaged")], True),
    ([row(status="damaged", damage=TRUNCATED)], True),
    ([row("code", status="damaged", damage=OTHER_TEXT)], True),
    # An FX entry has named its code, whatever else is wrong with it.
    ([row(status="damaged", damage=OTHER_NAME, code_key="c1")], True),
    ([row("code", status="damaged", code_key="c1")], False),
    ([row("precompile", root="/d")], True),
], ids=range(18))  # fmt: skip
def test_whether_all_that_names_code_was_read(more: list[EntryRow], all_named: bool) -> None:
    assert Unread([row(), *more]).names_all_code("/c") is all_named


def test_of_a_part_of_a_directory_nothing_names_all_code() -> None:
    assert not Unread([row(path="/c/k/x")]).names_all_code("/c")
    assert not Unread([]).names_all_code("/c")


def test_files_by_key_and_kernel() -> None:
    """Each question to the index of files, for two directories."""
    wrapper = row("code", entry=1, cache_key="c1", path="/c/aa/c1.py")
    kernel = row("code", entry=2, cache_key="c2", path="/c/bb/c2.cpp", kernel_keys=("c9",))
    other = row("code", entry=3, cache_key="c1", path="/d/aa/c1.py", root="/d")
    nameless = row("code", entry=4, cache_key=None, path="/c/aa/x.py")
    meta = row("triton", entry=5, cache_key="t1", path="/d/triton/t1/k.json", root="/d")
    group = row("triton", entry=6, cache_key="t2", path="/c/triton/t2/__grp__k.json")
    best = row("best_config", entry=7, cache_key=None, path="/c/aa/x.best_config")
    left_out = [
        row("code", status="temporary", cache_key="c1", path="/c/aa/c1.py"),
        row("lock", cache_key="c1"),
    ]
    files = Files([wrapper, kernel, other, nameless, meta, group, best, *left_out])
    assert files.rows == [wrapper, kernel, other, nameless, meta, group, best]
    assert files.of_key("/c", "code", "c1") == [wrapper]
    assert files.of_key("/c", "fxgraph", "c1") == files.of_key("/c", "code", "c3") == []
    assert files.kernels("/c", "c1") == [wrapper]
    assert files.kernels("/c", "c9") == [kernel]
    assert files.kernels("/d", "c9") == files.kernels("/c", "c2") == []
    assert (files.python("/c", "c1"), files.python("/d", "c1")) == ([wrapper], [other])
    assert files.python("/e", "c1") == [wrapper]
    assert files.python("/c", "") == []
    assert (files.triton("/c", "t1"), files.triton("/d", "t1")) == ([meta], [meta])
    assert files.triton("/c", "t2") == []
    assert files.roots_with_triton == {"/c", "/d"}
    assert files.kernels_in["/c/aa"] == [wrapper]
    assert files.best_configs_in == {"/c/aa": [best]}
