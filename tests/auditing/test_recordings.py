"""Nothing stands against what real torch and vLLM wrote, every recording and every whole directory, but that a compiled model's graphs are not looked at; and what torch would do with the values of a remote cache."""

import base64
import json
import pickle
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from redis_server import missing, redis_server
from remote_recordings import unpacked

import cachescope
from cachescope.auditing.contents import audit_value
from cachescope.readers.remote_cache.stored import Stored
from tests import vllm_recordings
from tests.conftest import DIRECTORIES, Directory, Recording
from tests.hostile_pickles import hostile
from tests.recordings import RECORDED, Recorded
from tests.vllm_recordings import VERSIONS, recorded, recorded_ranks

NAMES = sorted(path.name.removesuffix(".tar.xz") for path in DIRECTORIES.glob("*.tar.xz"))
MODELS = sorted((Path(__file__).parents[1] / "data" / "models").glob("*.tar.xz"))
AUDITED = sorted((Path(__file__).parents[1] / "data" / "audited").glob("*.tar.xz"))
# What the recorder did to entries by hand, or a full disk: torch cannot load them.
DAMAGED = {"aot_entry_truncated", "entry_garbage", "entry_truncated", "fxgraph_full"}


def bad(found: pd.DataFrame) -> str:
    against = found[found["level"].isin(["danger", "warning"])]
    return against[["rule", "path", "offset", "message"]].to_string()


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


FX_KEY = "pt2:fx-graph-v1::f" + "a" * 51 + ":c1"
BUNDLE = "pt2:bundled-autotune-v1::" + "4" * 64 + ":c1"


def found(folder: Path, key: str, value: object) -> set[tuple[str, str]]:
    path = folder / "dump.jsonl"
    path.write_text(json.dumps({"key": key, "value": value}) + "\n")
    rows = cachescope.audit(path)
    assert set(rows["path"]) <= {str(path), f"{path}/{key}"}
    return {(row.rule, row.level) for row in rows.itertuples()}


def pickled(data: bytes) -> dict[str, str]:
    return {"data": base64.b64encode(data).decode()}


def test_what_torch_stored_is_only_unverified_code(tmp_path: Path) -> None:
    rows = cachescope.audit(unpacked("2.13.0", tmp_path) / "remote.jsonl")
    assert set(rows["rule"]) == {"native-code"}
    assert set(rows["cache"]) == {"fxgraph"}


@pytest.mark.parametrize("cache", ["fx-graph-v1", "autograd-experimental", "dynamo-pgo"])
def test_a_value_that_runs_code_is_found(cache: str, tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    rules = found(tmp_path, f"pt2:{cache}::key:c1", pickled(hostile(str(mark))["reduce"]))
    assert ("pickle-dangerous-global", "danger") in rules
    assert not mark.exists()


@pytest.mark.parametrize(
    "name", ["../../../../home/me/.bashrc", "/etc/passwd", "a/b.best_config", "a...best_config"]
)
def test_a_bundle_that_writes_elsewhere_is_found(name: str, tmp_path: Path) -> None:
    """torch makes a path of the name (``codecache.get_path``)."""
    assert found(tmp_path, BUNDLE, {name: {"configs_hash": "1"}}) == {("path-escapes", "danger")}
    assert found(tmp_path, BUNDLE, {"0" * 64 + ".best_config": {"configs_hash": "1"}}) == set()


def test_what_torch_cannot_load_is_a_note(tmp_path: Path) -> None:
    assert found(tmp_path, FX_KEY, {"data": "abc"}) == {("entry-damaged", "note")}
    assert found(tmp_path, FX_KEY, []) == {("entry-damaged", "note")}


def test_too_many_values_are_not_looked_at() -> None:
    value = b'{"data": [' + b"[]," * 300_000 + b"[]]}"
    (finding,) = audit_value("root", Stored(FX_KEY, value))
    assert (finding.rule, "values of JSON" in finding.message) == ("entry-not-read", True)


def test_a_key_that_torch_does_not_make_is_found(tmp_path: Path) -> None:
    assert found(tmp_path, "pt2:other::key:c1", {}) == {("unknown-file", "note")}


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_a_live_server_is_audited() -> None:
    import redis

    with redis_server() as port:
        redis.Redis(port=port).set(FX_KEY, json.dumps(pickled(hostile("never")["reduce"])))
        rows = cachescope.audit(f"redis://127.0.0.1:{port}")
    assert "pickle-dangerous-global" in set(rows["rule"])
    assert rows["path"].str.startswith(f"redis://127.0.0.1:{port}").all()


MESSAGE = "loading it rebuilds graphs; what these call is not looked at"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("recording", [recorded, pytest.param(recorded_ranks, marks=pytest.mark.slow)])
def test_of_a_real_cache_only_models_are_not_known_to_be_safe(
    recording: Callable[[str, Path], vllm_recordings.Recorded], version: str, tmp_path: Path
) -> None:
    cache = recording(version, tmp_path).cache
    found = cachescope.audit(cache)
    assert not found["level"].isin(["danger", "warning"]).any()
    against = found[found["rule"] == "not-followed"]
    assert set(against["message"]) == {MESSAGE}
    assert sorted(against["path"]) == sorted(str(path) for path in cache.rglob("model") if path.is_file())


def model_at(tmp_path: Path, data: bytes, key: str = "a" * 64) -> Path:
    path = tmp_path / "torch_aot_compile" / key / "rank_0_0" / "model"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


def test_the_graphs_of_another_file_are_no_excuse(tmp_path: Path) -> None:
    """The same bytes elsewhere: torch's own packages need no graph pickler."""
    model = next(path for path in recorded(VERSIONS[-1], tmp_path).cache.rglob("model") if path.is_file())
    path = tmp_path / "function.pt"
    path.write_bytes(model.read_bytes())
    assert "danger" in set(cachescope.audit(path)["level"])


@pytest.mark.parametrize("made", ["os.system", "partial of a partial", "another function of a partial"])
def test_a_model_that_runs_a_program_is_a_danger(made: str, tmp_path: Path) -> None:
    parts = {"signature": 0, "original_code": 0, "guards_state": b""}
    start = b"\x80\x04cfunctools\npartial\n"
    inside = {
        "os.system": b"\x80\x04cos\nsystem\n\x8c\x04true\x85R.",
        "partial of a partial": start + b"(cfunctools\npartial\n(cbuiltins\nint\ntRtR)R.",
        # __setstate__ of a partial: the function is the result of a call.
        "another function of a partial": start + b"(cbuiltins\nint\ntR(cbuiltins\nint\n)R)}Ntb)R.",
    }[made]
    data = pickle.dumps(parts | {"compiled_fn": inside}, 4)
    assert "danger" in set(cachescope.audit(model_at(tmp_path, data))["level"])


@pytest.mark.sweep
def test_every_hostile_pickle_is_found_in_a_model_too(tmp_path: Path) -> None:
    for number, (name, data) in enumerate(hostile(str(tmp_path / "ran")).items()):
        whole = pickle.dumps({"signature": 0, "compiled_fn": data}, 4)
        path = model_at(tmp_path / str(number), whole)
        elsewhere = tmp_path / f"{number}.pt"
        elsewhere.write_bytes(whole)
        rules = [set(cachescope.audit(one)["rule"]) - {"not-followed"} for one in (path, elsewhere)]
        assert rules[0] == rules[1] or "persistent id" in name, name
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("path", ["/usr/lib", "../../../../x", "/dev/shm/0123456789/rank_0_0/x", 7])
def test_a_handle_that_leads_outside_is_a_danger(path: object, tmp_path: Path) -> None:
    """The folder may have been moved: what has its names, and is not there, is a note."""
    folder = tmp_path / "torch_compile_cache" / "0123456789" / "rank_0_0" / "backbone"
    folder.mkdir(parents=True)
    own = str(folder / "artifact_compile_range_1_8_subgraph_0")
    moved = own.replace(str(tmp_path), "/gone")
    for leads, level in ((path, {"danger", "note"}), (own, set()), (moved, {"note"})):
        handles = {((1, 8), 0, "inductor_standalone"): ("artifact_compile_range_1_8_subgraph_0", leads)}
        (folder / "vllm_compile_cache.py").write_text(repr(handles))
        assert set(cachescope.audit(tmp_path / "torch_compile_cache")["level"]) == level


def test_a_compiled_function_under_the_name_of_handles_is_audited(tmp_path: Path) -> None:
    path = tmp_path / "vllm_compile_cache.py"
    path.write_bytes(b"PT2AOT\x01" + pickle.dumps({"signature": 0}, 4))
    assert set(cachescope.audit(path)["level"]) == {"unproven"}


def test_a_cut_bytearray_is_damage_and_nothing_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = model_at(tmp_path, pickle.dumps({"signature": 0, "compiled_fn": bytearray(9_000)}, 5)[:3_000])
    assert "danger" not in set(cachescope.audit(path)["level"])
    assert capfd.readouterr().err == ""
