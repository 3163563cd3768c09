"""Snapshots of isolation contexts: the JSON file of ``cachescope capture``.

A bare ``_isolation_context()`` written as JSON is read too. Never torch, never pickle.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final, cast

from cachescope.errors import SourceError
from cachescope.frames.context_rows import ContextRow
from cachescope.json_types import JsonObject
from cachescope.keys import CONTEXT_FORMS
from cachescope.keys.detail_hash import default_protocol, torch_detail_hash
from cachescope.readers.json_record import MOST_NS, Record, moment_ns
from cachescope.readers.reading import Context, Reading, Snapshot
from cachescope.terms import COMPILE_FORMS, RUNTIME_FORMS, SNAPSHOT_VERSION

# A context is about 100 kB; a file far beyond that is no snapshot and is not loaded.
MAX_BYTES: Final = 64 * 1024 * 1024

# Everything besides the context, and its JSON type if present.
_FIELDS: Final[dict[str, type]] = {
    "context_source": str,
    "torch_version": str,
    "python_version": str,
    "platform": str,
    "host": str,
    "pid": int,
    "time": str,
    "environment": dict,
    "settings": dict,
    "device_properties": list,
    "not_json": list,
    "key_fields_problem": str,
}
# For these, missing is not the same as empty.
_FIELD_HASHES: Final = ("key_fields", "aot_key_fields")


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
    elif document["cachescope_snapshot"] != SNAPSHOT_VERSION:
        raise SourceError(
            name,
            f"snapshot format {document['cachescope_snapshot']!r}; this version of cachescope "
            f"reads format {SNAPSHOT_VERSION}: upgrade cachescope or capture again",
        )
    context = _context(name, document.get("context"))
    checked: JsonObject = {
        "cachescope_snapshot": document["cachescope_snapshot"],
        "context": context,
        **{field: _field(name, document, field) for field in _FIELDS},
        **{field: _texts(name, field, document.get(field)) for field in _FIELD_HASHES},
        "torch_manifest": _manifest(name, document.get("torch_manifest")),
    }
    _check_texts(name, context, checked)
    return cast("Snapshot", checked)


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
    reading.contexts.append((path, snapshot))


def context_row(number: int, source: str, snapshot: Snapshot) -> ContextRow:
    """The row of the frame ``contexts`` for a result of `read_snapshot`, with the path it was read from."""
    runtime = snapshot["context"]["runtime_context"] or {}
    compile_ = snapshot["context"]["compile_context"] or {}
    in_json = {form: _json(value) for form, value in runtime.items()}
    known = (*RUNTIME_FORMS, *COMPILE_FORMS)
    given = (*runtime, *compile_)
    torch_version_hash = compile_.get("torch_version_hash")
    return ContextRow(
        context=number,
        source=source,
        run=None,
        inductor_configs=in_json.get("inductor_configs"),
        torch_determinism_configs=in_json.get("torch_determinism_configs"),
        cuda_matmul_precision_configs=in_json.get("cuda_matmul_precision_configs"),
        torch_version_hash=torch_version_hash,
        triton_version_hash=compile_.get("triton_version_hash"),
        runtime=compile_.get("runtime"),
        runtime_version=compile_.get("runtime_version"),
        accelerator_properties=compile_.get("accelerator_properties"),
        # A form of a newer torch has no column: the forms that are known are then not all forms.
        missing_forms=tuple(form for form in (*known, *given) if (form in known) != (form in given)),
        hashed_forms=(),
        torch_detail_hash=torch_detail_hash(torch_version_hash, default_protocol(snapshot["python_version"])),
        text_only=tuple(snapshot["not_json"]),
        known_from=snapshot["context_source"],
        torch_version=snapshot["torch_version"],
        python_version=snapshot["python_version"],
        platform=snapshot["platform"],
        host=snapshot["host"],
        pid=snapshot["pid"],
        time=moment_ns(snapshot["time"]),
        environment=_json(snapshot["environment"]) if snapshot["environment"] else None,
        settings=_json(snapshot["settings"]) if snapshot["settings"] else None,
        device_properties=tuple(snapshot["device_properties"]),
        key_fields=_json_or_none(snapshot["key_fields"]),
        aot_key_fields=_json_or_none(snapshot["aot_key_fields"]),
        key_fields_problem=snapshot["key_fields_problem"],
        torch_manifest=_json_or_none(snapshot["torch_manifest"]),
    )


def _json_or_none(value: object) -> str | None:
    return None if value is None else _json(value)


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True)


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


def _context(name: str, context: object) -> Context:
    if not isinstance(context, dict) or set(context) != set(CONTEXT_FORMS):
        raise SourceError(name, f"its context does not have exactly the keys {', '.join(CONTEXT_FORMS)}")
    for section, values in context.items():
        if values is not None and not isinstance(values, dict):
            raise SourceError(name, f"{section} is neither null nor an object")
    for form, value in (context["compile_context"] or {}).items():
        if form in COMPILE_FORMS and not isinstance(value, str | None):
            raise SourceError(name, f"{form} is {type(value).__name__}, neither null nor text")
    return cast("Context", context)


def _check_texts(name: str, context: Context, snapshot: JsonObject) -> None:
    """Refuse half a surrogate pair in values that become columns directly; JSON columns escape it."""
    forms = context["compile_context"] or {}
    texts: list[object] = [*forms, *forms.values(), *(context["runtime_context"] or {})]
    for value in (snapshot[field] for field, kind in _FIELDS.items() if kind is not dict):
        texts += value if isinstance(value, list) else [value]
    try:
        "".join(text for text in texts if isinstance(text, str)).encode()
    except UnicodeEncodeError as error:
        raise SourceError(name, f"holds half of a character: {error}") from error


def _field(name: str, document: JsonObject, field: str) -> object:
    kind = _FIELDS[field]
    value: Any = document.get(field)
    if value is None:
        return kind() if kind in (dict, list) else None
    # In Python a bool is an int, and an int may be too large for a column.
    if not isinstance(value, kind) or (kind is int and not (type(value) is int and 0 <= value <= MOST_NS)):
        raise SourceError(name, f"{field} is {type(value).__name__}, not {kind.__name__}")
    items: Any = value.values() if isinstance(value, dict) else value
    if kind in (dict, list) and not all(isinstance(item, str) for item in items):
        raise SourceError(name, f"{field} holds something that is not text")
    return value


def _texts(name: str, field: str, value: object) -> dict[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise SourceError(name, f"{field} is no object of texts")
    return value


def _manifest(name: str, value: object) -> JsonObject | None:
    if value is None:
        return None
    if not isinstance(value, dict) or _texts(name, "torch_manifest", value.get("files")) is None:
        raise SourceError(name, "torch_manifest holds no files")
    return value
