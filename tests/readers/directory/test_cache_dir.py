import gc
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile_pickles import Object, entry_bytes

from cachescope.errors import RecordError
from cachescope.keys.hashing import entry_name
from cachescope.readers.directory.cache_dir import CacheWalk, read_cache_dir
from cachescope.readers.directory.place_of import looks_like_cache_dir
from cachescope.readers.directory.places import ROOT
from cachescope.readers.reading import Reading
from tests.conftest import Recording

FX_KEY = "f" + "a" * 51
SOUND = entry_bytes(Object("torch._inductor.output_code.CompiledFxGraph", {"cache_key": "x"}))


def read(path: Path, *, strict: bool = False) -> Reading:
    reading = Reading(strict=strict)
    read_cache_dir(str(path), reading)
    return reading


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A hand-made cache of one sound entry."""
    folder = tmp_path / "cache" / "fxgraph" / "aa" / FX_KEY
    folder.mkdir(parents=True)
    (folder / entry_name(SOUND)).write_bytes(SOUND)
    return tmp_path / "cache"


def key_folder(cache: Path) -> Path:
    return cache / "fxgraph" / "aa" / FX_KEY


@pytest.mark.parametrize("version", ["2.10.0", "2.13.0", "2.15.0"])
def test_a_real_cache_is_read_whole_from_every_level(version: str, recording: Recording) -> None:
    cache = recording(version, "cold_warm") / "cache"
    whole = read(cache, strict=True)
    parts: Counter[tuple[str, str | None]] = Counter()
    folders = sorted({*(cache / "fxgraph").glob("*/*"), *(cache / "aotautograd").iterdir()})
    for folder in folders:
        assert looks_like_cache_dir(str(folder))
        for file in folder.iterdir():
            assert looks_like_cache_dir(str(file))
            parts.update((entry.cache, entry.cache_key) for entry in read(file).entries)
        assert len(read(folder).entries) == len(list(folder.iterdir()))
    for file in cache.glob("??/*"):
        parts.update((entry.cache, entry.cache_key) for entry in read(file).entries)
    assert parts == Counter((entry.cache, entry.cache_key) for entry in whole.entries)
    for name in ("fxgraph", "aotautograd"):
        assert looks_like_cache_dir(str(cache / name))
        assert len(read(cache / name).entries) == sum(entry.cache == name for entry in whole.entries)
    assert all(entry.size_bytes and entry.modified_time for entry in whole.entries)


@pytest.mark.parametrize(("scenario", "damage"), [
    ("entry_truncated", "truncated"),
    ("aot_entry_truncated", "truncated"),
    ("entry_garbage", "not a pickle: no opcode 0xff"),
])  # fmt: skip
def test_a_damaged_real_entry_says_why(scenario: str, damage: str, recording: Recording) -> None:
    reading = read(recording("2.13.0", scenario) / "cache")
    damaged = [entry for entry in reading.entries if entry.status == "damaged"]
    assert [entry.damage for entry in damaged] == [f"{damage}; content hash differs from the name"]
    assert [(one.kind, one.source) for one in reading.problems] == [("damaged_entry", damaged[0].path)]
    assert any(entry.status == "ok" and entry.cache == damaged[0].cache for entry in reading.entries)


def test_strict_raises_at_the_first_damaged_entry(cache: Path) -> None:
    (key_folder(cache) / ("q" * 51)).write_bytes(b"")
    with pytest.raises(RecordError, match="empty file"):
        read(cache, strict=True)


def test_a_cache_root_that_is_a_link_is_read(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(cache)
    assert len(read(tmp_path / "link").entries) == 1


Change = Callable[[Path], None]


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


def listed(cache: Path) -> tuple[CacheWalk, Path]:
    """The walk that has listed the one entry of the cache, and its file."""
    walk = CacheWalk(str(cache), Reading())
    walk.scan()
    assert len(walk.files) == 1
    return walk, next(key_folder(cache).iterdir())


@pytest.mark.parametrize("change", [Path.unlink, replace_by_folder, replace_by_pipe, replace_by_link])
def test_a_file_that_is_gone_after_it_was_listed_is_passed_over(cache: Path, change: Change) -> None:
    walk, file = listed(cache)
    change(file)
    assert walk.read(0) is None
    assert not walk.reading.problems


def test_a_file_that_grew_after_it_was_listed_has_the_size_that_was_read(cache: Path) -> None:
    walk, file = listed(cache)
    data = SOUND.replace(b"\x01x", b"\x02xx")
    file.write_bytes(data)
    entry = walk.read(0)
    assert entry.size_bytes == len(data) == len(SOUND) + 1


def test_a_folder_gone_since_its_listing_is_passed_over(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.scandir

    def vanish(path: str) -> object:
        if Path(path) == key_folder(cache):
            key_folder(cache).rename(cache.parent / "gone")
        return real(path)

    walk = CacheWalk(str(cache), Reading())
    monkeypatch.setattr("cachescope.readers.directory.cache_dir.place_of", lambda path: ROOT)
    monkeypatch.setattr(os, "scandir", vanish)
    walk.scan()
    assert not walk.files
    assert not walk.reading.problems


def test_what_may_not_be_read_is_a_problem(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Not by chmod: the tests may run as root, who may read everything.
    def refuse(path: object, *_: object, **__: object) -> object:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("builtins.open", refuse)
    (entry,) = read(cache).entries
    assert (entry.status, entry.damage) == ("unreadable", "Permission denied")
    monkeypatch.undo()
    monkeypatch.setattr(os, "scandir", refuse)
    reading = read(cache)
    (folder,) = reading.entries
    assert (folder.path, folder.status, folder.damage) == (str(cache), "unreadable", "Permission denied")
    assert {problem.kind for problem in reading.problems} == {"unreadable"}


def test_the_garbage_collector_is_left_as_it_was(cache: Path) -> None:
    assert gc.isenabled()
    read(cache)
    assert gc.isenabled()
    gc.disable()
    try:
        read(cache)
        assert not gc.isenabled()
    finally:
        gc.enable()
