"""The cache directory that a program under a pre-flight would really use."""

import pytest

from cachescope.capture.preflight import cache_folder
from cachescope.capture.preflight.cache_folder import INDUCTOR_DIR, OWN_FOLDER, meant_cache_dir


@pytest.mark.parametrize(("named", "meant", "folder"), [
    ("/own", "/cache", "/cache"),
    ("/chosen", "/cache", "/chosen"),
    ("/own/rank0", "/cache", "/cache/rank0"),
    ("/own/rank0", "/cache/", "/cache/rank0"),
    ("/own_rank0", "/cache", "/cache_rank0"),
    # What the program takes where the variable is not set, it does not say.
    ("/own/rank0", None, None),
])  # fmt: skip
def test_what_a_program_makes_of_the_variable_is_known(
    named: str, meant: str | None, folder: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(cache_folder.ours, OWN_FOLDER, "/own")
    monkeypatch.setenv(INDUCTOR_DIR, named)
    if meant is not None:
        monkeypatch.setitem(cache_folder.meant, INDUCTOR_DIR, meant)
    assert meant_cache_dir() == folder
