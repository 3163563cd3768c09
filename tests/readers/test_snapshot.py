"""Snapshots: what is read, what is refused with one clear line, and whose a snapshot is that was read with logs."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cachescope
from cachescope.answers.time_spent import TimeSpent
from cachescope.errors import SourceError
from cachescope.frames.context_rows import ContextRow
from cachescope.keys.detail_hash import torch_detail_hash
from cachescope.readers import snapshot
from cachescope.readers.json_record import MOST_NS, moment_ns
from cachescope.readers.kinds import looks_like_snapshot
from cachescope.readers.snapshot import context_row, read_snapshot
from cachescope.readers.sources import read_sources
from cachescope.report.comparison import comparison_blocks
from cachescope.report.contexts import contexts_blocks
from cachescope.report.layout import wrapped
from cachescope.report.terminal import terminal_lines
from cachescope.report.time_spent import time_blocks
from cachescope.terms import COMPILE_FORMS, RUNTIME_FORMS
from tests.conftest import Recording
from tests.readings import read_by

CONTEXT: dict[str, Any] = {
    "runtime_context": {"inductor_configs": {"epilogue_fusion": True}},
    "compile_context": None,
}
# Made by hand; tests/capture reads real ones.
SNAPSHOT: dict[str, Any] = {
    "cachescope_snapshot": 1, "context": CONTEXT, "context_source": "torch", "torch_version": "2.13.0+cpu",
    "python_version": "3.11.2", "platform": "Linux", "host": "host", "pid": 1,
    "time": "2026-01-01T00:00:00+00:00", "environment": {"OMP_NUM_THREADS": "2"},
    "device_properties": ["_CudaDeviceProperties(name='NVIDIA H100', major=9, minor=0)"], "not_json": [],
    "settings": {"torch.get_num_threads()": "2"}, "key_fields": {"torch_version": "3" * 51},
    "aot_key_fields": {"grad_enabled": "4" * 51}, "functorch_config": {"donated_buffer": "True"},
    "key_fields_problem": None,
    "torch_manifest": {"torch_key": "AAAA", "is_complete": True, "files": {"_VF.py": "0" * 64}},
    "machine": {"cores": 64, "usable_cores": 8},
}  # fmt: skip


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
def test_what_no_frame_could_hold_is_refused(field: str, value: object, message: str, tmp_path: Path) -> None:
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


@pytest.mark.parametrize(("head", "expected"), [(head, expected) for expected, heads in [
    (True, [b'{"cachescope_snapshot": 1', b'\n {\n "cachescope_snapshot" : 1', b'{"runtime_context": {',
     b'{"compile_context": null']),
    (False, [b'{"cachescope": "0.1"', b"V0101 00:00:00.000", b""]),
] for head in heads])  # fmt: skip
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
    compiling = {"runtime": "CUDA", "newer": "x"}
    context = {"runtime_context": {"inductor_configs": 1, "new": 2}, "compile_context": compiling}
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


@pytest.mark.parametrize(("text", "wanted"), [(text, wanted) for wanted, texts in [
    (0, ["1970-01-01T00:00:00+00:00", "1970-01-01T00:00:00"]),
    (((86_400 + 3_723) * 10**6 + 4) * 1_000, ["1970-01-02T01:02:03.000004+00:00"]),
    (3_600 * 10**9, ["1970-01-01T02:00:00+01:00"]),
    (None, ["1969-12-31T23:59:59+00:00", "2200-01-01T00:00:01+00:00", "0001-01-01T00:00:00+01:00", "no time",
     "", None]),
    (7_258_118_399 * 10**9, ["2199-12-31T23:59:59+00:00"]),
    (7_258_118_400 * 10**9, ["2200-01-01T00:00:00+00:00"]),
] for text in texts])  # fmt: skip
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
    reading = read_by(read_sources, [str(path)])
    found = [(one.source, one.where, one.kind) for one in reading.problems]
    assert found == [(str(path), "time", "bad_value"), (str(path), "versions", "bad_value")]
    (row,) = reading.contexts
    assert (row.source, row.torch_version, row.python_version) == (str(path), None, "3.11.2")
    reading = read_by(read_sources, [str(written(tmp_path, {**SNAPSHOT, "time": None}))])
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


SECOND = 10**9


@pytest.fixture(scope="module")
def trace(recording: Recording) -> Path:
    return min((recording("2.13.0", "config_flip") / "trace").iterdir())


def taken(file: Path, pid: int | None, time: int | None, **told: object) -> Path:
    """A snapshot that a process took, at a time in nanoseconds."""
    when = None if time is None else datetime.fromtimestamp(time / SECOND, UTC).isoformat()
    context = {"runtime_context": None, "compile_context": {"runtime": "CUDA"}}
    snapshot = {"cachescope_snapshot": 1, "context": context, "pid": pid, "time": when, **told}
    file.write_text(json.dumps(snapshot))
    return file


def recorded(folder: Path, trace: Path, ended: int | None = None) -> Any:
    """A trace in a folder of its own, with when its command ended; its run."""
    folder.mkdir()
    (folder / trace.name).write_bytes(trace.read_bytes())
    (run,) = cachescope.read(folder).tables.runs.rows
    if ended is not None:
        times = {"start_time": run.start_time, "end_time": run.end_time + ended}
        note = {name: datetime.fromtimestamp(time / SECOND, UTC).isoformat() for name, time in times.items()}
        (folder / "run.json").write_text(json.dumps({"cachescope_run": 1, **note}))
    return run


@pytest.mark.parametrize(("pid", "after", "ended", "is_of_it"), [
    # While it ran, or within a minute of its last record.
    (0, 0, None, True), (0, 59, None, True), (0, 62, None, False), (0, -3600, None, False),
    # Before its command ended, however long nothing was compiled.
    (0, 3000, 3600, True), (0, 3700, 3600, False),
    (1, 0, None, False), (None, 0, None, False), (0, None, None, False),
])  # fmt: skip
def test_a_snapshot_is_of_the_process_that_took_it(
    pid: int | None, after: int | None, ended: int | None, is_of_it: bool, trace: Path, tmp_path: Path
) -> None:
    run = recorded(tmp_path / "run", trace, None if ended is None else ended * SECOND)
    time = None if after is None else run.end_time + after * SECOND
    taken(tmp_path / "host.json", None if pid is None else run.pid + pid, time)
    rows = cachescope.read(tmp_path).all_contexts.rows
    assert [row.run for row in rows] == ([0] if is_of_it else [None, 0])
    assert [row.context for row in rows] == [*range(len(rows))]
    # What its lookups show stays theirs.
    assert rows[-1].inductor_configs is not None and ("runtime" in rows[-1].missing_forms) != is_of_it


def test_of_processes_with_one_number_it_is_of_the_one_beside_it(trace: Path, tmp_path: Path) -> None:
    """In containers, all that runs has the same few numbers."""
    later = trace.with_name(sorted(one.name for one in trace.parent.iterdir())[1])
    for name, one in (("a", trace), ("b", later)):
        run = recorded(tmp_path / name, one)
        for path in (tmp_path / name).glob("dedicated*"):
            path.write_bytes(path.read_bytes().replace(f" {run.pid} ".encode(), b" 77 "))
    scope = cachescope.read(tmp_path)
    last = max(row.end_time for row in scope.tables.runs.rows)
    file = taken(tmp_path / "host.json", 77, last)
    assert None in [row.run for row in cachescope.read(tmp_path).all_contexts.rows]
    file.rename(tmp_path / "a" / "host.json")
    of_run = {row.run: row.known_from for row in cachescope.read(tmp_path).all_contexts.rows}
    beside = next(row.run for row in scope.tables.runs.rows if "/a/" in row.source)
    assert of_run == {beside: None, 1 - beside: "hash_details"}


def test_a_run_has_the_versions_that_only_its_snapshot_says(recording: Recording, tmp_path: Path) -> None:
    """Traces name the version of torch from 2.11 on."""
    trace = min((recording("2.6.0", "config_flip") / "trace").iterdir())
    run = recorded(tmp_path / "run", trace)
    assert run.torch_version is None
    taken(tmp_path / "host.json", run.pid, run.end_time, torch_version="2.6.0", python_version="3.11.2")
    scope = cachescope.read(tmp_path)
    assert scope.runs["torch_version"].tolist() == ["2.6.0"]


def test_runs_on_other_cores_are_told_apart_only_if_both_recorded_them(trace: Path, tmp_path: Path) -> None:
    other = max(trace.parent.iterdir())
    few = {
        "cores": 64, "usable_cores": 2, "cpu_quota_us": 150_000, "cpu_period_us": 100_000,
        "memory_limit_bytes": 16 * 10**9,
    }  # fmt: skip
    told = "2 of 64 cores, 1.5 by quota, 16.0 GB of memory"
    for at, (log, machine) in enumerate(((trace, few), (other, {"cores": 64, "usable_cores": 64}))):
        run = recorded(tmp_path / str(at), log)
        taken(tmp_path / str(at) / "context.json", run.pid, run.end_time, machine=machine)
    scope = cachescope.read(tmp_path)
    (row,) = scope.contexts[scope.contexts["core_quota"].notna()].itertuples()
    assert (row.cores, row.usable_cores, row.core_quota, row.memory_limit_bytes) == (64, 2, 1.5, 16 * 10**9)
    assert told in " ".join(wrapped(terminal_lines(contexts_blocks(scope))).split())
    said = {f"on other machines: {told}, and 64 cores", f"on other machines: 64 cores, and {told}"}
    assert said & {line.text for line in terminal_lines(time_blocks(TimeSpent.of(scope)))}
    compared = comparison_blocks(cachescope.compare("run:0", "run:1", within=scope))
    assert said & {line.text for line in terminal_lines(compared)}
    (tmp_path / "1" / "context.json").unlink()
    half = cachescope.read(tmp_path)
    assert "on other machines" not in repr(cachescope.compare("run:0", "run:1", within=half))
    assert sorted(half.contexts["cores"].isna()) == [False, True]
