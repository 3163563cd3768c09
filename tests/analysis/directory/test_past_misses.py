"""Why one graph has several entries: real directories against what the log said, and entries made by hand."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.analysis.directory import equal_code
from cachescope.analysis.directory.past_misses import past_misses
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
