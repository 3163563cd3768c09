"""The cache directory that a program under a pre-flight would really use."""

import pytest

from cachescope.capture.preflight.cache_folder import MEANT_FOLDER, OWN_FOLDER, meant_cache_dir


@pytest.mark.parametrize(
    ("named", "meant", "folder"),
    [
        ("/own", "/cache", "/cache"),
        ("/chosen", "/cache", "/chosen"),
        ("/own/rank0", "/cache", "/cache/rank0"),
        ("/own/rank0", "/cache/", "/cache/rank0"),
        ("/own_rank0", "/cache", "/cache_rank0"),
        # What the program takes where the variable is not set, it does not say.
        ("/own/rank0", None, None),
    ],
)
def test_what_a_program_makes_of_the_variable_is_known(
    named: str, meant: str | None, folder: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OWN_FOLDER, "/own")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", named)
    if meant is None:
        monkeypatch.delenv(MEANT_FOLDER, raising=False)
    else:
        monkeypatch.setenv(MEANT_FOLDER, meant)
    assert meant_cache_dir() == folder
