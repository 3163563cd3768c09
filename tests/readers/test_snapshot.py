"""Snapshots: what is read, and what is refused with one clear line."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cachescope.errors import SourceError
from cachescope.frames.context_rows import ContextRow
from cachescope.keys.detail_hash import torch_detail_hash
from cachescope.readers import snapshot
from cachescope.readers.json_record import MOST_NS, moment_ns
from cachescope.readers.kinds import looks_like_snapshot
from cachescope.readers.reading import Reading
from cachescope.readers.snapshot import context_row, read_snapshot
from cachescope.readers.sources import read_sources
from cachescope.terms import COMPILE_FORMS, RUNTIME_FORMS

CONTEXT: dict[str, Any] = {
    "runtime_context": {"inductor_configs": {"epilogue_fusion": True}},
    "compile_context": None,
}
# Made by hand; tests/capture reads real ones.
SNAPSHOT: dict[str, Any] = {
    "cachescope_snapshot": 1,
    "context": CONTEXT,
    "context_source": "torch",
    "torch_version": "2.13.0+cpu",
    "python_version": "3.11.2",
    "platform": "Linux",
    "host": "host",
    "pid": 1,
    "time": "2026-01-01T00:00:00+00:00",
    "environment": {"OMP_NUM_THREADS": "2"},
    "device_properties": ["_CudaDeviceProperties(name='NVIDIA H100', major=9, minor=0)"],
    "not_json": [],
    "settings": {"torch.get_num_threads()": "2"},
    "key_fields": {"torch_version": "3" * 51},
    "aot_key_fields": {"grad_enabled": "4" * 51},
    "key_fields_problem": None,
    "torch_manifest": {"torch_key": "AAAA", "is_complete": True, "files": {"_VF.py": "0" * 64}},
    "machine": {"cores": 64, "usable_cores": 8},
}


def written(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "snapshot.json"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(json.dumps(content))
    return path


def test_a_snapshot_is_read_whole(tmp_path: Path) -> None:
    # Half of a character in what is kept as JSON is escaped there.
    environment = {"environment": {"A": "\ud800"}}
    for changed in ({}, {"pid": 0}, {"pid": MOST_NS}, environment):
        assert read_snapshot(written(tmp_path, SNAPSHOT | changed)) == SNAPSHOT | changed


def test_a_bare_context_is_read_with_the_rest_unknown(tmp_path: Path) -> None:
    read = read_snapshot(written(tmp_path, CONTEXT))
    assert read["context"] == CONTEXT
    assert read["cachescope_snapshot"] is None
    assert read["torch_version"] is None
    assert (read["environment"], read["device_properties"], read["not_json"]) == ({}, [], [])
    assert read.keys() == SNAPSHOT.keys()


def test_a_snapshot_of_before_key_fields_says_that_they_are_not_known(tmp_path: Path) -> None:
    older = {field: value for field, value in SNAPSHOT.items() if not field.endswith("key_fields")}
    read = read_snapshot(written(tmp_path, older))
    assert (read["key_fields"], read["aot_key_fields"]) == (None, None)
    assert read_snapshot(written(tmp_path, {**older, "key_fields": {}}))["key_fields"] == {}


@pytest.mark.parametrize(("field", "value", "message"), [
    ("key_fields", {"gm": 1}, "key_fields.gm is 1, not a text"),
    ("aot_key_fields", [], "aot_key_fields is a list, not an object or null"),
    ("torch_manifest", {"files": {"a.py": None}}, "torch_manifest"),
    ("torch_manifest", {}, "torch_manifest has no files"),
    ("machine", {"cores": 0}, "machine.cores is 0, not a number from 1"),
    ("host", "\ud800", "half of a character"),
    ("platform", "\ud800", "half of a character"),
    ("device_properties", ["\ud800"], "half of a character"),
    ("context", {"runtime_context": {"\ud800": 1}, "compile_context": None}, "half of a character"),
    ("context", {"runtime_context": None, "compile_context": {"\ud800": None}}, "half of a character"),
    ("context", {"runtime_context": None, "compile_context": {"runtime": "\udfff"}}, "half of a character"),
    ("context", {"runtime_context": None, "compile_context": {"runtime": 3}}, "context.compile_context.runtime is 3, not a text or null"),
    *(("pid", pid, "pid is ") for pid in (-1, MOST_NS + 1, True, 1.0)),
])  # fmt: skip
def test_what_a_frame_could_not_hold_is_refused(
    field: str, value: object, message: str, tmp_path: Path
) -> None:
    with pytest.raises(SourceError, match=message):
        read_snapshot(written(tmp_path, {**SNAPSHOT, field: value}))


def test_its_schema_declares_what_a_snapshot_has() -> None:
    declared = json.loads(Path(snapshot.__file__).with_name("snapshot_schema.json").read_text())["properties"]
    assert declared.keys() | {"cachescope_snapshot"} == SNAPSHOT.keys()
    assert tuple(declared["context"]["properties"]["compile_context"]["properties"]) == COMPILE_FORMS
    assert declared["pid"]["maximum"] == MOST_NS


def test_a_byte_order_mark_is_no_obstacle(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + json.dumps(CONTEXT).encode()
    assert looks_like_snapshot(content[:100])
    assert read_snapshot(written(tmp_path, content))["context"] == CONTEXT


def test_forms_of_a_newer_torch_are_kept(tmp_path: Path) -> None:
    context = {"runtime_context": {"new_form": 1}, "compile_context": {}}
    assert read_snapshot(written(tmp_path, context))["context"] == context


@pytest.mark.parametrize(("content", "message"), [
    (b"", "not readable as JSON"),
    (b"\x00\xff\xfe", "not readable as JSON"),
    (json.dumps(SNAPSHOT).encode()[:200], "cut short"),
    (b"[" * 200_000, "not readable as JSON"),
    ([], "JSON object"),
    ({}, "not a cachescope snapshot"),
    ({"system": {}, "cache": {}}, "not a cachescope snapshot"),
    ({**SNAPSHOT, "cachescope_snapshot": 2}, "format 2.*upgrade"),
    ({**SNAPSHOT, "context": None}, "context is null, not an object"),
    ({**SNAPSHOT, "context": {"runtime_context": {}}}, "context has no compile_context"),
    ({**SNAPSHOT, "context": {**CONTEXT, "compile_context": 1}}, "compile_context is 1, not an object or null"),
    ({**SNAPSHOT, "pid": "1"}, "pid is the text '1', not a whole number or null"),
    ({**SNAPSHOT, "environment": []}, "environment is a list, not an object or null"),
    ({**SNAPSHOT, "environment": {"A": 1}}, "environment.A is 1, not a text"),
    ({**SNAPSHOT, "not_json": [None]}, "not_json.0. is null, not a text"),
])  # fmt: skip
def test_what_is_no_snapshot_is_refused_in_one_line(content: object, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, content)
    with pytest.raises(SourceError, match=message) as caught:
        read_snapshot(path)
    assert caught.value.source == str(path)
    assert "\n" not in str(caught.value)


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.json", tmp_path):
        with pytest.raises(SourceError, match="cannot be read"):
            read_snapshot(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary() | st.text().map(str.encode))
def test_any_bytes_are_read_or_refused(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        read_snapshot(written(tmp_path, content))
    assert looks_like_snapshot(content) in (True, False)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(length=st.integers(min_value=0, max_value=len(json.dumps(SNAPSHOT)) - 1))
def test_a_snapshot_cut_anywhere_is_refused(length: int, tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        read_snapshot(written(tmp_path, json.dumps(SNAPSHOT).encode()[:length]))


@pytest.mark.parametrize(("head", "expected"), [
    (b'{"cachescope_snapshot": 1', True),
    (b'\n {\n "cachescope_snapshot" : 1', True),
    (b'{"runtime_context": {', True),
    (b'{"compile_context": null', True),
    (b'{"cachescope": "0.1"', False),
    (b"V0101 00:00:00.000", False),
    (b"", False),
])  # fmt: skip
def test_a_snapshot_is_told_by_its_head(head: bytes, expected: bool) -> None:
    assert looks_like_snapshot(head) is expected


def row(**changed: Any) -> ContextRow:
    made: Any = {**SNAPSHOT, **changed}
    return context_row(3, "/snapshot.json", made)


def test_the_row_of_a_context() -> None:
    found = row()
    assert (found.context, found.source) == (3, "/snapshot.json")
    assert (found.run, found.hashed_forms) == (None, ())
    assert json.loads(found.inductor_configs) == {"epilogue_fusion": True}
    assert found.torch_determinism_configs is None
    assert (found.torch_version, found.pid, found.known_from) == ("2.13.0+cpu", 1, "torch")
    assert json.loads(found.settings) == SNAPSHOT["settings"]
    assert json.loads(found.key_fields) == SNAPSHOT["key_fields"]
    assert json.loads(found.torch_manifest) == SNAPSHOT["torch_manifest"]
    assert found.device_properties == tuple(SNAPSHOT["device_properties"])
    nothing = row(settings={}, environment={}, key_fields=None, torch_manifest=None)
    assert (nothing.settings, nothing.environment, nothing.key_fields, nothing.torch_manifest) == (None,) * 4
    assert row(key_fields={}).key_fields == "{}"


def test_forms_that_are_missing_or_of_a_newer_torch() -> None:
    context = {
        "runtime_context": {"inductor_configs": 1, "new": 2},
        "compile_context": {"runtime": "CUDA", "newer": "x"},
    }
    found = row(context=context)
    known = {*RUNTIME_FORMS, *COMPILE_FORMS}
    assert set(found.missing_forms) == known - {"inductor_configs", "runtime"} | {"new", "newer"}
    assert (found.inductor_configs, found.runtime) == ("1", "CUDA")
    assert set(row(context={"runtime_context": None, "compile_context": None}).missing_forms) == known


def test_the_hash_of_torch_is_that_of_its_python() -> None:
    context = {"runtime_context": None, "compile_context": {"torch_version_hash": "QUJD"}}
    for protocol, versions in (
        (4, ("3.11.2", "3.13", "2.99", None, "x.y", "3", "3.14159")),
        (5, ("3.14.0", "3.15", "4.0", "3.1415")),
    ):
        wanted = torch_detail_hash("QUJD", protocol)
        for version in versions:
            assert row(context=context, python_version=version).torch_detail_hash == wanted, version
    assert torch_detail_hash("QUJD", 4) != torch_detail_hash("QUJD", 5)


@pytest.mark.parametrize(("text", "wanted"), [
    ("1970-01-01T00:00:00+00:00", 0),
    ("1970-01-01T00:00:00", 0),
    ("1970-01-02T01:02:03.000004+00:00", ((86_400 + 3_723) * 10**6 + 4) * 1_000),
    ("1970-01-01T02:00:00+01:00", 3_600 * 10**9),
    ("1969-12-31T23:59:59+00:00", None),
    ("2199-12-31T23:59:59+00:00", 7_258_118_399 * 10**9),
    ("2200-01-01T00:00:00+00:00", 7_258_118_400 * 10**9),
    ("2200-01-01T00:00:01+00:00", None),
    ("0001-01-01T00:00:00+01:00", None),
    ("no time", None),
    ("", None),
    (None, None),
])  # fmt: skip
def test_the_moment_of_a_snapshot(text: str | None, wanted: int | None) -> None:
    assert moment_ns(text) == wanted


def test_a_file_of_the_largest_size_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, CONTEXT)
    size = path.stat().st_size
    monkeypatch.setattr("cachescope.readers.snapshot.MAX_BYTES", size)
    assert read_snapshot(path)["context"] == CONTEXT
    monkeypatch.setattr("cachescope.readers.snapshot.MAX_BYTES", size - 1)
    with pytest.raises(SourceError, match=f"larger than {size - 1} bytes"):
        read_snapshot(path)


def test_what_is_wrong_with_a_snapshot_is_a_problem_beside_it(tmp_path: Path) -> None:
    path = written(tmp_path, {**SNAPSHOT, "time": "no time", "torch_version": ""})
    reading = Reading()
    read_sources([str(path)], reading)
    found = [(one.source, one.where, one.kind) for one in reading.problems]
    assert found == [(str(path), "time", "bad_value"), (str(path), "versions", "bad_value")]
    (row,) = reading.contexts
    assert (row.source, row.torch_version, row.python_version) == (str(path), None, "3.11.2")
    reading = Reading()
    read_sources([str(written(tmp_path, {**SNAPSHOT, "time": None}))], reading)
    assert reading.problems == []


def test_objects_of_a_row_are_in_the_order_of_their_names() -> None:
    """Two contexts are equal if they say the same, in whatever order."""
    made = [
        context_row(0, "/a.json", {**SNAPSHOT, "settings": dict(pairs), "environment": dict(pairs)})
        for pairs in ([("b", "1"), ("a", "2")], [("a", "2"), ("b", "1")])
    ]
    assert made[0] == made[1]
    assert made[0].settings == made[0].environment == '{"a": "2", "b": "1"}'


@pytest.mark.parametrize("field", ["settings", "environment", "key_fields", "torch_manifest"])
def test_half_a_character_in_an_object_is_escaped(field: str, tmp_path: Path) -> None:
    value = {"files": {"\ud800": "x"}} if field == "torch_manifest" else {"\ud800": "\udfff"}
    snapshot = read_snapshot(written(tmp_path, {**SNAPSHOT, field: value}))
    text = getattr(context_row(0, "/a.json", snapshot), field)
    assert "\\ud800" in text and text.isascii()
