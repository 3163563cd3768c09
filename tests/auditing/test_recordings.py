"""Nothing stands against what real torch wrote: every recording and every whole directory, of every version."""

import shutil
import tarfile
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from tests.conftest import DIRECTORIES, Directory, Recording
from tests.recordings import RECORDED, Recorded

NAMES = sorted(path.name.removesuffix(".tar.xz") for path in DIRECTORIES.glob("*.tar.xz"))
MODELS = sorted((Path(__file__).parents[1] / "data" / "models").glob("*.tar.xz"))
AUDITED = sorted((Path(__file__).parents[1] / "data" / "audited").glob("*.tar.xz"))
# What the recorder did to entries by hand, or a full disk: torch cannot load them.
DAMAGED = {"aot_entry_truncated", "entry_garbage", "entry_truncated", "fxgraph_full"}


def bad(found: pd.DataFrame) -> str:
    return found.loc[
        found["level"].isin(["danger", "warning"]), ["rule", "path", "offset", "message"]
    ].to_string()


NOTHING = bad(pd.DataFrame({name: [] for name in ("level", "rule", "path", "offset", "message")}))


@pytest.mark.parametrize("version", ["2.6.0", "2.10.0", "2.13.0", "2.15.0"])
def test_nothing_stands_against_the_training_of_a_version(version: str, recording: Recording) -> None:
    found = cachescope.audit(recording(version, "training"))
    assert bad(found) == NOTHING
    # The same folder was looked at, not passed by.
    assert "native-code" in set(found["rule"])


def check_nothing_stands_against_it(recorded: Recorded) -> None:
    found = cachescope.audit(recorded.folder)
    assert bad(found) == NOTHING
    assert ("entry-damaged" in set(found["rule"])) == (recorded.name in DAMAGED)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_nothing_stands_against_a_whole_directory(name: str, directory: Directory) -> None:
    assert bad(cachescope.audit(directory(name))) == NOTHING


@pytest.mark.slow
@pytest.mark.parametrize("archive", AUDITED, ids=lambda path: path.name)
def test_nothing_stands_against_versions_without_recordings(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as members:
        members.extractall(tmp_path, filter="data")
    bundles = [tmp_path / side / "mega_cache.bin" for side in ("plain", "bundled")]
    for source in (tmp_path, archive, *bundles):
        found = cachescope.audit(source)
        assert bad(found) == NOTHING
        assert "native-code" in set(found["rule"])


def test_six_versions_of_torch_are_audited() -> None:
    versions = {version for version, _ in RECORDED} | {path.name.removesuffix(".tar.xz") for path in AUDITED}
    assert versions == {"2.6.0", "2.8.0", "2.10.0", "2.11.0", "2.13.0", "2.15.0"}


@pytest.mark.slow
@pytest.mark.parametrize("archive", MODELS, ids=lambda path: path.name)
def test_nothing_stands_against_an_archive_that_is_not_unpacked(archive: Path) -> None:
    found = cachescope.audit(archive)
    assert bad(found) == NOTHING


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.6.0", "2.10.0", "2.13.0", "2.15.0"])
def test_one_changed_byte_of_an_entry_is_found(version: str, recording: Recording, tmp_path: Path) -> None:
    """Wherever it is changed, an entry that is still whole does not hash to its name; 2.6 names it by no hash."""
    shutil.copytree(recording(version, "cold_warm") / "cache", tmp_path / "cache")
    entries = [path for path in (tmp_path / "cache" / "fxgraph").rglob("*") if path.is_file()]
    assert entries
    for path in entries:
        data = bytearray(path.read_bytes())
        at = data.index(b"source_code") + 4_000  # within a long text
        data[at] = ord("q") if data[at] != ord("q") else ord("r")
        path.write_bytes(data)
    found = cachescope.audit(tmp_path / "cache")
    assert {str(path) for path in entries} <= set(found.loc[found["rule"] == "entry-misnamed", "path"])
