"""Some of the sessions of real models, as they were recorded: what `make models` runs, without the models."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from models.holding import WAYS, hold

ARCHIVES = sorted((Path(__file__).parents[1] / "data" / "models").glob("*.tar.xz"))
RESTARTED = "an analysis that starts over leaves a key that was looked up and never stored"
COMPILE_IDS = (
    "after torch._dynamo.reset() compile ids begin again, and misses of two models are taken for one compile"
)
WRONG_SO_FAR = {
    "small_restart": RESTARTED,
    **dict.fromkeys(("small_inference", "small_breaks"), COMPILE_IDS),
}


def archive_of(path: Path) -> object:
    name = path.name.removesuffix(".tar.xz")
    wrong = WRONG_SO_FAR.get(name)
    marks = [pytest.mark.xfail(strict=True, reason=wrong)] if wrong else []
    return pytest.param(path, id=name, marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize("archive", [archive_of(path) for path in ARCHIVES])
def test_lookups_of_recorded_models_are_told_as_they_were(archive: Path, tmp_path: Path) -> None:
    folder = tmp_path / archive.name.removesuffix(".tar.xz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    held = [hold(folder, way) for way in WAYS]
    assert all(one.lookups for one in held)
    assert [f"{one.way}: {fault}" for one in held for fault in one.faults] == []
