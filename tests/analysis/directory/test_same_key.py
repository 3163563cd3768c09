"""What lies beside an entry under its key, from directories in which it was made so by torch or by what was done; candidates, and files that are equal."""

import shutil
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.analysis.directory.same_key import (
    BY_CONTENT,
    BY_KEY,
    BY_SOURCE,
    candidates,
    duplicate_rows,
    marks_beside,
)
from cachescope.frames.directory_rows import EntryRow
from tests.conftest import Directory, Recording


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


def files_of(scope: cachescope.Scope, group: tuple[int, ...]) -> list[Path]:
    return [Path(path) for path in scope.entries.set_index("entry").loc[list(group), "path"]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["torch_2.10.0", "torch_2.13.0", "torch_2.15.0"])
def test_what_is_called_equal_is_so_byte_for_byte_and_none_missed(name: str, directory: Directory) -> None:
    scope = cachescope.read(directory(name))
    duplicates = scope.duplicates
    # A mega-cache was saved from one directory and loaded into another.
    assert set(duplicates["known_by"]) == {BY_CONTENT, BY_SOURCE}
    for group in duplicates[duplicates["known_by"] != BY_KEY].itertuples():
        assert len({path.read_bytes() for path in files_of(scope, group.entries)}) == 1
        assert group.saved_bytes == (group.copies - 1) * group.size_bytes
    told = {entry for group in duplicates["entries"] for entry in group}
    is_graph = scope.entries["cache"].isin(["fxgraph", "aotautograd"])
    graphs = scope.entries[is_graph & (scope.entries["status"] == "ok")]
    contents_of: dict[bytes, list[int]] = {}
    for row in graphs.itertuples():
        contents_of.setdefault(Path(row.path).read_bytes(), []).append(row.entry)
    equal = {entry for group in contents_of.values() if len(group) > 1 for entry in group}
    assert equal <= told


def test_entries_raced_for_are_told_by_key_and_guards(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "four_processes") / "cache")
    assert set(scope.duplicates["known_by"]) == {BY_KEY}
    assert scope.duplicates["copies"].tolist() == [4, 4]
    for group in scope.duplicates.itertuples():
        sizes = [path.stat().st_size for path in files_of(scope, group.entries)]
        assert group.saved_bytes == sum(sizes[1:])
        assert group.size_bytes == sizes[0]


def test_a_copied_directory_is_found_whole(recording: Recording, tmp_path: Path) -> None:
    cache = recording("2.13.0", "config_flip") / "cache"
    scope = cachescope.read(cache, shutil.copytree(cache, tmp_path / "copy"))
    # Compiled libraries and locks are not told by their names.
    hashed = scope.entries[scope.entries["path"].map(lambda path: Path(path).suffix in ("", ".py", ".cpp"))]
    assert scope.duplicates["copies"].tolist() == [2] * (len(hashed) // 2)
    assert scope.duplicates["saved_bytes"].is_monotonic_decreasing
    assert scope.duplicates["saved_bytes"].sum() == hashed["size_bytes"].sum() // 2


CODE_KEY = "c" + "a" * 51


def row(number: int, name: str = "x", cache: str = "fxgraph", **told: Any) -> EntryRow:
    made = {
        "entry": number, "cache": cache, "cache_key": "f11", "root": "/c", "path": f"/c/{number}/{name}",
        "size_bytes": 100, "modified_time": 5,
    }  # fmt: skip
    return EntryRow(**(made | told))


def code(number: int, name: str, **told: Any) -> EntryRow:
    return row(number, name, "code", **{"cache_key": CODE_KEY, **told})


def groups(*rows: EntryRow) -> list[tuple[tuple[int, ...], str]]:
    return [(group.entries, group.known_by) for group in duplicate_rows(rows)]


CASES: dict[str, tuple[list[EntryRow], list[tuple[tuple[int, ...], str]]]] = {
    "one file": ([row(0)], []),
    "equal name and size": ([row(0), row(1, cache_key="f22")], [((0, 1), BY_CONTENT)]),
    "another size": ([row(0), row(1, cache_key="f22", size_bytes=99)], []),
    "another name": ([row(0), row(1, "y", cache_key="f22")], []),
    "another cache": ([row(0), row(1, cache="aotautograd")], []),
    "in another directory": ([row(0), row(1, root="/d")], [((0, 1), BY_CONTENT)]),
    "damaged": ([row(0), row(1, status="damaged")], []),
    "a link": ([row(0), row(1, link="/elsewhere")], []),
    "of 2.6": ([row(0, "entry"), row(1, "entry", cache_key="f22")], []),
    # Of one key, another name with equal guards.
    "equal guards": ([row(0), row(1, "y")], [((0, 1), BY_KEY)]),
    "equal guards, of 2.6": ([row(0, "entry"), row(1, "entry", size_bytes=9)], [((0, 1), BY_KEY)]),
    "equal guards, in another directory": ([row(0), row(1, "y", root="/d")], []),
    "equal guards, of another cache": ([row(0), row(1, "y", "aotautograd")], []),
    "equal guards, without a key": ([row(0, cache_key=None), row(1, "y", cache_key=None)], []),
    "other guards": ([row(0, guards_expr="a"), row(1, "y", guards_expr="b")], []),
    "no guards, and some": ([row(0), row(1, "y", guards_expr="b")], []),
    "one is said once": ([row(0), row(1), row(2, "y")], [((0, 1), BY_CONTENT)]),
    "and of the rest": ([row(0), row(1), row(2, "y"), row(3, "z")], [((0, 1), BY_CONTENT), ((2, 3), BY_KEY)]),
    # Code, if its name is the hash of the source.
    "code": ([code(0, f"{CODE_KEY}.py"), code(1, f"{CODE_KEY}.py")], [((0, 1), BY_SOURCE)]),
    "code of several parts": ([code(0, f"{CODE_KEY}.main.cpp"), code(1, f"{CODE_KEY}.main.cpp")], [((0, 1), BY_SOURCE)]),
    "compiled code": ([code(0, f"{CODE_KEY}.so"), code(1, f"{CODE_KEY}.so")], []),
    "code of another name": ([code(0, "x.py"), code(1, "x.py")], []),
    "code of one key": ([code(0, f"{CODE_KEY}.py"), code(1, f"{CODE_KEY}.cpp")], []),
    "a kernel of Triton": ([row(0, f"{CODE_KEY}.py", "triton"), row(1, f"{CODE_KEY}.py", "triton")], []),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_files_that_duplicate_each_other(name: str) -> None:
    rows, wanted = CASES[name]
    assert groups(*rows) == wanted


def test_the_first_that_was_written_is_the_one_to_keep() -> None:
    rows = [
        row(0, "a", modified_time=9, size_bytes=30),
        row(1, "b", modified_time=7, size_bytes=20),
        row(2, "c", modified_time=7, size_bytes=10),
        row(3, "d", cache_key="f22", size_bytes=1),
        row(4, "d", cache_key=None, size_bytes=1),
        row(5, "e", cache_key="f33", size_bytes=None),
        row(6, "f", cache_key="f33", size_bytes=40),
        row(7, "g", "fxgraph", cache_key="f44", size_bytes=20),
        row(8, "h", "fxgraph", cache_key="f44", size_bytes=40),
    ]
    wanted = attrgetter("entries", "cache", "cache_key", "copies", "size_bytes", "saved_bytes")
    assert list(map(wanted, duplicate_rows(rows))) == [
        # The largest saving first, then the first entry.
        ((1, 2, 0), "fxgraph", "f11", 3, 20, 40),
        ((5, 6), "fxgraph", "f33", 2, 0, 40),
        ((7, 8), "fxgraph", "f44", 2, 20, 40),
        ((3, 4), "fxgraph", "f22", 2, 1, 1),
    ]


def test_what_has_no_key_and_no_time() -> None:
    rows = [row(0, cache_key=None, modified_time=3), row(1, cache_key=None, modified_time=None)]
    (group,) = duplicate_rows(rows)
    assert (group.entries, group.cache_key) == ((1, 0), "")
