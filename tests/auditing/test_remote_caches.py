"""What torch would do with the values of a remote cache: the dump of one, with one value changed."""

import base64
import json
from pathlib import Path

import pytest
from hostile_pickles import hostile
from redis_server import missing, redis_server
from remote_recordings import unpacked

import cachescope
from cachescope.auditing.contents import audit_value
from cachescope.readers.remote_cache.stored import Stored

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
