"""False hits: none in what torch really did, and one row with its evidence for each made-up case.

Nothing real is wrong in the recordings, so the wrong cases are real files with a few bytes changed.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from cachescope.analysis.contexts.outside_keys import device_model
from cachescope.columns import pandas_type, records
from cachescope.frames.described import FRAMES
from cachescope.keys.hashing import entry_name
from cachescope.rows import columns_of
from tests import made
from tests.conftest import Recording
from tests.readings import read_once
from tests.recordings import RECORDED, Recorded

H100 = "_CudaDeviceProperties(name='NVIDIA H100 80GB HBM3', major=9, minor=0, total_memory=81079MB, multi_processor_count=132, uuid={uuid}, pci_bus_id={bus}, L2_cache_size=50MB)"
A100 = "_CudaDeviceProperties(name='NVIDIA A100-SXM4-80GB', major=8, minor=0, total_memory=81152MB, multi_processor_count=108, uuid=1-1, L2_cache_size=40MB)"


def beside(source: Path, target: Path, find: bytes, put: bytes) -> Path:
    """Another entry under the key of a real one: the same bytes with one place changed, under the name they hash to."""
    (path,) = [path for path in source.iterdir() if path.is_file()]
    data = path.read_bytes()
    assert len(find) == len(put) and find in data
    changed = data.replace(find, put)
    target.mkdir(parents=True, exist_ok=True)
    new = target / entry_name(changed)
    new.write_bytes(changed)
    return new


@pytest.fixture
def cache(recording: Recording, tmp_path: Path) -> Path:
    return Path(shutil.copytree(recording("2.13.0", "cold_warm") / "cache", tmp_path / "cache"))


def folder_of(cache: Path, kind: str) -> Path:
    (folder,) = [path for path in (cache / kind).rglob("*") if path.is_dir() and len(path.name) == 52]
    return folder


def found_in(*sources: Path) -> list[dict[str, object]]:
    return records(cachescope.read(*sources).false_hits)


def check_there_is_no_false_hit(recorded: Recorded) -> None:
    # Among them guard variants, four ranks that raced for one key, and one key in two directories.
    assert records(read_once(recorded.folder).false_hits) == []


@pytest.mark.sweep
@pytest.mark.parametrize("version", sorted({version for version, _ in RECORDED}))
def test_all_recordings_of_a_version_together_have_none(version: str, recording: Recording) -> None:
    # In 2.6 every directory has code of its own under equal keys: it includes a header by its path.
    folders = [recording(*recorded) for recorded in RECORDED if recorded[0] == version]
    scope = cachescope.read(*folders)
    sound = scope.entries[(scope.entries["cache"] == "fxgraph") & (scope.entries["status"] == "ok")]
    codes = sound.fillna({"guards_expr": ""}).groupby(["cache_key", "guards_expr"])["code_key"].nunique()
    assert version not in ("2.6.0", "2.13.0") or codes.max() > 1
    assert records(scope.false_hits) == []


def test_the_frame_is_as_declared(cache: Path) -> None:
    frame = cachescope.read(cache).false_hits
    declared = {column.name: pandas_type(column.dtype) for column in columns_of(FRAMES["false_hits"])}
    assert dict(frame.dtypes) == declared


def test_other_code_under_one_key_and_equal_guards(cache: Path, recording: Recording) -> None:
    fx = folder_of(cache, "fxgraph")
    code = b"cp4in467hhfixymclapggc4kg2qdfn6yisdw23733uuxh6elxgnr"
    changed = beside(fx, fx, b"clamp_min", b"clamp_max")
    data = changed.read_bytes().replace(code, b"c" + b"x" * 51)
    changed.unlink()
    (fx / entry_name(data)).write_bytes(data)
    (row,) = found_in(cache, recording("2.13.0", "cold_warm") / "trace")
    assert (row["kind"], row["cache"], row["cache_key"]) == ("different_code", "fxgraph", fx.name)
    assert "clamp_min" in str(row["evidence"]) and "clamp_max" in str(row["evidence"])
    assert len(row["entries"]) == 2  # type: ignore[arg-type]
    # One lookup of the FX key in each run, of which two hit: a false one would be among these.
    assert (len(row["lookups"]), row["runs"], row["hits"]) == (3, (0, 1, 2), 2)  # type: ignore[arg-type]


def test_other_code_under_other_guards_is_what_guards_are_for(recording: Recording) -> None:
    entries = cachescope.read(recording("2.13.0", "dynamic_guards") / "cache").entries
    variants = entries[entries["cache"] == "fxgraph"]
    assert variants["cache_key"].nunique() == 1 and variants["code_key"].nunique() == 2
    assert found_in(recording("2.13.0", "dynamic_guards") / "cache") == []


def with_other_code_key(cache: Path, find: bytes, put: bytes) -> None:
    fx = folder_of(cache, "fxgraph")
    path = beside(fx, fx, find, put)
    data = re.sub(rb"\x8c\x34c[a-z2-7]{51}", b"\x8c\x34c" + b"x" * 51, path.read_bytes())
    path.unlink()
    (fx / entry_name(data)).write_bytes(data)


def test_the_number_of_the_graph_is_no_difference(cache: Path) -> None:
    with_other_code_key(cache, b"# AOT ID: ['0_inference']", b"# AOT ID: ['7_inference']")
    entries = cachescope.read(cache).entries
    assert entries[entries["cache"] == "fxgraph"]["code_key"].nunique() == 2
    assert found_in(cache) == []


def test_code_that_cannot_be_read_any_more_is_said_to_be_unknown(cache: Path, tmp_path: Path) -> None:
    with_other_code_key(cache, b"# AOT ID: ['0_inference']", b"# AOT ID: ['7_inference']")
    cachescope.read(cache).save(tmp_path / "saved")
    shutil.rmtree(cache)
    (row,) = found_in(tmp_path / "saved")
    assert row["kind"] == "different_code"
    assert "could not be read" in str(row["evidence"])


def test_an_entry_copied_under_another_key_is_damaged_and_no_false_hit(
    recording: Recording, tmp_path: Path
) -> None:
    # The entry itself says which key it was stored for.
    cache = Path(shutil.copytree(recording("2.13.0", "config_flip") / "cache", tmp_path / "cache"))
    a, b = [path for path in (cache / "fxgraph").rglob("f*") if path.is_dir() and len(path.name) == 52]
    (entry,) = a.iterdir()
    shutil.copy(entry, b / entry.name)
    scope = cachescope.read(cache)
    assert (scope.entries["status"] == "damaged").sum() == 1
    assert len(scope.false_hits) == 0


def test_one_joint_key_that_points_to_other_graphs(cache: Path) -> None:
    aot, fx = folder_of(cache, "aotautograd"), folder_of(cache, "fxgraph")
    beside(aot, aot, fx.name.encode(), b"f" + b"x" * 51)
    (row,) = found_in(cache)
    assert (row["kind"], row["cache"], row["fields"]) == ("different_graphs", "aotautograd", ("fx_keys",))
    assert fx.name[:12] in str(row["evidence"])


def test_one_key_on_other_devices(cache: Path) -> None:
    fx = folder_of(cache, "fxgraph")
    beside(fx, fx, b"\x8c\x03cpu\x94a", b"\x8c\x03xpu\x94a")
    (row,) = found_in(cache)
    assert row["kind"] == "different_devices"
    assert "cpu and xpu" in str(row["evidence"])


def test_one_key_recorded_with_another_hash(recording: Recording, tmp_path: Path) -> None:
    text = (recording("2.13.0", "cold_warm_fx") / "text" / "00_cold.log").read_bytes()
    field = b"] inductor_config[epilogue_fusion]: "
    at = text.index(field)
    changed = text[: at - 51] + b"b" * 51 + text[at:]
    pid = re.search(rb"\d\d:\d\d:\d\d\.\d+ (\d+) ", text)
    assert pid is not None
    (tmp_path / "a.log").write_bytes(text)
    (tmp_path / "b.log").write_bytes(changed.replace(b" " + pid[1] + b" ", b" 99999 "))
    (row,) = found_in(tmp_path)
    assert (row["kind"], row["fields"]) == ("different_details", ("inductor_config[epilogue_fusion]",))
    assert len(row["lookups"]) == 2  # type: ignore[arg-type]


def test_a_log_that_was_cut_is_no_evidence(recording: Recording, tmp_path: Path) -> None:
    text = (recording("2.13.0", "cold_warm_fx") / "text" / "00_cold.log").read_bytes()
    kept = [line for line in text.split(b"\n") if b"inductor_config[t" not in line]
    (tmp_path / "a.log").write_bytes(text)
    (tmp_path / "b.log").write_bytes(re.sub(rb"(\d\d:\d\d:\d\d\.\d+) \d+ ", rb"\1 99999 ", b"\n".join(kept)))
    scope = cachescope.read(tmp_path)
    # What is left of its hash details is not used: those of the equal key are.
    assert scope.lookups["detail_set"].nunique() == 1
    assert len(scope.false_hits) == 0


@pytest.mark.parametrize(
    ("find", "put", "field", "rows"),
    [
        (b'"pytorch_version": "2.13.0', b'"pytorch_version": "2.14.0', "torch_version", 2),
        (b'"python_version": "3.11.', b'"python_version": "3.12.', "python_version", 2),
        (b'"python_version": "3.11.7', b'"python_version": "3.11.8', "python_version", 0),
    ],
)
def test_equal_keys_of_other_versions(
    find: bytes, put: bytes, field: str, rows: int, recording: Recording, tmp_path: Path
) -> None:
    traces = sorted((recording("2.13.0", "cold_warm") / "trace").iterdir())
    for trace in traces:
        shutil.copy(trace, tmp_path)
    data = traces[0].read_bytes()
    changed = (
        re.sub(re.escape(find), put, data)
        if find in data
        else data.replace(find.replace(b" ", b""), put.replace(b" ", b""))
    )
    assert changed != data
    (tmp_path / traces[0].name).write_bytes(changed)
    found = found_in(tmp_path)
    # One for each of the two keys that all runs share.
    assert len(found) == rows
    for row in found:
        assert (row["kind"], row["fields"]) == ("different_versions", (field,))
        assert put.split(b'"')[-1].decode().rstrip(".") in str(row["evidence"])


def snapshot(run: object, to: Path, properties: str | None = None, **settings: str) -> None:
    """What `cachescope.capture` writes, cut short, as if this run had taken it of itself."""
    context = {"runtime_context": None, "compile_context": {"accelerator_properties": properties}}
    about = {"pid": int(run.pid), "time": run.end_time.isoformat(), "settings": settings}  # type: ignore[attr-defined]
    to.write_text(json.dumps({"cachescope_snapshot": 1, "context": context, **about}))


def test_boards_of_one_model_share_keys_and_other_models_do_not(recording: Recording, tmp_path: Path) -> None:
    trace = recording("2.13.0", "cold_warm") / "trace"
    boards = [H100.format(uuid=f"{n}-{n}", bus=n) for n in range(3)]
    assert len({device_model(board) for board in boards}) == 1
    runs = list(cachescope.read(trace).runs.itertuples())
    for run, board in zip(runs, boards, strict=True):
        snapshot(run, tmp_path / f"{run.run}.json", board)
    assert found_in(trace, tmp_path) == []
    snapshot(runs[2], tmp_path / "2.json", A100)
    found = found_in(trace, tmp_path)
    assert [row["kind"] for row in found] == ["different_devices"] * 2
    for row in found:
        assert "NVIDIA H100 80GB HBM3" in str(row["evidence"])
        assert "(runs 0, 1)" in str(row["evidence"]) and "(run 2)" in str(row["evidence"])


def test_the_name_of_a_device_may_hold_an_apostrophe() -> None:
    assert device_model(H100.format(uuid="1", bus=1).replace("NVIDIA H100", "Bob's H100")).startswith(
        "Bob's H100 80GB"
    )


def test_settings_of_the_processes_that_the_key_does_not_hold(recording: Recording, tmp_path: Path) -> None:
    folder = recording("2.10.0", "cold_warm")
    capability = "torch.backends.cpu.get_cpu_capability()"
    runs = list(cachescope.read(folder / "trace").runs.itertuples())
    for run, able in zip(runs, ("AVX512", "AVX512", "AVX2"), strict=True):
        settings = {capability: able, "torch.get_default_dtype()": "torch.float32"}
        snapshot(run, tmp_path / f"{run.run}.json", **settings)
    # Whether the code is for the CPU at all is not known without the directory.
    assert found_in(folder / "trace", tmp_path) == []
    (row,) = found_in(folder / "trace", folder / "cache", tmp_path)
    assert (row["kind"], row["cache"], row["fields"]) == ("different_settings", "fxgraph", (capability,))
    assert "AVX512 (runs 0, 1) and AVX2 (run 2)" in str(row["evidence"])


def test_a_snapshot_of_another_time_is_of_another_process(recording: Recording, tmp_path: Path) -> None:
    trace = recording("2.13.0", "cold_warm") / "trace"
    runs = list(cachescope.read(trace).runs.itertuples())
    snapshot(runs[0], tmp_path / "0.json", H100.format(uuid="1", bus=1))
    late = runs[1]._replace(end_time=runs[1].end_time + pd.Timedelta(days=1))
    snapshot(late, tmp_path / "1.json", A100)
    assert found_in(trace, tmp_path) == []


@pytest.mark.slow
def test_keys_of_an_older_torch_lack_what_newer_keys_differ_in(recording: Recording) -> None:
    old, threads = recording("2.10.0", "cold_warm"), recording("2.13.0", "tour")
    assert found_in(old, recording("2.13.0", "cold_warm")) == []
    assert found_in(threads) == []
    found = found_in(old, threads)
    assert [(row["kind"], row["cache"], row["fields"]) for row in found] == [
        ("missing_field", cache, ("cpp_runtime_thread_count",)) for cache in ("aotautograd", "fxgraph")
    ]
    assert all(row["cache_key"] is None and "before 2.13" in str(row["evidence"]) for row in found)
    assert all(len(row["lookups"]) == 3 for row in found)  # type: ignore[arg-type]


def test_lookups_of_which_nothing_is_recorded_are_no_evidence() -> None:
    """Made by hand, as are the two keys beside them."""
    untold = [made.fx("f1", "hit", at=at, compile_id=None) for at in range(3)]
    told = [made.fx(key, "hit", {"gm": "g", "x": "1"}, at=9, compile_id=None) for key in ("f2", "f3")]
    assert records(made.scope_of(made.run(*untold), made.run(*told)).false_hits) == []


def test_one_key_with_two_hashes_of_a_field_is_one_and_a_field_less_is_not() -> None:
    """Made by hand."""

    def found(*details: dict[str, str]) -> list[dict[str, object]]:
        lookups = [made.fx("f1", "hit", fields, at=at, compile_id=None) for at, fields in enumerate(details)]
        return records(made.scope_of(made.run(*lookups[:1]), made.run(*lookups[1:])).false_hits)

    assert found({"gm": "g", "x": "1"}, {"gm": "g"}) == []
    assert found({"gm": "g", "x": "1"}, {"gm": "g", "x": "1"}) == []
    (row,) = found({"gm": "g", "x": "1"}, {"gm": "g", "x": "2"}, {"gm": "g", "x": "1"})
    assert (row["kind"], row["fields"], row["cache_key"]) == ("different_details", ("x",), "f1")
    assert (row["lookups"], row["runs"], row["hits"], row["entries"]) == ((0, 1, 2), (0, 1), 3, ())
    fields = dict.fromkeys("abcdef", "1")
    (row,) = found({"gm": "g", **fields}, {"gm": "g", **dict.fromkeys(fields, "2")})
    assert "more" in str(row["evidence"]) and len(row["fields"]) == 6  # type: ignore[arg-type]


def test_a_field_that_older_keys_lack_and_newer_ones_differ_in() -> None:
    """Made by hand: a key of two runs, and one of a newer torch in each of them, with another default dtype."""

    def found(shared: dict[str, str] | None, *dtypes: str, key: str = "f1") -> list[dict[str, object]]:
        runs = []
        for number, dtype in enumerate(dtypes):
            newer = {"gm": "g", "x": str(number), "default_dtype": dtype}
            lookups = [(key.format(number), shared), (f"f2{number}", newer)]
            runs.append(made.run(*(made.fx(key, "hit", details, at=number) for key, details in lookups)))
        return [row for row in records(made.scope_of(*runs).false_hits) if row["kind"] == "missing_field"]

    (row,) = found({"gm": "g"}, "float32", "float64")
    assert (row["fields"], row["lookups"], row["runs"], row["hits"]) == (
        ("default_dtype",),
        (0, 2),
        (0, 1),
        2,
    )
    assert "1 key of torch before 2.13" in str(row["evidence"])
    # Of a key of which nothing is recorded nobody knows what it lacks.
    assert found(None, "float32", "float64") == []
    assert found({"gm": "g"}, "float32", "float32") == []
    assert found({"gm": "g", "default_dtype": "float32"}, "float32", "float64") == []
    assert found({"gm": "g"}, "float32") == []
    # Of keys that no two runs looked up, none was shared.
    assert found({"gm": "g"}, "float32", "float64", key="f1{}") == []
