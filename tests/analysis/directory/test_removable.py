"""What can go: damaged, left behind, alone. A second torch process would not miss it, and locks stay."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

import cachescope
from cachescope.analysis.directory.links import link_rows
from cachescope.analysis.directory.unused import orphan_rows, removable_rows
from tests.conftest import Directory, Recording

HOUR_NS = 3_600_000_000_000


def test_a_damaged_entry_can_go_and_the_sound_one_beside_it_stays(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "entry_truncated") / "cache")
    (removable,) = scope.removable.itertuples()
    assert scope.entries.set_index("entry").loc[removable.entry, "status"] == "damaged"
    assert removable.reason.startswith("damaged: truncated")


def test_an_entry_without_its_graph_is_alone_and_stays(recording: Recording, tmp_path: Path) -> None:
    cache = Path(shutil.copytree(recording("2.13.0", "config_flip") / "cache", tmp_path / "cache"))
    shutil.rmtree(cache / "fxgraph")
    scope = cachescope.read(cache)
    # It is found again as soon as the graph is made for another function, or where a remote cache holds it.
    assert scope.orphans["cache"].tolist() == ["aotautograd", "aotautograd"]
    assert scope.removable.empty
    # Without FX entries nothing tells which code is in use.
    assert set(scope.entries["cache"]) >= {"code"}


def test_a_temporary_file_can_go_when_it_is_old(recording: Recording, tmp_path: Path) -> None:
    cache = Path(shutil.copytree(recording("2.13.0", "cold_warm") / "cache", tmp_path / "cache"))
    entry = next(cache.glob("fxgraph/*/*/*"))
    temporary = entry.with_name(".123.140.tmp")
    temporary.write_bytes(b"half")
    scope = cachescope.read(cache)
    written = temporary.stat().st_mtime_ns
    assert not removable_rows(scope.tables.entries.rows, scope.orphaned.rows, written + HOUR_NS // 2)
    (removable,) = removable_rows(scope.tables.entries.rows, scope.orphaned.rows, written + 2 * HOUR_NS)
    assert Path(removable.path) == temporary


def test_a_sound_directory_has_nothing_to_remove(recording: Recording) -> None:
    assert cachescope.read(recording("2.13.0", "training") / "cache").removable.empty


def test_code_that_was_just_written_stays(recording: Recording, tmp_path: Path) -> None:
    cache = Path(shutil.copytree(recording("2.13.0", "cold_warm") / "cache", tmp_path / "cache"))
    code = next(cache.glob("??/c*.py"))
    fresh = cache / "aa" / f"c{'a' * 51}.py"
    fresh.parent.mkdir()
    fresh.write_bytes(code.read_bytes() + b"\n# other\n")
    scope = cachescope.read(cache)
    written = fresh.stat().st_mtime_ns
    # A graph may take hours, and is stored when it is compiled.
    assert not removable_rows(scope.tables.entries.rows, scope.orphaned.rows, written + 23 * HOUR_NS)
    found = removable_rows(scope.tables.entries.rows, scope.orphaned.rows, written + 25 * HOUR_NS)
    assert [row.cache for row in found] == ["code"]


@pytest.mark.slow
def test_an_entry_that_holds_its_graphs_writes_their_code_again_and_stays(
    directory: Directory, tmp_path: Path
) -> None:
    cache = Path(shutil.copytree(directory("torch_2.13.0") / "cache", tmp_path / "cache", symlinks=True))
    entries = cachescope.read(cache).entries
    bundled = entries[(entries["cache"] == "aotautograd") & entries["code_key"].notna()].iloc[0]
    next(cache.glob(f"??/{bundled['code_key']}.py")).unlink()
    scope = cachescope.read(cache)
    (orphan,) = scope.orphans[scope.orphans["cache"] == "aotautograd"].itertuples()
    assert orphan.reason == f"its generated code {bundled['code_key']} is gone"
    assert orphan.entry not in set(scope.removable["entry"])


def test_what_an_unused_wrapper_compiled_goes_with_it(
    directory: Directory, recording: Recording, tmp_path: Path
) -> None:
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
    removable = removable_rows(scope.tables.entries.rows, scope.orphaned.rows, late)
    assert {Path(row.path).name for row in removable if row.cache == "code"} == {f"{wrapper}.py", *kernels}
    # What torch compiled to see what the processor can do is of no graph, and stays.
    assert len(list(cache.glob("??/c*.so"))) > 2


def test_code_stays_where_an_entry_could_not_be_opened(directory: Directory, tmp_path: Path) -> None:
    cache = Path(shutil.copytree(directory("compile_flags") / "cache", tmp_path / "cache"))
    scope = cachescope.read(cache)
    first, *others = (row.entry for row in scope.tables.entries.rows if row.cache == "fxgraph")

    def is_code_alone(status: str, damage: str) -> bool:
        rows = [
            replace(row, status=status, damage=damage, code_key=None) if row.entry == first
            else replace(row, code_key=f"c{'a' * 51}") if row.entry in others
            else row
            for row in scope.tables.entries.rows
        ]  # fmt: skip
        links = link_rows(rows, [], [], scope.tables.hash_details)
        return any(orphan.cache == "code" for orphan in orphan_rows(rows, links))

    assert not is_code_alone("unreadable", "Permission denied")
    assert not is_code_alone("damaged", "hostile: names os.system")
    assert is_code_alone("damaged", "truncated")


AGES = {
    "long ago": (7 * 24 * HOUR_NS, True),
    "just now": (0, False),
    "in the future": (-7 * 24 * HOUR_NS, False),
    "at 0": (None, False),
}


@pytest.mark.parametrize("age", AGES)
@pytest.mark.parametrize("what", ["temporary", "damaged", "code"])
def test_a_time_that_proves_no_age_lets_nothing_go(
    age: str, what: str, recording: Recording, tmp_path: Path
) -> None:
    cache = Path(shutil.copytree(recording("2.13.0", "cold_warm") / "cache", tmp_path / "cache"))
    entry = next(cache.glob("fxgraph/*/*/*"))
    file = {
        "temporary": entry.with_name(".123.140.tmp"),
        "damaged": entry.with_name("z" * 51),
        "code": cache / "aa" / f"c{'a' * 51}.py",
    }[what]
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"\x80\x04")
    now = time.time_ns() + 30 * 24 * HOUR_NS
    before, can_go = AGES[age]
    written = 0 if before is None else now - before
    os.utime(file, ns=(written, written))
    scope = cachescope.read(cache)
    found = removable_rows(scope.tables.entries.rows, scope.orphaned.rows, now)
    # Bytes that are no Python say nothing of the kernels in it.
    assert [row.path for row in found] == [str(file)] * (can_go and what != "code")


def test_what_was_not_needed_when_it_was_read_is_not_said_to_go_later(
    recording: Recording, tmp_path: Path
) -> None:
    cache = Path(shutil.copytree(recording("2.13.0", "cold_warm") / "cache", tmp_path / "cache"))
    temporary = next(cache.glob("fxgraph/*/*/*")).with_name(".123.140.tmp")
    temporary.write_bytes(b"half")
    scope = cachescope.read(cache)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: 4_000_000_000_000_000_000)
        assert scope.removable.empty


def test_a_whole_temporary_of_a_key_stays(recording: Recording, tmp_path: Path) -> None:
    cache = Path(shutil.copytree(recording("2.10.0", "cold_warm") / "cache", tmp_path / "cache"))
    entry = next(cache.glob("fxgraph/*/*/*"))
    entry.rename(entry.with_name(".123.140.tmp"))
    scope = cachescope.read(cache)
    # torch before 2.13 loads it, and with it the AOTAutograd entry and the code.
    assert not removable_rows(
        scope.tables.entries.rows, scope.orphaned.rows, time.time_ns() + 30 * 24 * HOUR_NS
    )
