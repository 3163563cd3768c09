"""Which links the walk of a cache follows, and what becomes a row: links in, rows out, made by hand."""

import os
from pathlib import Path

import pytest
from hostile_pickles import Object, entry_bytes

from cachescope.frames.directory_rows import EntryRow
from cachescope.keys.hashing import entry_name, stored_code_hash
from cachescope.readers.directory import place_of
from cachescope.readers.directory.cache_dir import read_cache_dir, read_shipped_file
from cachescope.readers.directory.place_of import looks_like_cache_dir
from cachescope.readers.directory.places import ROOT
from tests.readers.directory import test_shipped as mega_cache
from tests.readings import read_by

FX = "f" + "a" * 51
FX_2 = "f" + "b" * 51
GRAPH = entry_bytes(Object("torch._inductor.output_code.CompiledFxGraph", {"cache_key": "x"}))
NAME = entry_name(GRAPH)
CODE = stored_code_hash("x = 1")
PY = f"{CODE}.py"
Row = tuple[str, str, str, str | None, bool]


def put(root: Path, *files: str) -> Path:
    for file in files:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(GRAPH if path.name == NAME else b"x = 1" if path.suffix == ".py" else b"")
    return root


def entries(cache: Path) -> list[EntryRow]:
    return list(read_by(read_cache_dir, str(cache)).entries)


def rows(cache: Path) -> list[Row]:
    """Where it is seen, kind, status, key, and whether it is behind a link."""
    return [
        (os.path.relpath(one.path, cache), one.cache, one.status, one.cache_key, one.link is not None)
        for one in entries(cache)
    ]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return put(tmp_path / "cache", f"fxgraph/aa/{FX}/{NAME}")


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk"


OWN: Row = (f"fxgraph/aa/{FX}/{NAME}", "fxgraph", "ok", FX, False)


def added(cache: Path) -> list[Row]:
    found = rows(cache)
    assert OWN in found
    found.remove(OWN)
    return found


def link(at: Path, to: Path) -> None:
    at.parent.mkdir(parents=True, exist_ok=True)
    at.symlink_to(to)


@pytest.mark.parametrize(("at", "files", "wanted"), [
    # Folders by torch's names are followed, and what torch does not write is passed over behind them.
    (f"fxgraph/bb/{FX_2}", [NAME, "deep/notes"], [(f"fxgraph/bb/{FX_2}/{NAME}", "fxgraph", "ok", FX_2, True)]),
    ("fxgraph/bb", [f"{FX_2}/{NAME}", "notes", f"x/{NAME}"], [(f"fxgraph/bb/{FX_2}/{NAME}", "fxgraph", "ok", FX_2, True)]),
    ("ab", [PY, "notes", f"deep/{PY}"], [(f"ab/{PY}", "code", "ok", CODE, True)]),
    ("ab", ["kernel.py"], []),
    # Others, if a file in them is torch's.
    ("cache/mine", ["1" * 32], [("cache/mine/" + "1" * 32, "caching_package", "damaged", "1" * 32, True)]),
    ("cache/mine", ["notes"], [("cache/mine", "other", "foreign", None, False)]),
    # What is neither code nor other is torch's, even if its name holds no key.
    ("cache", ["dcache_dump/imc.save", "dcache_dump/notes"], [("cache/dcache_dump/imc.save", "imc", "damaged", None, True)]),
    # Another cache, wherever its link is.
    ("other", [f"fxgraph/bb/{FX_2}/{NAME}"], [(f"other/fxgraph/bb/{FX_2}/{NAME}", "fxgraph", "ok", FX_2, True)]),
    ("other", [f"ab/{PY}"], [("other", "other", "foreign", None, False)]),
    ("other", ["notes"], [("other", "other", "foreign", None, False)]),
    # But not deep in a place that has none.
    ("triton/0/" + "A" * 52 + "/other", [f"fxgraph/bb/{FX_2}/{NAME}"], [("triton/0/" + "A" * 52 + "/other", "triton", "ok", None, False)]),
])  # fmt: skip
def test_links_to_folders(at: str, files: list[str], wanted: list[Row], cache: Path, disk: Path) -> None:
    link(cache / at, put(disk / "there", *files))
    assert added(cache) == wanted


def test_a_cache_behind_a_link_has_a_root_of_its_own(cache: Path, disk: Path) -> None:
    link(cache / "other", put(disk / "there", f"fxgraph/bb/{FX_2}/{NAME}"))
    link(cache / "fxgraph" / "cc", put(disk / "cc", f"{FX_2}/{NAME}"))
    roots = {os.path.relpath(one.path, cache): os.path.relpath(one.root, cache) for one in entries(cache)}
    other = {f"other/fxgraph/bb/{FX_2}/{NAME}": "other"}
    assert roots == {OWN[0]: ".", f"fxgraph/cc/{FX_2}/{NAME}": ".", **other}
    links = {one.link for one in entries(cache) if one.link is not None}
    assert links == {os.path.realpath(disk / "cc"), os.path.realpath(disk / "there")}


def test_a_link_back_into_the_directory_is_not_followed(cache: Path, tmp_path: Path) -> None:
    link(cache / "again", cache)
    link(cache / "above", tmp_path)
    assert added(cache) == [(name, "other", "foreign", None, False) for name in ("above", "again")]
    # Nor one in a cache that is behind a link itself.
    other = put(tmp_path / "other", f"fxgraph/bb/{FX_2}/{NAME}")
    link(other / "first", cache)
    link(cache / "other", other)
    shown = [row[0] for row in added(cache)]
    assert shown == ["above", "again", f"other/fxgraph/bb/{FX_2}/{NAME}"]


def test_a_folder_is_read_sixteen_times_at_most(cache: Path, disk: Path) -> None:
    put(disk / "there", PY)
    for number in range(18):
        link(cache / f"{chr(ord('a') + number)}a", disk / "there")
    found = entries(cache)
    assert sum(one.status == "ok" and one.cache == "code" for one in found) == 16
    unread = [one for one in found if one.status == "unreadable"]
    assert [one.cache for one in unread] == ["code", "code"]
    target = disk / "there"
    assert {one.damage for one in unread} == {f"a link to {target}, as too many do: not followed"}
    assert [os.path.basename(one.path) for one in unread] == ["qa", "ra"]
    assert place_of._MOST_TIMES == 16


@pytest.mark.parametrize(("at", "to", "wanted"), [
    # A file is read through its link if its name says that it is torch's.
    (f"fxgraph/aa/{FX}/" + "l" * 51, NAME, ("fxgraph", "damaged", FX, True)),
    (f"ab/{PY}", PY, ("code", "ok", CODE, True)),
    ("fxgraph/notes", "notes", ("other", "foreign", None, False)),
    ("ab/kernel.py", PY, ("code", "ok", None, False)),
    # One that leads nowhere: of a name of torch's it is not known what it held.
    (f"fxgraph/aa/{FX}/" + "l" * 51, "absent", ("fxgraph", "unreadable", FX, False)),
    (f"ab/{PY}", "absent", ("code", "unreadable", CODE, False)),
    (f"ab/{CODE}.best_config", "absent", ("best_config", "unreadable", CODE, False)),
    # It has the key of its name, else that of its folder.
    (f"fxgraph/aa/{FX}/entry", "absent", ("fxgraph", "unreadable", FX, False)),
    ("dynamo/code_state_job.pkl", "absent", ("pgo", "unreadable", "job", False)),
    ("aotautograd", "absent", ("aotautograd", "unreadable", None, False)),
    ("triton", "absent", ("triton", "unreadable", None, False)),
    ("notes", "absent", ("other", "foreign", None, False)),
    ("cache/mine", "absent", ("other", "foreign", None, False)),
    ("locks/x.lock", "absent", ("lock", "ok", None, False)),
])  # fmt: skip
def test_links_to_files_and_to_nothing(
    at: str, to: str, wanted: tuple[str, str, str | None, bool], cache: Path, disk: Path
) -> None:
    put(disk, NAME, PY, "notes")
    link(cache / at, disk / to)
    ((shown, *found),) = added(cache)
    assert shown == at
    assert tuple(found) == wanted
    (row,) = (one for one in entries(cache) if one.path.endswith(at))
    if wanted[1] == "unreadable":
        assert row.damage == f"a link to {disk / to}: No such file or directory"
        assert row.size_bytes is None
    elif not wanted[3]:
        assert row.detail == f"a link to {disk / to}"
    else:
        assert row.link == os.path.realpath(disk / to)
        assert row.size_bytes == (disk / to).stat().st_size


def test_a_pipe_under_the_name_of_a_lock_is_none(cache: Path) -> None:
    (cache / "locks").mkdir()
    os.mkfifo(cache / "locks" / "x.lock")
    assert added(cache) == [("locks/x.lock", "other", "foreign", None, False)]


def test_what_is_temporary_stays_so_behind_a_link(cache: Path, disk: Path) -> None:
    triton = cache / "triton" / "0" / ("A" * 52)
    put(triton, "k.json")
    link(triton / "tmp.pid_1_x", put(disk / "there", "k.cubin"))
    put(triton, "tmp.pid_2_x/deep/k.cubin")
    found = {row[0]: row[2] for row in added(cache) if "tmp" in row[0]}
    own = f"triton/0/{'A' * 52}"
    assert found == {f"{own}/tmp.pid_1_x/k.cubin": "ok", f"{own}/tmp.pid_2_x/deep/k.cubin": "temporary"}


def test_a_cache_in_a_cache_has_a_root_of_its_own(cache: Path) -> None:
    put(cache / "mine", f"fxgraph/bb/{FX_2}/{NAME}", f"ab/{PY}")
    put(cache / "part", f"{FX_2}/{NAME}")
    put(cache / "none", "deep/notes")
    found = {os.path.relpath(one.path, cache): one for one in entries(cache)}
    assert {path: (one.cache, os.path.relpath(one.root, cache)) for path, one in found.items()} == {
        OWN[0]: ("fxgraph", "."),
        f"mine/fxgraph/bb/{FX_2}/{NAME}": ("fxgraph", "mine"),
        f"mine/ab/{PY}": ("code", "mine"),
        # Part of a cache, of this one as far as is known.
        f"part/{FX_2}/{NAME}": ("fxgraph", "."),
        "none/deep/notes": ("other", "."),
    }
    assert found[f"part/{FX_2}/{NAME}"].cache_key == FX_2
    in_mine = [f"mine/fxgraph/bb/{FX_2}/{NAME}", f"mine/ab/{PY}"]
    assert list(found) == [OWN[0], *in_mine, "none/deep/notes", f"part/{FX_2}/{NAME}"]


@pytest.mark.parametrize(("path", "wanted"), [(path, wanted) for wanted, paths in [
    (("fxgraph", "ok", FX), [f"fxgraph/aa/{FX}/{NAME}"]),
    (("code", "ok", CODE), [f"ab/{PY}", f"ab/{CODE}.tmp"]),
    (("lock", "ok", CODE), [f"locks/{CODE}.lock"]),
    (("code", "temporary", None), [f"ab/.{PY}.1.2.tmp", f"ab/{PY}.tmp.pid_1_x"]),
    (("fxgraph", "temporary", FX), [f"fxgraph/aa/{FX}/.123.456.tmp"]),
    # A key that was made without a hash.
    (("aotautograd", "damaged", "0.3745401188473625"), ["aotautograd/0.3745401188473625/entry"]),
    (("fxgraph", "foreign", FX), [f"fxgraph/aa/{FX}/.notes"]),
    (("other", "foreign", None), ["fxgraph/README", "fxgraph/elsewhere/deep", "fxgraph/aa/stray", "ab/notes",
     "fxgraph/n\udcffme"]),
    # Of torch's, but no key leads to them.
    (("other", "ok", None), ["aoti_eager/aten/cpu/x.json", "halide-runtime-x86/a.so",
     "torch_cutlass/deep/er"]),
    (("best_config", "damaged", "3" * 64), [f"aa/{'3' * 64}.best_config"]),
    (("memoizer_dump", "damaged", None), ["memoizer_cache.json"]),
    (("precompiled_header", "ok", None), [f"precompiled_headers/{CODE}.h", "precompiled_headers/x/deep.h"]),
    (("precompile", "damaged", "2" * 64), [f"dynamo/{'2' * 64}/entry"]),
    (("pgo", "damaged", "job"), ["dynamo/code_state_job.pkl"]),
    (("code", "ok", CODE), [f"ab/__pycache__/{CODE}.cpython-311.pyc"]),
    (("triton", "ok", "00" * 32), ["triton/0/" + "A" * 52 + "/k.cubin"]),
] for path in paths])  # fmt: skip
def test_each_file_by_its_place_and_name(path: str, wanted: tuple[str, str, str | None], cache: Path) -> None:
    put(cache, path)
    os.utime(cache / path, ns=(10**18, 10**18))
    # What is no UTF-8 is shown as text.
    shown = path.replace("\udcff", "\\xff")
    (found,) = [one for one in entries(cache) if one.path.endswith(shown)]
    assert (found.cache, found.status, found.cache_key) == wanted
    at = (cache / path).stat()
    assert (found.size_bytes, found.modified_time) == (at.st_size, 10**18)
    assert found.changed_time == at.st_ctime_ns


def test_a_single_file_is_read_by_itself(cache: Path) -> None:
    put(cache, f"ab/{PY}", f"ab/.{PY}.1.2.tmp")
    for path, wanted in ((OWN[0], ("fxgraph", FX)), (f"ab/{PY}", ("code", CODE))):
        (one,) = entries(cache / path)
        assert (one.cache, one.cache_key, one.status) == (*wanted, "ok")
        assert (one.path, one.root) == (str(cache / path), os.path.dirname(cache / path))
        assert one.size_bytes == (cache / path).stat().st_size
        assert one.modified_time == (cache / path).stat().st_mtime_ns
    assert entries(cache / "absent") == []


class Item:
    """An entry of a folder that fails where the system asks about it."""

    def __init__(self, item: os.DirEntry[str], error: OSError) -> None:
        self.name, self.path = item.name, item.path
        self._error = error

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        raise self._error


@pytest.mark.parametrize(("error", "why"), [
    (PermissionError(13, "Permission denied"), "Permission denied"),
    (OSError("no number and no name"), "no number and no name"),
    (FileNotFoundError(2, "No such file or directory"), None),
], ids=["refused", "unnamed", "gone"])  # fmt: skip
def test_a_file_in_a_folder_that_may_only_be_listed(
    error: OSError, why: str | None, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(cache, f"ab/{PY}", "ab/notes", f"fxgraph/bb/{FX_2}/{NAME}")
    refused = {f"ab/{PY}", "ab/notes", f"fxgraph/bb/{FX_2}/{NAME}"}
    scandir = os.scandir

    def listed(path: str) -> list[object]:
        with scandir(path) as items:
            found = list(items)
        return [Item(one, error) if os.path.relpath(one.path, cache) in refused else one for one in found]

    monkeypatch.setattr("cachescope.readers.directory.cache_dir.place_of", lambda path: ROOT)
    monkeypatch.setattr("cachescope.readers.directory.cache_dir.os.scandir", listed)
    unread = {
        (f"fxgraph/bb/{FX_2}/{NAME}", "fxgraph", "unreadable", FX_2, False),
        (f"ab/{PY}", "code", "unreadable", CODE, False),
        ("ab/notes", "other", "unreadable", None, False),
    }
    assert set(added(cache)) == (unread if why is not None else set())
    found = [one for one in entries(cache) if one.status == "unreadable"]
    assert {(one.damage, one.root, one.size_bytes) for one in found} == (
        {(why, str(cache), None)} if why is not None else set()
    )


def test_a_folder_that_may_not_be_listed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(cache, f"fxgraph/bb/{FX_2}/{NAME}")
    scandir = os.scandir
    for error, why in (
        (PermissionError(13, "Permission denied"), "Permission denied"),
        (OSError("odd"), "odd"),
    ):

        def listed(path: str, error: OSError = error) -> object:
            if path.endswith(FX_2):
                raise error
            return scandir(path)

        monkeypatch.setattr("cachescope.readers.directory.cache_dir.os.scandir", listed)
        assert added(cache) == [(f"fxgraph/bb/{FX_2}", "fxgraph", "unreadable", FX_2, False)]
        assert [one.damage for one in entries(cache) if one.status == "unreadable"] == [why]


@pytest.mark.parametrize(("path", "wanted"), [
    (f"fxgraph/aa/{FX}", True),
    (f"fxgraph/aa/{FX}/absent", False),
    ("fxgraph/absent", False),
    ("absent", False),
])  # fmt: skip
def test_only_what_is_there_is_of_a_cache(path: str, wanted: bool, cache: Path) -> None:
    assert looks_like_cache_dir(str(cache / path)) is wanted
    assert looks_like_cache_dir(str(cache))


@pytest.mark.parametrize("at", ["", "fxgraph", "fxgraph/aa", f"fxgraph/aa/{FX}"])
def test_a_folder_of_a_cache_is_read_by_itself(at: str, cache: Path) -> None:
    (one,) = entries(cache / at)
    assert (one.root, one.cache_key) == (str(cache / at), FX)
    assert (one.cache, one.status) == ("fxgraph", "ok")


def test_folders_by_themselves_that_hold_no_entry(cache: Path) -> None:
    put(cache, f"ab/{PY}", "ab/kernel.so", f"triton/0/{'A' * 52}/k.cubin", "locks/x.lock")
    for at, kinds in (
        ("ab", [("code", CODE), ("code", None)]),
        (f"triton/0/{'A' * 52}", [("triton", "00" * 32)]),
        ("triton/0", [("triton", "00" * 32)]),
    ):
        assert [(one.cache, one.cache_key) for one in entries(cache / at)] == kinds


def test_paths_are_as_they_were_given(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cache / "fxgraph" / "aa" / FX)
    for path in (".", NAME):
        reading = read_by(read_cache_dir, path)
        (one,) = reading.entries
        assert (one.root, one.cache_key, one.status) == (".", FX, "ok")
        assert os.path.basename(one.path) == NAME
    data = mega_cache.summed(mega_cache.body(("pgo", [])))
    (cache / "m.bin").write_bytes(data)
    monkeypatch.chdir(cache)
    for path, root in (("m.bin", "."), (str(cache / "m.bin"), str(cache))):
        reading = read_by(read_shipped_file, path)
        (one,) = reading.entries
        assert (one.path, one.root, one.cache, one.status) == (path, root, "mega_cache", "ok")
        assert (one.size_bytes, one.modified_time) == (len(data), os.stat("m.bin").st_mtime_ns)
