"""What can go: damaged, left behind, alone; in real directories, and one row at a time, made by hand.

A second torch process would not miss it, and locks stay.
"""

import contextlib
import importlib
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.analysis.directory.unused import Unread, removable_rows
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.linked_rows import OrphanRow, RemovableRow
from cachescope.terms import OTHER_NAME, OTHER_TEXT
from tests.analysis.plain_rows import seen_at
from tests.conftest import Directory, Recording
from tests.made import NOON_NS, Stored, entry, scope_of

HOUR_NS = 3_600_000_000_000


@pytest.mark.slow
def test_an_entry_with_graphs_writes_their_code_again_and_stays(directory: Directory, tmp_path: Path) -> None:
    cache = Path(shutil.copytree(directory("torch_2.13.0") / "cache", tmp_path / "cache", symlinks=True))
    entries = cachescope.read(cache).entries
    bundled = entries[(entries["cache"] == "aotautograd") & entries["code_key"].notna()].iloc[0]
    next(cache.glob(f"??/{bundled['code_key']}.py")).unlink()
    scope = cachescope.read(cache)
    (orphan,) = scope.orphans[scope.orphans["cache"] == "aotautograd"].itertuples()
    assert orphan.reason == f"its generated code {bundled['code_key']} is gone"
    assert orphan.entry not in set(scope.removable["entry"])


def test_what_a_wrapper_made_goes_with_it(directory: Directory, recording: Recording, tmp_path: Path) -> None:
    cache = Path(shutil.copytree(directory("compile_flags") / "cache", tmp_path / "cache"))
    entries = cachescope.read(cache).entries
    wrapper = entries[(entries["cache"] == "fxgraph")]["code_key"].iloc[0]
    kernels = {path.name for path in cache.glob("??/*.main.*")}
    assert len(kernels) == 4
    shutil.rmtree(cache / "fxgraph")
    shutil.rmtree(cache / "aotautograd")
    # Without any FX entry nothing tells which code is in use; with one of another graph all of this is alone.
    assert cachescope.read(cache).orphans.empty
    other = recording("2.13.0", "training") / "cache"
    shutil.copytree(other / "fxgraph", cache / "fxgraph")
    for code in other.glob("??"):
        shutil.copytree(code, cache / code.name, dirs_exist_ok=True)
    scope = cachescope.read(cache)
    assert scope.removable.empty  # it came here just now, however old it says to be
    late = time.time_ns() + 25 * HOUR_NS
    removable = removable_rows(seen_at(scope.tables.entries.rows, late), scope.orphaned.rows)
    assert {Path(row.path).name for row in removable if row.cache == "code"} == {f"{wrapper}.py", *kernels}
    # What torch compiled to see what the processor can do is of no graph, and stays.
    assert len(list(cache.glob("??/c*.so"))) > 2


MINUTE, HOUR, DAY = 60, 3_600, 86_400
REFUSED = "truncated at byte 300"
OLD = 2 * DAY


def can_go(
    cache: str, status: str = "ok", *, written: float | None, changed: float | None = None, alone: bool = False,
    **told: Any,
) -> bool:  # fmt: skip
    """Whether a file can go that was written and changed so many seconds before it is asked."""
    made, _ = entry(cache, "f11", at=0, status=status, **told)
    made.modified_time = None if written is None else NOON_NS - int(written * 10**9)
    since = written if changed is None else changed
    made.changed_time = None if since is None else NOON_NS - int(since * 10**9)
    return bool(removed((made, None), orphans=[OrphanRow(0, cache, "nothing uses it")] if alone else []))


def removed(*files: Stored, orphans: Sequence[OrphanRow] = ()) -> list[RemovableRow]:
    return removable_rows(seen_at(scope_of(entries=files).tables.entries.rows, NOON_NS), orphans)


UNUSED = [OrphanRow(0, "code", "no FX entry uses this code")]


@pytest.mark.parametrize(("cache", "status", "told", "wanted"), [
    ("fxgraph", "ok", {}, False),
    ("fxgraph", "damaged", {"damage": REFUSED}, True),
    ("aotautograd", "damaged", {"damage": REFUSED}, True),
    ("triton", "damaged", {"damage": REFUSED}, False),
    ("fxgraph", "damaged", {"damage": "its name is another"}, False),
    ("fxgraph", "damaged", {"damage": f"it is not {REFUSED}"}, False),
    ("fxgraph", "damaged", {"damage": "hostile: calls os.system"}, False),
    ("fxgraph", "damaged", {"damage": REFUSED, "link": "/elsewhere"}, True),
    ("fxgraph", "unreadable", {"damage": REFUSED}, False),
    ("autotune", "damaged", {"damage": "no JSON: Extra data"}, True),
    ("autotune", "damaged", {"damage": "system hash differs from the name"}, False),
    ("best_config", "damaged", {"damage": "empty file"}, True),
    ("fxgraph", "ok", {"alone": True}, False),
    ("aotautograd", "ok", {"alone": True}, False),
    ("code", "ok", {}, False),
    ("code", "ok", {"alone": True}, True),
    ("code", "ok", {"alone": True, "link": "/elsewhere"}, False),
    ("triton", "ok", {"alone": True}, False),
    ("lock", "ok", {"alone": True}, False),
    ("best_config", "ok", {"alone": True}, False),
    ("code", "temporary", {}, True),
    ("code", "temporary", {"link": "/elsewhere"}, False),
    ("fxgraph", "temporary", {}, False),
    ("fxgraph", "temporary", {"damage": REFUSED}, True),
])  # fmt: skip
def test_of_old_files(cache: str, status: str, told: dict[str, Any], wanted: bool) -> None:
    assert can_go(cache, status, written=OLD, **told) is wanted


DAMAGED: dict[str, Any] = {"cache": "fxgraph", "status": "damaged", "damage": REFUSED}
TEMPORARY: dict[str, Any] = {"cache": "code", "status": "temporary"}
ALONE: dict[str, Any] = {"cache": "code", "alone": True}


@pytest.mark.parametrize(
    ("made", "age"),
    [(DAMAGED, MINUTE), (TEMPORARY, HOUR), (ALONE, DAY)],
    ids=["damaged", "temporary", "code"],
)
def test_what_may_still_be_written_stays(made: dict[str, Any], age: int) -> None:
    assert not can_go(written=age - 1, **made)
    assert not can_go(written=age, **made)
    assert can_go(written=age + 1, **made)
    # A time that is missing or in the future proves no age.
    assert not can_go(written=None, **made)
    assert not can_go(written=-5, **made)
    # That of writing any program can set; a refused entry is refused whenever it was.
    assert can_go(written=age + 1, changed=1, **made) is (made is DAMAGED)
    assert not can_go(written=1, changed=age + 1, **made)


@pytest.mark.slow  # imports torch
@pytest.mark.parametrize(
    "content", ["", "null", "[]", '{"system": {}, "ca', '{"system": {}, "cache": {}}}', "\xff"]
)
def test_json_that_is_of_no_use_can_go(content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of timings torch raises whatever it asks; of a best configuration it finds none, or raises, too."""
    pytest.importorskip("torch")
    codecache = importlib.import_module("torch._inductor.codecache")
    cached = importlib.import_module("torch._inductor.runtime.autotune_cache").AutotuneCache
    timings, kernel = tmp_path / "cache" / codecache.CacheBase.get_system()["hash"], tmp_path / "ab" / "c1.py"
    monkeypatch.setattr(codecache.CacheBase, "get_local_cache_path", staticmethod(lambda: timings))
    best = cached.create({}, str(kernel), "0" * 64)
    for path in (timings, Path(best.local_cache[1])):
        path.parent.mkdir()
        path.write_bytes(content.encode("latin-1"))
        os.utime(path, (1, 1))
    with pytest.raises((ValueError, TypeError)):
        codecache.LocalCache().lookup("mm")
    with contextlib.suppress(AssertionError):
        assert best.read_best({}, []) is None
    assert set(cachescope.read(tmp_path).removable["cache"]) == {"autotune", "best_config"}


def test_a_time_of_zero_proves_no_age() -> None:
    made, _ = entry("fxgraph", "f11", status="damaged", damage=REFUSED)
    made.modified_time = made.changed_time = 0
    assert not removed((made, None))
    made.modified_time = made.changed_time = 1
    assert len(removed((made, None))) == 1


def test_ages_count_from_when_a_file_was_seen() -> None:
    made, _ = entry("fxgraph", "f11", at=-61, status="damaged", damage=REFUSED)
    for seen, wanted in ((None, 0), (NOON_NS - 2 * 10**9, 0), (NOON_NS, 1)):
        (row,) = scope_of(entries=[(made, None)]).tables.entries.rows
        assert len(removable_rows([replace(row, seen_time=seen)], [])) == wanted


def test_what_was_compiled_from_code_goes_with_it() -> None:
    """Only under the same key of the same directory, as old, and not behind a link."""
    day = -OLD
    files = [
        entry("code", "c11", at=day, name="c11.py"),
        entry("code", "c11", at=day, name="c11.so"),
        entry("code", "c11", at=-HOUR, name="c11.main.cpp"),
        entry("code", "c11", at=day, name="c11.linked", link="/elsewhere"),
        entry("code", "c22", at=day, name="c22.so"),
        entry("code", "c11", at=day, name="c11.so", root="/other"),
        entry("triton", "c11", at=day, name="c11.bin"),
    ]
    found = removed(*files, orphans=UNUSED)
    assert [(row.entry, row.size_bytes) for row in found] == [(0, 100), (1, 100)]
    assert all(row.reason.endswith("would have it compiled again") for row in found)
    assert found[0].reason.startswith("no FX entry uses this code")
    assert found[1].reason.startswith("belongs to code that no FX entry uses")


def test_what_was_compiled_from_code_is_as_old_as_when_it_was_seen() -> None:
    """Without a time to count from, each file is as old as it was then; one that says none proves no age."""
    files = [entry("code", "c11", at=-OLD, name=f"c11{end}") for end in (".py", ".so", ".o", ".a")]
    seen = [NOON_NS, NOON_NS, NOON_NS - int(1.5 * DAY * 10**9), None]
    read = scope_of(entries=files).tables.entries.rows
    rows = [replace(row, seen_time=at) for row, at in zip(read, seen, strict=True)]
    assert [row.entry for row in removable_rows(rows, UNUSED)] == [0, 1]
    assert [row.entry for row in removable_rows(seen_at(rows, NOON_NS), UNUSED)] == [0, 1, 2, 3]


def test_code_without_a_key_belongs_to_no_other() -> None:
    files = [entry("code", "c11", at=-OLD, name=name, cache_key=None) for name in ("a.py", "a.so")]
    assert [row.entry for row in removed(*files, orphans=UNUSED)] == [0]


TRUNCATED = "truncated at byte 3"


def row(cache: str = "fxgraph", **told: Any) -> EntryRow:
    made = {"entry": 0, "cache": cache, "cache_key": "k", "root": "/c", "path": f"/c/{cache}/k/x"}  # fmt: skip
    return EntryRow(**(made | told))


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
