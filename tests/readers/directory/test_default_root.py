"""Where torch keeps its cache by default, held against torch's own function."""

from __future__ import annotations

import getpass
from pathlib import Path
from types import ModuleType

import pytest

from cachescope.readers.directory.default_root import default_root


@pytest.mark.parametrize("user", ["ann", 'a/n:n*"x"', None])
def test_it_is_torchs_own_and_is_not_made(
    user: str | None, codecache: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    def name() -> str:
        if user is None:
            raise OSError("no such account")
        return user

    monkeypatch.setattr(getpass, "getuser", name)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    assert default_root() == default_cache_dir()
    assert list(tmp_path.iterdir()) == []


def test_the_variable_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "relative")
    assert default_root() == str(tmp_path / "relative")
    assert list(tmp_path.iterdir()) == []
