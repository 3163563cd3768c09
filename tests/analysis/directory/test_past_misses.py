"""Why one graph has several entries, and what lies beside an entry under its key: real directories against what the log said or what was done, and entries made by hand."""

import shutil
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.analysis.directory import equal_code
from cachescope.analysis.directory.past_misses import past_misses
from cachescope.analysis.directory.same_key import (
    BY_CONTENT,
    BY_KEY,
    BY_SOURCE,
    candidates,
    duplicate_rows,
    marks_beside,
)
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.linked_rows import PastMiss
from cachescope.keys.hashing import entry_name
from cachescope.report.why_missed import past_lines
from tests.conftest import Directory, Recording
from tests.made import NOON_NS, SECOND_NS, Details, Stored, entry, scope_of


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fields"), [
    ("config_flip", "inductor_config[epilogue_fusion]"),
    ("config_env", "inductor_config[coordinate_descent_tuning]"),
    ("cache_key_tag", "cache_key_tag"),
    ("matmul_precision", "cuda_matmul_settings"),
])  # fmt: skip
def test_a_directory_alone_names_the_field_of_the_log(name: str, fields: str, recording: Recording) -> None:
    folder = recording("2.13.0", name)
    past = cachescope.read(folder / "cache").past_misses
    log = cachescope.read(folder / "trace")
    told = log.misses.merge(log.lookups, on="lookup").query("cache == 'fxgraph' and verdict == 'key_changed'")
    assert set(past["cache_key"]) == set(told["cache_key"])
    assert {field for changed in past["changed"] for field in changed} == {fields}
    assert set(past["verdict"]) == {"key_changed"}


@pytest.mark.parametrize(("name", "is_before"), [("two_ranks_cold_shapes", False), ("inputs", True)])
def test_ranks_that_compile_at_once_are_told_from_a_later_compile(
    name: str, is_before: bool, recording: Recording
) -> None:
    scope = cachescope.read(recording("2.13.0", name) / "cache")
    assert set(scope.past_misses["is_order_known"]) == {is_before}
    said = "\n".join(line.text for line in past_lines(scope))
    assert ("made although the graph had been stored before" in said) is is_before
    assert ("do not show that one was stored before the other was compiled" in said) is not is_before


@pytest.mark.parametrize(("name", "same", "files"), [("cache_key_tag", True, 1), ("inputs", False, 4)])
def test_equal_code_is_told_from_other_code(name: str, same: bool, files: int, recording: Recording) -> None:
    # torch names generated code by its hash: as many files as there were different sources.
    folder = recording("2.13.0", name) / "cache"
    assert len(list(folder.glob("??/c*.py"))) == files
    assert set(cachescope.read(folder).past_misses["same_code"]) == {same}


def test_a_flag_of_the_compiler_leaves_the_source_and_changes_the_kernel(directory: Directory) -> None:
    scope = cachescope.read(directory("compile_flags") / "cache")
    past = scope.past_misses.set_index(scope.past_misses["changed"].map(lambda changed: changed[0]))
    assert set(past["verdict"]) == {"key_changed"}
    assert past["same_code"].tolist() == [True, True]
    tagged = past.loc["cache_key_tag"]
    assert tagged["same_binaries"]
    (one,) = (directory("compile_flags") / "cache").glob("??/cys*.main.so")
    assert tagged["same_code_known_by"] == f"equal code keys; one compiled file for both: {one.name}"
    flagged = past.loc["inductor_config[cpp.enable_unsafe_math_opt_flag]"]
    assert not flagged["same_binaries"]
    assert flagged["same_code_known_by"].startswith("equal code keys; compiled files that differ: ")
    assert one.name in flagged["same_code_known_by"]


@pytest.mark.parametrize("venv", ["t2150", "t260"])
def test_equal_bundles_are_equal_kernels(venv: str, directory: Directory) -> None:
    past = cachescope.read(directory("triton_kernels") / f"cache_{venv}").past_misses
    # Before 2.8 entries hold no hash details, and so no past misses.
    assert len(past) == (0 if venv == "t260" else 2)
    assert past["same_binaries"].all()
    assert all("Triton kernels bundled in both" in known_by for known_by in past["same_code_known_by"])


def test_another_key_of_equal_fields_is_told_as_such(recording: Recording, tmp_path: Path) -> None:
    """torch hashes one pickle of everything: rarely two keys differ, and no field does."""
    cache = shutil.copytree(recording("2.13.0", "cold_warm") / "cache", tmp_path / "cache")
    (path,) = (path for path in cache.glob("fxgraph/??/*/*") if path.is_file())
    key = path.parent.name
    other = key[0] + "abcd" + key[5:]
    data = path.read_bytes().replace(key.encode(), other.encode())
    folder = cache / "fxgraph" / other[1:3] / other
    folder.mkdir(parents=True)
    (folder / entry_name(data)).write_bytes(data)
    scope = cachescope.read(cache)
    assert scope.past_misses[["verdict", "changed"]].values.tolist() == [["no_detail_differs", ()]]
    assert any("no recorded field does" in line.text for line in past_lines(scope))
    (made,) = scope.past_misses["entry"]
    assert "its graph is stored under another key too: fxgraph" in repr(scope.entry(made))


G: Details = {"gm": "g", "x": "1", "y": "1", "z": "1"}


def fx(letter: str, at: float | None = 0, details: Details | None = G, **told: Any) -> Stored:
    return entry("fxgraph", f"f{letter}", details, **{"at": at, "name": letter, **told})


def missed(*entries: Stored, sources: dict[int, str] | None = None) -> list[PastMiss]:
    scope = scope_of(entries=entries)
    code = equal_code.GeneratedCode(lambda row: (sources or {}).get(row.entry))
    binaries = equal_code.KernelBinaries(scope.tables.entries.rows, scope.linked.rows, lambda path: None)
    return past_misses(scope.history.entries, scope.history.keys, code, binaries)


def table(*entries: Stored) -> list[tuple[Any, ...]]:
    return [(miss.entry, miss.verdict, miss.baseline_entry, miss.changed) for miss in missed(*entries)]


X2, XY, XYZ = {**G, "x": "2"}, {**G, "x": "2", "y": "2"}, {**G, "x": "2", "y": "2", "z": "2"}
BACKWARD = {**G, "fx_kwargs[is_backward]": "True"}

CASES: dict[str, tuple[list[Stored], list[tuple[Any, ...]]]] = {
    "one": ([fx("a")], []),
    "a field changed": ([fx("a", 1), fx("b", 2, X2)], [(1, "key_changed", 0, ("x",))]),
    "by the time they were made": ([fx("a", 2), fx("b", 1, X2)], [(0, "key_changed", 1, ("x",))]),
    "no field changed": ([fx("a", 1), fx("b", 2)], [(1, "no_detail_differs", 0, ())]),
    "other graphs": ([fx("a", 1), fx("b", 2, {**G, "gm": "h"})], []),
    "forward and backward": ([fx("a", 1), fx("b", 2, BACKWARD)], []),
    "damaged": ([fx("a", 1), fx("b", 2, X2, status="damaged")], []),
    "no details": ([fx("a", 1), fx("b", 2, None)], []),
    "AOTAutograd": ([entry("aotautograd", "aa", G, at=1), entry("aotautograd", "ab", X2, at=2)], []),
    # Of several the nearest, and of those the latest.
    "the nearest": ([fx("a", 1), fx("b", 2, XYZ), fx("c", 3, X2)], [(1, "key_changed", 0, ("x", "y", "z")), (2, "key_changed", 0, ("x",))]),
    "the latest": ([fx("a", 1), fx("b", 2, XY), fx("c", 3, X2)], [(1, "key_changed", 0, ("x", "y")), (2, "key_changed", 1, ("y",))]),
    # Of one key.
    "other guards": ([fx("a", 1), fx("a", 2, name="b", guards_expr="s")], [(1, "guard_failed", 0, ())]),
    "equal guards": ([fx("a", 1), fx("a", 2, name="b")], [(1, "entry_unavailable", 0, ())]),
    "guards seen before": (
        [fx("a", 1, guards_expr="s"), fx("a", 2, name="b", guards_expr="t"), fx("a", 3, name="c", guards_expr="s")],
        [(1, "guard_failed", 0, ()), (2, "entry_unavailable", 1, ())]),
    "a key again after another": (
        [fx("a", 1), fx("b", 2, X2), fx("b", 3, X2, name="c", guards_expr="s"), fx("a", 4, name="d")],
        [(1, "key_changed", 0, ("x",)), (2, "guard_failed", 1, ()), (3, "entry_unavailable", 0, ())]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_why_there_is_another_entry(name: str) -> None:
    entries, wanted = CASES[name]
    assert table(*entries) == wanted


def test_what_is_known_of_a_miss() -> None:
    second = fx("b", 2, {**X2, "fx_kwargs[is_backward]": "True"}, time_taken_ns=7 * SECOND_NS)
    (row,) = missed(fx("a", 1, BACKWARD), second)
    assert (row.cache_key, row.graph, row.direction) == ("fb", 0, "backward")
    assert (row.time_taken_ns, row.made_time) == (7 * SECOND_NS, NOON_NS + 2 * SECOND_NS)
    numbers = missed(fx("a", 1), fx("b", 2, BACKWARD), fx("c", 3, X2), fx("d", 4, {**BACKWARD, "x": "3"}))
    assert [miss.graph for miss in numbers] == [0, 1]


@pytest.mark.parametrize(("times", "roots", "is_known"), [
    ((1, 2), ("/c", "/c"), True), ((1, 1), ("/c", "/c"), False), ((1.25, 1.5), ("/c", "/c"), True),
    ((None, 1), ("/c", "/c"), False),
    # One directory keeps whole seconds, another maybe two of them: the coarser one decides.
    ((1, 3), ("/c", "/d"), True), ((1, 2), ("/c", "/d"), False), ((2, 3), ("/c", "/d"), False),
    ((1, 1), ("/c", "/d"), False),
])  # fmt: skip
def test_known_order(times: tuple[float | None, float], roots: tuple[str, str], is_known: bool) -> None:
    (miss,) = missed(fx("a", times[0], G, root=roots[0]), fx("b", times[1], X2, root=roots[1]))
    assert miss.is_order_known is is_known


@pytest.mark.parametrize(("keys", "sources", "same_code", "known_by"), [
    (("c1", "c1"), {}, True, equal_code.SOURCE),
    (("c1", "c2"), {0: "x\n# 1\n", 1: "x\n# 2\n"}, True, equal_code.SOURCE_BUT_FOR_THE_PROCESS),
    (("c1", "c2"), {0: "x", 1: "y"}, False, equal_code.OTHER_SOURCE),
    (("c1", "c2"), {0: "x"}, None, "the generated source of one is not stored, or could not be read"),
    (("c1", None), {0: "x", 1: "x"}, None, "the generated source of one is not stored"),
])  # fmt: skip
def test_whether_the_code_is_the_same(
    keys: tuple[str | None, ...], sources: dict[int, str], same_code: bool | None, known_by: str
) -> None:
    entries = fx("a", 1, G, code_key=keys[0]), fx("b", 2, X2, code_key=keys[1])
    (row,) = missed(*entries, sources=sources)
    assert row.same_code is same_code
    assert row.same_code_known_by.startswith(known_by)
    assert row.same_binaries is None


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


DUPLICATES: dict[str, tuple[list[EntryRow], list[tuple[tuple[int, ...], str]]]] = {
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


@pytest.mark.parametrize("name", DUPLICATES)
def test_files_that_duplicate_each_other(name: str) -> None:
    rows, wanted = DUPLICATES[name]
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
