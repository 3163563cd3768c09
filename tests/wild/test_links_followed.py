"""Links are followed as torch follows them, files of any name are entries as they are for torch, and nothing else on the machine is walked."""

import os
import shutil
import socket
from collections import Counter
from pathlib import Path

import pytest
from hostile_pickles import hostile

import cachescope
from cachescope.readers.directory.place_of import looks_like_cache_dir
from tests.conftest import Recording

pytestmark = pytest.mark.slow


@pytest.fixture
def cache(recording: Recording, tmp_path: Path) -> Path:
    """A real cache: two FX entries, and two AOTAutograd entries that need them."""
    return Path(shutil.copytree(recording("2.13.0", "config_flip") / "cache", tmp_path / "cache"))


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    real, seen = os.scandir, []

    def scandir(path: str) -> object:
        if isinstance(path, str):
            seen.append(os.path.realpath(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    return seen


def kinds(cache: Path) -> Counter[tuple[str, str]]:
    entries = cachescope.read(cache).entries
    graphs = entries[entries["cache"].isin(["fxgraph", "aotautograd", "code"])]
    return Counter(zip(graphs["cache"], graphs["status"], strict=True))


def move(path: Path, there: Path) -> None:
    there.parent.mkdir(exist_ok=True)
    shutil.move(path, there)
    path.symlink_to(there)


@pytest.mark.parametrize(
    "what", ["fxgraph", "aotautograd", "fxgraph/*", "fxgraph/*/*", "aotautograd/*", "??"]
)
def test_a_linked_folder_of_torch_is_read_as_if_it_lay_there(what: str, cache: Path, tmp_path: Path) -> None:
    before = cachescope.read(cache)
    for number, path in enumerate(sorted(cache.glob(what))):
        move(path, tmp_path / "disk" / str(number))
    after = cachescope.read(cache)
    assert after.entries["path"].tolist() == before.entries["path"].tolist()
    assert after.entries["status"].tolist() == before.entries["status"].tolist()
    assert after.links["child_key"].tolist() == before.links["child_key"].tolist()
    assert after.orphans.empty
    behind = after.entries[after.entries["link"].notna()]
    assert not behind.empty
    assert all(link.startswith(str(tmp_path / "disk")) for link in behind["link"])


def test_a_cache_of_links_alone_is_known_as_one(cache: Path, tmp_path: Path) -> None:
    before = kinds(cache)
    for path in sorted(cache.iterdir()):
        move(path, tmp_path / "disk" / path.name)
    assert looks_like_cache_dir(str(cache))
    assert kinds(cache) == before


@pytest.mark.parametrize(
    "name", ["stray", "aa", "fxgraph", "aotautograd", "triton", "cache", "dynamo", "locks"]
)
def test_a_link_to_a_machine_does_not_walk_it(
    name: str, cache: Path, tmp_path: Path, scanned: list[str]
) -> None:
    machine = tmp_path / "machine"
    for folder in ("home/me/thesis", "etc/ab/cd", "cache/deep/er", "usr/fxgraph/zz"):
        (machine / folder).mkdir(parents=True)
        (machine / folder / "secret.json").write_text("{}")
    if (cache / name).exists():
        shutil.rmtree(cache / name)
    (cache / name).symlink_to(machine)
    assert not any("secret" in path for path in cachescope.read(cache).entries["path"])
    # The folder that a link of this name leads to is listed, as torch does; a few names in it are tried.
    beyond = {path for path in scanned if path.startswith(str(machine))} - {str(machine)}
    inside = ("home", "etc", "usr", "cache", "fxgraph", "aotautograd")
    assert beyond <= {str(machine / inner) for inner in inside}


def test_copies_that_are_one_file_save_nothing(cache: Path) -> None:
    entry = next(cache.glob("fxgraph/*/*/*"))
    entry.with_name("again").symlink_to(entry)
    assert kinds(cache)["fxgraph", "ok"] == 3
    assert cachescope.read(cache).duplicates.empty


KEYS = {"fxgraph": "fxgraph/*/*", "aotautograd": "aotautograd/*"}


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
