"""What can go: damaged, left behind, alone. A second torch process would not miss it, and locks stay."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import cachescope
from cachescope.analysis.removable import removable_frame

Recording = Callable[[str, str], Path]
HOUR_NS = 3_600_000_000_000


def test_a_damaged_entry_can_go_and_the_sound_one_beside_it_stays(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "entry_truncated") / "cache")
    (removable,) = scope.removable.itertuples()
    assert scope.entries.set_index("entry").loc[removable.entry, "status"] == "damaged"
    assert removable.reason.startswith("damaged: truncated")


def test_an_entry_without_its_graph_can_go_and_so_can_code_that_no_entry_names(
    recording: Recording, tmp_path: Path
) -> None:
    cache = Path(shutil.copytree(recording("2.13.0", "config_flip") / "cache", tmp_path / "cache"))
    shutil.rmtree(cache / "fxgraph")
    scope = cachescope.read(cache)
    removable = scope.removable
    assert removable["cache"].tolist() == ["aotautograd", "aotautograd"]
    # Without FX entries nothing tells which code is in use.
    assert set(scope.entries["cache"]) >= {"code"}


def test_a_temporary_file_can_go_when_it_is_old(recording: Recording, tmp_path: Path) -> None:
    cache = Path(shutil.copytree(recording("2.13.0", "cold_warm") / "cache", tmp_path / "cache"))
    entry = next(cache.glob("fxgraph/*/*/*"))
    temporary = entry.with_name(".123.140.tmp")
    temporary.write_bytes(b"half")
    entries = cachescope.read(cache).entries
    written = temporary.stat().st_mtime_ns
    assert removable_frame(entries, written + HOUR_NS // 2).empty
    (removable,) = removable_frame(entries, written + 2 * HOUR_NS).itertuples()
    assert Path(removable.path) == temporary


def test_a_sound_directory_has_nothing_to_remove(recording: Recording) -> None:
    assert cachescope.read(recording("2.13.0", "training") / "cache").removable.empty


def test_code_that_was_just_written_stays(recording: Recording, tmp_path: Path) -> None:
    cache = Path(shutil.copytree(recording("2.13.0", "cold_warm") / "cache", tmp_path / "cache"))
    code = next(cache.glob("??/c*.py"))
    fresh = cache / "aa" / f"c{'a' * 51}.py"
    fresh.parent.mkdir()
    fresh.write_bytes(code.read_bytes() + b"\n# other\n")
    entries = cachescope.read(cache).entries
    written = fresh.stat().st_mtime_ns
    assert removable_frame(entries, written + HOUR_NS // 2).empty
    assert removable_frame(entries, written + 2 * HOUR_NS)["cache"].tolist() == ["code"]
