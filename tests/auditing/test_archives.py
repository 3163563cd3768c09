"""Tar files are looked at as what they would unpack to, and never unpacked."""

import io
import os
import pickle
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest

import cachescope
from cachescope.auditing import tree
from cachescope.readers.logs.byte_source import zstd
from tests.auditing.hostile_entries import FX, REDUCED, SENTINEL, SOUND, entry


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    entry(tmp_path / "cache", FX, SOUND)
    return tmp_path / "cache"


def rules(cache: Path, folder: Path, *members: tarfile.TarInfo, owner: int | None = None) -> set[str]:
    """What is said against a tar file of the cache, and of some more in it."""

    def owned(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = member.uid if owner is None else owner
        return member

    path = folder / "x.tar"
    with tarfile.open(path, "w") as archive:
        archive.add(cache, "cache", filter=owned)
        for member in members:
            archive.addfile(member)
    return set(cachescope.audit(path)["rule"])


@pytest.mark.parametrize("packing", ["w", "w:gz", "w:xz", "w:bz2", "zst"])
def test_what_is_in_an_archive_is_found(cache: Path, tmp_path: Path, packing: str) -> None:
    path = entry(cache, FX, pickle.dumps(REDUCED["os.system"]))
    with tarfile.open(tmp_path / "x.tar", "w" if packing == "zst" else packing) as archive:
        archive.add(cache, "some/cache")
    if packing == "zst":
        (tmp_path / "x.tar").write_bytes(zstd.compress((tmp_path / "x.tar").read_bytes()))
    before = sorted(tmp_path.rglob("*"))
    found = cachescope.audit(tmp_path / "x.tar")
    assert sorted(tmp_path.rglob("*")) == before
    assert not os.path.exists(SENTINEL)
    named = found[found["rule"] == "pickle-dangerous-global"]
    assert named["path"].tolist() == [f"{tmp_path / 'x.tar'}/some/cache/{path}"]


@pytest.mark.parametrize("name", ["/etc/passwd", "../../x", "cache/../../x"])
def test_a_name_that_leads_out_of_it(cache: Path, tmp_path: Path, name: str) -> None:
    assert "path-escapes" in rules(cache, tmp_path, tarfile.TarInfo(name))


@pytest.mark.parametrize(
    ("kind", "rule"),
    [(tarfile.SYMTYPE, "link-out"), (tarfile.LNKTYPE, "link-out"), (tarfile.FIFOTYPE, "special-file"),
     (tarfile.CHRTYPE, "special-file")],
)  # fmt: skip
def test_what_is_no_file_in_it(cache: Path, tmp_path: Path, kind: bytes, rule: str) -> None:
    member = tarfile.TarInfo("cache/fxgraph/x")
    member.type, member.linkname = kind, "/etc/passwd"
    assert rule in rules(cache, tmp_path, member)


def test_rights_in_it(cache: Path, tmp_path: Path) -> None:
    os.chmod(cache / "fxgraph", 0o777)
    assert "anyone-can-write" in rules(cache, tmp_path)


def test_one_cut_or_too_big_is_not_clean(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        archive.add(cache, "cache")
    path = tmp_path / "x.tar.gz"
    path.write_bytes(stream.getvalue()[:-40])
    with pytest.raises(cachescope.SourceError):
        cachescope.audit(path)
    path.write_bytes(stream.getvalue())
    monkeypatch.setattr(tree, "_MOST_UNPACKED", 10)
    with pytest.raises(cachescope.SourceError, match="more than is looked at"):
        cachescope.audit(path)


def test_one_that_is_a_tar_and_a_zip_is_not_clean(cache: Path, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden.zip"
    with zipfile.ZipFile(hidden, "w") as archive:
        archive.writestr(f"cache/fxgraph/aa/{FX}/x", pickle.dumps(REDUCED["os.system"]))
    with tarfile.open(tmp_path / "x.tar", "w") as archive_of_tar:
        archive_of_tar.add(cache, "cache")
        archive_of_tar.add(hidden, "z")
    with pytest.raises(cachescope.SourceError, match="may also read as a zip"):
        cachescope.audit(tmp_path / "x.tar")


def test_who_made_it_does_not_matter(cache: Path, tmp_path: Path) -> None:
    """What is unpacked belongs to whoever unpacks it."""

    assert rules(cache, tmp_path, owner=54_321) == set()


@pytest.mark.parametrize("form", ["zip", "tar"])
def test_of_two_of_one_name_nobody_knows_which_is_unpacked(cache: Path, tmp_path: Path, form: str) -> None:
    path = Path(shutil.make_archive(str(tmp_path / "x"), form, cache))
    assert "pickle-odd-program" not in set(cachescope.audit(path)["rule"])
    name = next(file for file in cache.rglob("*") if file.is_file())
    if form == "tar":
        with tarfile.open(path, "a") as archive:
            archive.add(name, name.relative_to(cache))
    else:
        with zipfile.ZipFile(path, "a") as members, pytest.warns(UserWarning, match="Duplicate"):
            members.write(name, name.relative_to(cache))
    assert "pickle-odd-program" in set(cachescope.audit(path)["rule"])
