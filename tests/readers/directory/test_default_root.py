"""Where torch keeps its cache by default, held against torch's own function."""

import getpass
import os
from pathlib import Path
from types import ModuleType

import pytest

from cachescope.readers.directory.default_root import default_root


def test_the_variable_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "relative")
    assert default_root() == str(tmp_path / "relative")
    assert list(tmp_path.iterdir()) == []


def as_user(user: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def name() -> str:
        if user is None:
            raise OSError("no such account")
        return user

    monkeypatch.setattr(getpass, "getuser", name)
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)


@pytest.mark.parametrize("user", ["ann", 'a/n:n*"x"', None])
def test_it_is_torchs_own_and_is_not_made(
    user: str | None, codecache: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    as_user(user, monkeypatch)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert default_root() == default_cache_dir()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("user", "uid", "wanted"), [
    ("ann", 7, "torchinductor_ann"),
    ('a/n:n*"x"', 7, "torchinductor_a_n_n__x_"),
    (None, 7, "torchinductor_uid_7"),
    (None, None, "torchinductor_unknown_user"),
])  # fmt: skip
def test_it_is_named_by_the_user(
    user: str | None, uid: int | None, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As torch's function above names it; whoever has no name is a number, where the system has one."""
    as_user(user, monkeypatch)
    if uid is None:
        monkeypatch.delattr(os, "getuid")
    else:
        monkeypatch.setattr(os, "getuid", lambda: uid)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert default_root() == str(tmp_path / wanted)
