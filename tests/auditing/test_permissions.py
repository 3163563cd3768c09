"""Owners and rights, on real files: who else can write, and who can exchange the whole cache."""

import grp
import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest

import cachescope
from cachescope.auditing import audit, permissions, tree
from cachescope.auditing.permissions import audit_above, audit_rights
from tests.auditing.hostile_entries import FX, SOUND, entry
from tests.nobody import NOBODY, as_nobody

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    entry(tmp_path / "above" / "cache", FX, SOUND)
    return tmp_path / "above" / "cache"


def rules(cache: Path) -> set[str]:
    """Which rules are broken."""
    return set(cachescope.audit(cache)["rule"])


def test_a_cache_of_ours_is_clean(cache: Path) -> None:
    assert rules(cache) == set()


@pytest.mark.parametrize(("mode", "rule"), [
    (0o755, None),
    (0o700, None),
    (0o777, "root-replaceable"),
    (0o1777, "predictable-name"),
    (0o733, "root-replaceable"),
    (0o775, "group-can-write"),
])  # fmt: skip
def test_the_folder_above(cache: Path, mode: int, rule: str | None) -> None:
    os.chmod(cache.parent, mode)
    assert rules(cache.rename(cache.parent / "torchinductor_me")) == ({rule} if rule else set())


def test_a_folder_further_above(cache: Path) -> None:
    os.chmod(cache.parent.parent, 0o777)
    assert rules(cache) == {"root-replaceable"}


def test_a_link_to_a_cache_is_looked_at_on_both_ways(cache: Path, tmp_path: Path) -> None:
    way = tmp_path / "way"
    way.mkdir()
    os.symlink(cache, way / "cache")
    assert rules(way / "cache") == set()
    os.chmod(way, 0o777)
    assert rules(way / "cache") == {"root-replaceable"}
    os.chmod(way, 0o755)
    os.chmod(cache.parent, 0o777)
    assert rules(way / "cache") == {"root-replaceable"}


@as_root
def test_the_sticky_bit_protects_what_is_ours_and_nothing_else(cache: Path) -> None:
    os.chmod(cache.parent, 0o1777)
    assert "root-replaceable" not in rules(cache)
    os.chown(cache, 54_321, 0)
    assert {"root-replaceable", "other-owner"} <= rules(cache)


@as_root
def test_a_folder_above_that_belongs_to_somebody_else(cache: Path) -> None:
    os.chown(cache.parent, 54_321, 54_321)
    assert rules(cache) == {"root-replaceable"}


@as_root
def test_what_belongs_to_somebody_else_is_told_of_each(cache: Path) -> None:
    inner = next(path for path in cache.rglob("*") if path.is_file())
    os.chown(inner, 54_321, -1)
    found = cachescope.audit(cache)
    assert found[["rule", "path", "level"]].values.tolist() == [["other-owner", str(inner), "warning"]]
    assert "54321" in found["message"].iloc[0]


@as_root
def test_what_is_ours_depends_on_who_looks(cache: Path) -> None:
    """The same cache: of nobody's it is nobody's own, and root's is trusted by all."""

    def look() -> list[str]:
        return sorted(rules(cache))

    assert as_nobody(look, below=cache) == []
    for path in (cache, *cache.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    assert as_nobody(look, below=cache.parent) == []
    assert look() == ["other-owner"]


@as_root
def test_what_may_not_be_read_is_said(cache: Path) -> None:
    inner = next(path for path in cache.rglob("*") if path.is_file())

    def look() -> list[list[str]]:
        found = cachescope.audit(cache)
        return [[row.rule, row.path] for row in found.itertuples()]

    os.chmod(inner, 0)
    assert as_nobody(look, below=cache) == [["entry-not-read", str(inner)]]
    os.chmod(inner, 0o644)
    os.chmod(inner.parent, 0)
    assert as_nobody(look, below=cache) == [["entry-not-read", str(inner.parent)]]


@as_root
def test_a_group_of_the_owner_alone_is_no_group(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many systems give every user: ann in ann. With somebody else in it, it is one."""
    ann = pwd.struct_passwd(("ann", "x", 54_321, 54_321, "", "/", "/bin/sh"))
    bob = pwd.struct_passwd(("bob", "x", 54_322, 54_321, "", "/", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda user: ann)
    monkeypatch.setattr(permissions, "me", lambda: 54_321)
    os.chown(cache, 54_321, 54_321)
    os.chmod(cache, 0o775)
    for members, users, expected in (
        ([], [ann], []),
        (["ann"], [ann], []),
        (["bob"], [ann], ["group-can-write"]),
        ([], [ann, bob], ["group-can-write"]),
    ):
        group = grp.struct_group(("ann", "x", 54_321, members))
        monkeypatch.setattr(grp, "getgrgid", lambda number, it=group: it)
        monkeypatch.setattr(pwd, "getpwall", lambda u=users: u)
        permissions.is_own_group.cache_clear()
        assert [one.rule for one in audit_rights(str(cache), os.lstat(cache))] == expected
    permissions.is_own_group.cache_clear()


def test_above_the_root_of_the_file_system_is_nothing() -> None:
    assert list(audit_above("/")) == []


def when_listed(monkeypatch: pytest.MonkeyPatch, act: Callable[[tree.Item], object]) -> None:
    """Something happens to each file and folder between the listing of its folder and the reading."""
    listed = tree.Disk.items

    def items(self: tree.Disk, path: str) -> list[tree.Item]:
        found = listed(self, path)
        for item in found:
            act(item)
        return found

    monkeypatch.setattr(tree.Disk, "items", items)


def test_a_cache_that_vanishes_while_it_is_read(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file and folder is gone by the time it is opened, and the answer is an answer."""
    when_listed(monkeypatch, lambda item: item.is_dir() or os.unlink(item.path))
    assert rules(cache) == set()


def test_a_file_that_becomes_a_pipe_or_link_when_read(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(item: tree.Item) -> None:
        if not item.is_dir():
            os.unlink(item.path)
            os.mkfifo(item.path)

    when_listed(monkeypatch, change)
    assert rules(cache) <= {"special-file"}


def test_a_key_folder_is_told_however_it_is_given(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its own name, with a slash behind it, and from inside."""
    folder = cache / FX
    (folder / "odd").write_bytes(b"x")
    for path in (f"{folder}", f"{folder}/", "."):
        monkeypatch.chdir(folder)
        assert {"entry-odd-name"} <= set(cachescope.audit(path)["rule"]), path


def test_no_more_is_kept_than_anybody_reads(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "_MOST_OF_A_RULE", 3)
    for number in range(10):
        (cache / FX / f"odd{number}").write_bytes(b"x")
    found = cachescope.audit(cache)
    # The others are counted, at the level that they have.
    assert found["rule"].value_counts()["entry-odd-name"] == 3 + 1
    assert found.loc[found["rule"] == "entry-odd-name", "message"].tolist()[-1] == "7 more of these"


@as_root
def test_what_can_be_written_in_a_folder_that_can_be_written_is_told_once(cache: Path) -> None:
    file = next(path for path in cache.rglob("*") if path.is_file())
    for path in (file, *list(file.parents)[: len(file.relative_to(cache).parts)]):
        os.chmod(path, 0o775)
    found = cachescope.audit(cache)
    assert found.loc[found["rule"] == "group-can-write", "path"].tolist() == [str(cache)]
    # All can, where a group could.
    os.chmod(file, 0o666)
    found = cachescope.audit(cache)
    assert found.loc[found["rule"] == "anyone-can-write", "path"].tolist() == [str(file)]
    # In a folder with the sticky bit a group can add files, and replace none.
    os.chmod(file, 0o664)
    os.chmod(file.parent, 0o1775)
    found = cachescope.audit(cache)
    assert str(file) in set(found.loc[found["rule"] == "group-can-write", "path"])


def test_nothing_behind_links_is_listed(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whole, or a part of it, such as another file system that is slow to list.
    elsewhere = cache.rename(tmp_path / "elsewhere")
    cache.mkdir()
    # Of torch, of Triton and of vLLM.
    for name in ("fxgraph", "triton", "0", "torch_aot_compile", "rank_0_0", "0123456789", "a" * 64):
        os.symlink(elsewhere / "fxgraph", cache / name)
    listed = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: (listed.append(os.path.realpath(path)), scandir(path))[1])
    assert "link" in " ".join(cachescope.audit(cache)["rule"])
    assert str(cache) in listed and not [path for path in listed if path.startswith(str(elsewhere))]
