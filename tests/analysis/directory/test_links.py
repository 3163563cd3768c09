"""What belongs together in a directory that real torch filled, and what is left alone when files go."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import cachescope
from tests.conftest import Recording


@pytest.fixture
def cache(recording: Recording, tmp_path: Path) -> Path:
    """A directory of forward and backward graphs under two configs, to take files from."""
    return Path(shutil.copytree(recording("2.13.0", "training") / "cache", tmp_path / "cache"))


def test_every_layer_is_joined_to_the_next(cache: Path) -> None:
    scope = cachescope.read(cache)
    links = scope.links
    entries = scope.entries.set_index("entry")
    aot = links[links["parent_kind"] == "aotautograd"]
    # Two AOTAutograd entries, each with a forward and a backward graph.
    assert len(aot) == 4
    assert set(entries.loc[aot["child"], "cache_key"]) == set(
        entries.loc[entries["cache"] == "fxgraph", "cache_key"]
    )
    code = links[links["parent_kind"] == "fxgraph"]
    assert len(code) == 4
    for link in code.itertuples():
        assert Path(entries.loc[link.child, "path"]).stem == link.child_key
    assert scope.orphans.empty


def test_an_fx_entry_that_is_gone_leaves_its_parent_and_its_code_alone(cache: Path) -> None:
    before = cachescope.read(cache).entries
    gone = before[before["cache"] == "fxgraph"].iloc[0]
    Path(gone["path"]).unlink()
    scope = cachescope.read(cache)
    orphans = scope.orphans
    (parent,) = orphans[orphans["cache"] == "aotautograd"].itertuples()
    assert gone["cache_key"] in parent.reason
    sharing = before[(before["cache"] == "fxgraph") & (before["code_key"] == gone["code_key"])]
    alone = orphans[orphans["cache"] == "code"]
    assert len(alone) == (1 if len(sharing) == 1 else 0)


def test_code_that_is_gone_is_missed_by_its_entries(cache: Path) -> None:
    code = next(cache.glob("??/c*.py"))
    code.unlink()
    orphans = cachescope.read(cache).orphans
    assert set(orphans["cache"]) == {"fxgraph"}
    assert all(code.stem in reason for reason in orphans["reason"])


def test_a_lock_without_what_it_locks_is_told(cache: Path) -> None:
    code = next(cache.glob("??/c*.py"))
    (cache / "locks").mkdir(exist_ok=True)
    (cache / "locks" / f"{code.stem}.lock").touch()
    (cache / "locks" / f"c{'a' * 51}.lock").touch()
    orphans = cachescope.read(cache).orphans
    assert orphans["reason"].tolist() == ["what it locks is not there"]


def test_a_directory_without_files_has_no_links(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "config_flip") / "trace")
    assert scope.links.empty
    assert scope.orphans.empty
