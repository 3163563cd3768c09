"""torch loads every file of a key's folder, whatever it is called: all of them are entries, and hostile ones are named."""

import os
import shutil
import socket
from pathlib import Path

import pytest
from hostile_pickles import hostile

import cachescope
from tests.conftest import Recording

pytestmark = pytest.mark.slow

KEYS = {"fxgraph": "fxgraph/*/*", "aotautograd": "aotautograd/*"}


@pytest.fixture
def cache(recording: Recording, tmp_path: Path) -> Path:
    return Path(shutil.copytree(recording("2.13.0", "config_flip") / "cache", tmp_path / "cache"))


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize(
    "name", ["entry", "notes.txt", "x.lock", "a.tmp.pid_1", "core", "dir.lock", "f" + "a" * 51]
)
def test_a_sound_entry_of_any_name_is_one(kind: str, name: str, cache: Path) -> None:
    folder = sorted(cache.glob(KEYS[kind]))[0]
    (entry,) = folder.iterdir()
    entry.rename(folder / name)
    scope = cachescope.read(cache)
    (row,) = scope.entries[scope.entries["path"] == str(folder / name)].itertuples()
    assert (row.cache, row.status, row.cache_key) == (kind, "ok", folder.name)
    assert set(scope.orphans["cache"]) <= {"lock"}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("name", ["evil", "x.lock", "README.md", ".hidden", ".1.2.tmp"])
def test_a_hostile_file_of_any_name_is_named_with_what_it_would_run(
    kind: str, name: str, cache: Path, tmp_path: Path
) -> None:
    folder = sorted(cache.glob(KEYS[kind]))[0]
    sentinel = tmp_path / "executed"
    (folder / name).write_bytes(hostile(str(sentinel))["reduce"])
    scope = cachescope.read(cache)
    (row,) = scope.entries[scope.entries["path"] == str(folder / name)].itertuples()
    assert (row.cache, row.status, row.damage) == (kind, "damaged", "hostile: names os.system")
    assert str(folder / name) in set(scope.problems["source"])
    # torch would run it: nobody has proven that it is of no use to anyone.
    assert row.path not in set(scope.removable["path"])
    assert not sentinel.exists()


def test_what_is_no_file_is_never_opened(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = sorted(cache.glob("fxgraph/*/*"))[0]
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "linked pipe").symlink_to("pipe")
    (folder / "linked folder").symlink_to("folder")
    monkeypatch.chdir(folder)  # a socket's name has to be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    scope = cachescope.read(cache)
    found = scope.entries[scope.entries["path"].str.startswith(str(folder))]
    statuses = dict(zip(found["path"].map(os.path.basename), found["status"], strict=True))
    names = ("pipe", "socket", "linked pipe", "linked folder")
    assert {name: statuses[name] for name in names} == dict.fromkeys(names, "foreign")
    assert scope.problems.empty
