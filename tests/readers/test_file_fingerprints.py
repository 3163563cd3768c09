"""What shows that sources have changed: files in, sizes and times out."""

import os
from pathlib import Path

import pytest

from cachescope.readers.file_fingerprints import file_stamps, stamps


def put(folder: Path, *names: str) -> dict[str, Path]:
    """Files, each of another size and time."""
    made = {}
    for at, name in enumerate(names, 1):
        path = made[name] = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * at)
        os.utime(path, ns=(0, at * 10**9))
    return made


@pytest.mark.parametrize(("sources", "wanted"), [
    (["a.log"], {"a.log": 1}),
    (["a.log", "b.log", "a.log"], {"a.log": 1, "b.log": 2}),
    (["*.log"], {"a.log": 1, "b.log": 2}),
    # Of a folder every file, wherever it is.
    (["sub"], {"sub/c.log": 3, "sub/deep/d": 4}),
    (["sub/*"], {"sub/c.log": 3, "sub/deep/d": 4}),
    (["**/*.log"], {"a.log": 1, "b.log": 2, "sub/c.log": 3}),
    (["absent", "absent/*", "b.log"], {"b.log": 2}),
    (["[x].txt"], {"[x].txt": 5}),
    ([], {}),
])  # fmt: skip
def test_every_file_of_the_sources_has_a_size_and_a_time(
    sources: list[str], wanted: dict[str, int], tmp_path: Path
) -> None:
    put(tmp_path, "a.log", "b.log", "sub/c.log", "sub/deep/d", "[x].txt")
    found = stamps(str(tmp_path / source) for source in sources)
    files = {path: stamp for path, stamp in found.items() if not os.path.isdir(path)}
    assert files == {str(tmp_path / name): (at, at * 10**9) for name, at in wanted.items()}


def test_a_folder_changes_with_what_is_in_it(tmp_path: Path) -> None:
    put(tmp_path, "sub/a")
    before = stamps([str(tmp_path / "sub")])
    assert stamps([str(tmp_path / "sub")]) == before
    put(tmp_path, "other", "sub/b")
    assert stamps([str(tmp_path / "sub")]) != before


def test_links_are_as_what_they_lead_to(tmp_path: Path) -> None:
    put(tmp_path, "there/a")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "link").symlink_to(tmp_path / "there" / "a")
    (tmp_path / "sub" / "nowhere").symlink_to(tmp_path / "absent")
    found = stamps([str(tmp_path / "sub")])
    assert found[str(tmp_path / "sub" / "link")] == (1, 10**9)
    assert str(tmp_path / "sub" / "nowhere") not in found
    # A link to a folder is no folder: it may lead back.
    (tmp_path / "sub" / "again").symlink_to(tmp_path / "sub")
    assert len(stamps([str(tmp_path / "sub")])) == len(found) + 1


def test_files_by_their_very_names(tmp_path: Path) -> None:
    put(tmp_path, "a", "b")
    names = [str(tmp_path / name) for name in ("a", "*", "absent")]
    assert file_stamps([*names, "a\0b"]) == {names[0]: (1, 10**9)}
