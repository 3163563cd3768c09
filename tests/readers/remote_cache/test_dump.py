"""Dumps of remote caches, against the trace and the directory of the run that filled them; and addresses, shown without passwords."""

import base64
import json
import lzma
import pickle
from pathlib import Path
from typing import Any

import pytest
from hostile_pickles import hostile
from hypothesis import given
from hypothesis import strategies as st
from remote_recordings import VERSIONS, keys_of_trace, unpacked

import cachescope
from cachescope.readers.logs.byte_source import zstd
from cachescope.readers.remote_cache import stored
from cachescope.readers.remote_cache.address import (
    RedisAddress,
    is_redis,
    text_without_passwords,
    without_password,
)
from cachescope.readers.remote_cache.stored import Stored, read_dump, read_stored
from tests.readings import read_by

QUICK = [pytest.param(one, marks=() if one == "2.13.0" else pytest.mark.slow) for one in VERSIONS]
FX_KEY = "pt2:fx-graph-v1::f" + "a" * 51 + ":c1"
BUNDLE = "pt2:bundled-autotune-v1::" + "4" * 64 + ":c1"
OF_CODE = ["guards_expr", "time_taken_ns", "code_key", "device_types"]
SAME = [*OF_CODE, "fx_keys", "detail_set", "size_bytes", "status"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {one: unpacked(one, tmp_path_factory.mktemp("remote")) for one in VERSIONS}


def line(key: str, value: object) -> str:
    return json.dumps({"key": key, "value": value}) + "\n"


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize("version", QUICK)
def test_a_dump_holds_what_the_trace_says_was_stored(recorded: dict[str, Path], version: str) -> None:
    folder = recorded[version]
    entries = cachescope.read(folder / "remote.jsonl").entries
    graphs = entries[entries["cache"].isin(["fxgraph", "aotautograd"])]
    assert set(graphs["cache_key"]) == keys_of_trace(folder)
    once = {"best_config": 1, "bundled_autotune": 1, "pgo": 1}
    assert entries["cache"].value_counts().to_dict() == {"fxgraph": 4, "aotautograd": 2, **once}
    assert set(entries["status"]) == {"ok"}


@pytest.mark.parametrize("version", QUICK)
def test_entries_are_those_of_the_directory(recorded: dict[str, Path], version: str) -> None:
    """torch stores the same bytes twice."""
    folder = recorded[version]
    entries = cachescope.read(folder / "remote.jsonl", folder / "cache").entries
    graphs = entries[entries["cache"].isin(["fxgraph", "aotautograd"])]
    is_remote = graphs["path"].str.contains("/pt2:", regex=False)
    sides = [
        graphs[chosen].set_index(["cache", "cache_key"]).sort_index()[SAME].astype(str)
        for chosen in (is_remote, ~is_remote)
    ]
    assert len(sides[0]) == 6
    assert sides[0].equals(sides[1])


def test_what_the_program_autotuned(recorded: dict[str, Path]) -> None:
    """As `remote_program.py` stored it."""
    rows = cachescope.read(recorded["2.13.0"] / "remote.jsonl").entries.set_index("cache")
    assert rows.loc["best_config", "detail"] == "XBLOCK=128, num_warps=4, num_stages=1"
    assert rows.loc["best_config", "time_taken_ns"] == 5_000_000
    assert rows.loc["best_config", "cache_key"] == "2" * 64
    assert rows.loc["best_config", "triton_hashes"] == ("3" * 64,)
    assert rows.loc["bundled_autotune", "detail"] == "555555555555…: XBLOCK=128, num_warps=4, num_stages=1"
    assert rows.loc["pgo", "cache_key"] == "job1_None_"
    assert rows.loc["pgo", "detail"].startswith("layer (")


def test_a_compressed_dump_is_read_alike(recorded: dict[str, Path], tmp_path: Path) -> None:
    plain = recorded["2.13.0"] / "remote.jsonl"
    packed = tmp_path / "any name"
    packed.write_bytes(lzma.compress(plain.read_bytes(), preset=0))
    columns = ["cache", "cache_key", "size_bytes", "detail_set"]
    of_packed, of_plain = (cachescope.read(path).entries[columns] for path in (packed, plain))
    assert of_packed.equals(of_plain)


def test_a_dump_whose_compression_is_damaged_is_read_up_to_the_damage(
    recorded: dict[str, Path], tmp_path: Path
) -> None:
    plain = (recorded["2.13.0"] / "remote.jsonl").read_bytes()
    packed = bytearray(zstd.compress(plain, options={zstd.CompressionParameter.checksum_flag: 1}))
    packed[-1] ^= 0xFF
    (tmp_path / "dump.zst").write_bytes(packed)
    problems = cachescope.read(tmp_path / "dump.zst").problems
    assert "damaged_compression" in set(problems["kind"])


def test_what_is_local_and_not_remote(recorded: dict[str, Path], tmp_path: Path) -> None:
    lines = (recorded["2.13.0"] / "remote.jsonl").read_text().splitlines(keepends=True)
    fewer = written(tmp_path / "fewer.jsonl", *(one for one in lines if "autograd-experimental" not in one))
    graphs = cachescope.compare(recorded["2.13.0"] / "cache", fewer).graphs
    assert {row.cache for row in graphs.only_before} == {"aotautograd"}
    assert (graphs.equal, len(graphs.only_before), graphs.only_after) == (4, 2, ())


def test_the_run_would_find_all_of_it(recorded: dict[str, Path]) -> None:
    folder = recorded["2.13.0"]
    found = cachescope.will_hit(folder / "remote.jsonl", folder / "trace")
    assert set(found["will_hit"]) == {"yes"}
    assert not any("compiled with" in one for assumed in found["assuming"] for one in assumed)


def test_nothing_in_a_remote_cache_is_alone(recorded: dict[str, Path], tmp_path: Path) -> None:
    """Its FX entries may be switched off, and no code lies beside what it holds."""
    lines = (recorded["2.13.0"] / "remote.jsonl").read_text().splitlines(keepends=True)
    graphs_only = written(tmp_path / "some.jsonl", *(one for one in lines if "fx-graph" not in one))
    scope = cachescope.read(graphs_only)
    assert scope.orphans.empty
    assert scope.removable.empty


VALUES: dict[str, object] = {
    "an empty object": {},
    "a number as data": {"data": 1},
    "no base64": {"data": "abc"},
    "no pickle": {"data": base64.b64encode(b"words").decode()},
    "not even ASCII": {"data": "é"},
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_damaged_value_is_a_row_and_a_problem(value: object, tmp_path: Path) -> None:
    scope = cachescope.read(written(tmp_path / "dump.jsonl", line(FX_KEY, value)))
    assert scope.entries["status"].tolist() == ["damaged"]
    assert scope.problems["source"].tolist() == [f"{tmp_path}/dump.jsonl/{FX_KEY}"]


@pytest.mark.parametrize("cache", [
    "fx-graph-v1",
    *(pytest.param(one, marks=pytest.mark.slow) for one in ("autograd-experimental", "dynamo-pgo")),
])  # fmt: skip
def test_nothing_of_a_hostile_value_is_executed(cache: str, tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    keys = {f"pt2:{cache}::{name}:c1": data for name, data in hostile(str(mark)).items()}
    lines = [line(key, {"data": base64.b64encode(data).decode()}) for key, data in keys.items()]
    scope = cachescope.read(written(tmp_path / "dump.jsonl", *lines))
    assert not mark.exists()
    assert len(scope.entries) == len(keys)
    assert scope.entries["status"].isin(["damaged", "unreadable"]).all()
    assert sorted(scope.problems["source"]) == sorted(f"{tmp_path}/dump.jsonl/{key}" for key in keys)


def test_lines_that_are_none_are_problems(tmp_path: Path) -> None:
    lines = [line(BUNDLE, {}), "not JSON\n", '{"key": 1}\n', line(BUNDLE, []), line(BUNDLE, {})]
    scope = cachescope.read(written(tmp_path / "dump.jsonl", *lines))
    assert scope.problems["where"].tolist() == ["line 2", "line 3"]
    assert scope.problems["count"].tolist() == [1, 2]
    assert len(scope.entries) == 2


def test_keys_that_torch_does_not_make_are_foreign(tmp_path: Path) -> None:
    keys = ["pt2:other-cache::key:c1", "pt2:fx-graph-v1::key:c2", "pt2:odd", "pt2:fx-graph-v1::key\ud800:c1"]
    rows = cachescope.read(written(tmp_path / "dump.jsonl", *(line(key, {}) for key in keys))).entries
    assert rows["status"].tolist() == ["foreign", "foreign", "foreign", "damaged"]


def test_what_is_too_big_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachescope.readers.remote_cache.stored._MOST_LINE_BYTES", 200)
    big = line(FX_KEY, {"data": "A" * 1000})
    scope = cachescope.read(written(tmp_path / "dump.jsonl", big, line(BUNDLE, {})))
    assert scope.problems["where"].tolist() == ["line 1"]
    assert scope.entries["cache"].tolist() == ["bundled_autotune"]


def test_a_bundle_says_what_is_in_it(tmp_path: Path) -> None:
    best: dict[str, Any] = {"XBLOCK": 8, "configs_hash": "1"}
    bundle = {f"{number}.best_config": best for number in range(7)}
    row = cachescope.read(written(tmp_path / "dump.jsonl", line(BUNDLE, bundle))).entries.loc[0]
    assert row["detail"].startswith("0.best_confi…: XBLOCK=8; ")
    assert row["detail"].endswith("; 2 more")


@given(st.binary(max_size=200))
def test_any_value_gives_a_row(value: bytes) -> None:
    keys = ["pt2:fx-graph-v1::k:c1", "pt2:dynamo-pgo::k:c1", BUNDLE, f"pt2:{'0' * 64}::k:c1"]
    for content in (value, json.dumps({"data": base64.b64encode(value).decode()}).encode()):
        assert len(read_by(read_stored, "root", [Stored(key, content) for key in keys]).entries) == len(keys)


@given(st.integers(0, 10_000))
def test_a_dump_that_was_cut_keeps_what_is_whole(recorded: dict[str, Path], cut: int) -> None:
    whole = (recorded["2.13.0"] / "remote.jsonl").read_bytes()
    left = whole[: len(whole) * cut // 10_000]
    path = recorded["2.13.0"] / "cut.jsonl"
    path.write_bytes(left)
    reading = read_by(read_dump, str(path))
    lines = left.splitlines()
    are_whole = sum(one in whole.splitlines() for one in lines)
    assert len(reading.entries) == are_whole
    assert len(reading.problems) == len(lines) - are_whole


def test_an_entry_beyond_the_limit_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "Limits", lambda: type("Few", (), {"size_bytes": 3}))
    reading = read_by(read_stored, "root", [Stored(FX_KEY, {"data": base64.b64encode(b"12345").decode()})])
    (entry,) = reading.entries
    assert (entry.status, entry.damage) == ("unreadable", "more than 3 bytes: not read")


def test_json_that_unfolds_is_not_read(tmp_path: Path) -> None:
    """An empty list takes thirty times its text in memory."""
    value = {"data": [[]] * 300_000}
    path = written(tmp_path / "dump.jsonl", line(BUNDLE, {}), line(FX_KEY, value))
    (problem,) = cachescope.read(path).problems.to_dict("records")
    assert (problem["where"], "values of JSON" in problem["message"]) == ("line 2", True)
    (entry,) = read_by(read_stored, "root", [Stored(FX_KEY, json.dumps(value).encode())]).entries
    assert entry.status == "unreadable"


SHOWN = {
    "redis://cache-host": "redis://cache-host",
    "redis://cache-host:6379/2": "redis://cache-host:6379/2",
    "rediss://me:secret@cache-host:6379/2": "rediss://cache-host:6379/2",
    "redis://:secret@cache-host/": "redis://cache-host",
    "redis://cache-host/?password=secret&db=3": "redis://cache-host?db=3",
    "redis://cache-host/?password=sec@ret": "redis://…",
    "redis://:sec/ret@cache-host:6379/2": "redis://cache-host:6379/2",
    "redis://:sec@ret@cache-host:6379/2": "redis://cache-host:6379/2",
    "redis://:sec#ret@cache-host:6379/2": "redis://cache-host:6379/2",
    "redis://:sec?ret@cache-host:6379/2": "redis://…",
    "redis://cache-host#secret": "redis://cache-host",
    "unix:///run/redis.sock?db=1": "unix:///run/redis.sock?db=1",
    "unix://me@/run/redis.sock?password=secret": "unix:///run/redis.sock",
}


@pytest.mark.parametrize(("given_", "shown"), SHOWN.items(), ids=range(len(SHOWN)))
def test_what_is_shown(given_: str, shown: str) -> None:
    address = RedisAddress.of(given_)
    assert (address, address.url) == (shown, given_)


@given(st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S")), min_size=1).map("~{}~".format))
def test_no_password_is_ever_shown(password: str) -> None:
    for url in (
        f"redis://:{password}@cache-host:6379/0",
        f"rediss://me:{password}@cache-host",
        f"redis://cache-host/0?password={password}",
        f"redis://cache-host/0?db=1&password={password}&db=2",
        f"unix:///redis.sock?password={password}",
    ):
        assert "~" not in RedisAddress.of(url)
        assert "~" not in text_without_passwords(f"unrecognized arguments: {url} --other")


def test_what_is_saved_lacks_it() -> None:
    address = RedisAddress.of("redis://:secret@cache-host")
    assert pickle.loads(pickle.dumps(address)) == "redis://cache-host"
    assert b"secret" not in pickle.dumps(address)


def test_other_sources_stay_as_they_are() -> None:
    for source in ("s3://bucket/a@b", "/logs/redis://a", "C:/logs", "rediss", ""):
        assert not is_redis(source)
        assert without_password(source) is source
