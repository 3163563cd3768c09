"""Some of the sessions of real models, as they were recorded: what `make models` runs, without the models."""

import tarfile
from pathlib import Path

import pytest
from models.holding import WAYS, hold

ARCHIVES = sorted((Path(__file__).parents[1] / "data" / "models").glob("*.tar.xz"))


@pytest.mark.slow
@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def test_lookups_of_recorded_models_are_told_as_they_were(archive: Path, tmp_path: Path) -> None:
    folder = tmp_path / archive.name.removesuffix(".tar.xz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    held = [hold(folder, way) for way in WAYS]
    assert all(one.lookups for one in held)
    assert [f"{one.way}: {fault}" for one in held for fault in one.faults] == []
