"""Snapshots of isolation contexts: the JSON file of ``cachescope capture``.

A bare ``_isolation_context()`` written as JSON is read too. Never torch, never pickle.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Final

from cachescope.checked_json import WrongValueError, declared_in
from cachescope.errors import SourceError
from cachescope.frames.context_rows import ContextRow
from cachescope.json_types import JsonObject
from cachescope.keys import CONTEXT_FORMS
from cachescope.keys.detail_hash import default_protocol, torch_detail_hash
from cachescope.readers.json_record import Record, moment_ns
from cachescope.readers.reading import Reading, Snapshot
from cachescope.terms import COMPILE_FORMS, RUNTIME_FORMS, SNAPSHOT_VERSION

# A context is about 100 kB; a file far beyond that is no snapshot and is not loaded.
MAX_BYTES: Final = 64 * 1024 * 1024

# What declares a snapshot, and is what it is checked with.
_SCHEMA: Final = Path(__file__).parent / "snapshot_schema.json"

# What its row has as it is.
_COLUMNS: Final = ("torch_version", "python_version", "platform", "host", "pid", "key_fields_problem")
_JSON: Final = ("key_fields", "aot_key_fields", "functorch_config", "torch_manifest")


def read_snapshot(path: str | os.PathLike[str]) -> Snapshot:
    """Read and check a snapshot, or a bare isolation context written as JSON."""
    name = os.fspath(path)
    loaded = _load(name)
    if not isinstance(loaded, dict):
        raise SourceError(name, "a snapshot is a JSON object")
    document: JsonObject = loaded
    if "cachescope_snapshot" not in document:
        if set(document) != set(CONTEXT_FORMS):
            raise SourceError(name, "not a cachescope snapshot, nor a bare isolation context")
        document = {"cachescope_snapshot": None, "context": document}
    elif (found := document["cachescope_snapshot"]) != SNAPSHOT_VERSION:
        message = f"snapshot format {found!r}; this version of cachescope reads format {SNAPSHOT_VERSION}: upgrade cachescope or capture again"
        raise SourceError(name, message)
    try:
        declared_in(_SCHEMA)(document)
    except WrongValueError as error:
        raise SourceError(name, f"no snapshot: {error}") from error
    empty: JsonObject = {"environment": {}, "settings": {}, "device_properties": [], "not_json": []}
    known = empty | {field: value for field, value in document.items() if value is not None}
    declared = json.loads(_SCHEMA.read_bytes())["properties"]
    snapshot = {field: known.get(field) for field in ("cachescope_snapshot", *declared)}
    _check_texts(name, snapshot)
    return snapshot


def read_context(path: str, reading: Reading) -> None:
    """Read a snapshot into ``reading.contexts``."""
    snapshot = read_snapshot(path)
    if snapshot["time"] is not None and moment_ns(snapshot["time"]) is None:
        reading.problem(path, "time", "bad_value", f"time is no moment: {snapshot['time'][:40]!r}")
    versions = Record(snapshot)
    snapshot["torch_version"] = versions.version("torch_version")
    snapshot["python_version"] = versions.version("python_version")
    if versions.wrong:
        reading.problem(path, "versions", "bad_value", "; ".join(versions.wrong))
    reading.contexts.append(context_row(len(reading.contexts), path, snapshot))


def context_row(number: int, source: str, snapshot: Snapshot) -> ContextRow:
    """The row of the frame ``contexts`` for a result of `read_snapshot`, with the path it was read from."""
    runtime = snapshot["context"]["runtime_context"] or {}
    compile_ = snapshot["context"]["compile_context"] or {}
    known = (*RUNTIME_FORMS, *COMPILE_FORMS)
    given = (*runtime, *compile_)
    machine = snapshot.get("machine") or {}
    quota, period = machine.get("cpu_quota_us"), machine.get("cpu_period_us")
    same = {name: snapshot[name] for name in _COLUMNS}
    same |= {form: _json(runtime[form]) if form in runtime else None for form in RUNTIME_FORMS}
    same |= {form: compile_.get(form) for form in COMPILE_FORMS}
    same |= {name: None if snapshot[name] is None else _json(snapshot[name]) for name in _JSON}
    same |= {name: _json(snapshot[name]) if snapshot[name] else None for name in ("environment", "settings")}
    same |= {name: machine.get(name) for name in ("cores", "usable_cores", "memory_limit_bytes")}
    return ContextRow(
        context=number,
        source=source,
        run=None,
        **same,
        # A form of a newer torch has no column: the forms that are known are then not all forms.
        missing_forms=tuple(form for form in (*known, *given) if (form in known) != (form in given)),
        hashed_forms=(),
        torch_detail_hash=torch_detail_hash(
            compile_.get("torch_version_hash"), default_protocol(snapshot["python_version"])
        ),
        text_only=tuple(snapshot["not_json"]),
        known_from=snapshot["context_source"],
        time=moment_ns(snapshot["time"]),
        device_properties=tuple(snapshot["device_properties"]),
        core_quota=quota / period if quota and period else None,
    )


def _json(value: object) -> str:
    # Ranks by the thousand have equal ones.
    return sys.intern(json.dumps(value, sort_keys=True))


def _load(name: str) -> object:
    try:
        with Path(name).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SourceError(name, f"cannot be read: {error.strerror or error}") from error
    if len(content) > MAX_BYTES:
        raise SourceError(name, f"larger than {MAX_BYTES} bytes: not a snapshot")
    try:
        # json, not orjson: a context may hold NaN and integers beyond 64 bits.
        return json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise SourceError(name, f"not readable as JSON, cut short perhaps: {error}") from error


def _check_texts(name: str, snapshot: Snapshot) -> None:
    """Refuse half a surrogate pair in values that become columns directly; JSON columns escape it."""
    forms = snapshot["context"]["compile_context"] or {}
    texts: list[object] = [*forms, *forms.values(), *(snapshot["context"]["runtime_context"] or {})]
    for value in snapshot.values():
        texts += value if isinstance(value, list) else [value]
    try:
        "".join(text for text in texts if isinstance(text, str)).encode()
    except UnicodeEncodeError as error:
        raise SourceError(name, f"holds half of a character: {error}") from error
