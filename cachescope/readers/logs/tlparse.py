"""What tlparse writes, as the trace that it was made of: ``raw.jsonl``, else the artifacts that ``compile_directory.json`` lists.

Both refer to files beside them for payloads. The list has no times; those of its compiles are in ``chromium_events.json``.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import IO, Any, Final

from cachescope.grouping import by_key
from cachescope.readers.json_record import load_json
from cachescope.readers.logs.trace_artifacts import LOOKUP_ARTIFACTS, RECOMPILE_ARTIFACT, RUNNABLE_ARTIFACT

SOURCES: Final = ("raw.log", "raw.jsonl", "compile_directory.json")
"""Each tells no more than those before it."""
RECORDS: Final = re.compile(rb'\{"string_table": ?\[')
LIST: Final = re.compile(rb'\{\s*"\[[^"\]]{1,40}\]": \{\s*"artifacts": \[')

_ENVELOPE: Final = ("rank", "compiled_autograd_id", "frame_id", "frame_compile_id", "attempt")
_BESIDE: Final = ("has_payload", "payload_filename", "lineno", "pathname", "thread", "timestamp")
_ABOUT_IT: Final = {*_ENVELOPE, *_BESIDE}
_COMPILE: Final = re.compile(
    r"(?:!?(?P<compiled_autograd_id>\d+)/)?(?P<frame_id>\d+)/(?P<frame_compile_id>\d+)(?:_(?P<attempt>\d+))?"
)
_ARTIFACT: Final = re.compile(r"(\w+)_\d+\.(?:json|txt)")
_FRAME: Final = re.compile(r"<li>([^<>\n]+):(\d+) in ([^<>\n]+)<br>")
_MOST_BYTES: Final = 64 << 20


def from_records(stream: IO[bytes]) -> Iterator[bytes]:
    """The records of ``raw.jsonl`` as torch wrote them."""
    strings: list[Any] | None = None
    has_begun = False
    for line in stream:
        try:
            record = load_json(line)
            strings = record.get("string_table", strings)
            at = datetime.fromisoformat(record.get("timestamp", "0001-01-01"))
            (kind,) = record.keys() - _ABOUT_IT
        except (ValueError, AttributeError, TypeError):
            yield line
            continue
        place = f"{record.get('thread')} {str(record.get('pathname')).strip()}:{record.get('lineno')}"
        if kind == "string_table":
            continue
        if not has_begun:
            has_begun = True
            stamp = re.search(rb'"ts": ?(\d+)', _beside(stream, "chromium_events.json") or b"")
            ts = int(stamp[1]) if stamp else at.replace(tzinfo=UTC).timestamp() * 1e6
            event = json.dumps({"name": "", "ph": "i", "ts": ts}).encode()
            yield _record(at, place, "chromium_event", {}, {}, event)
            for number, text in enumerate(strings or ()):
                yield _record(at, place, "str", [text, number], {})
        value, payload = record[kind], _beside(stream, record.get("payload_filename"))
        if isinstance(value, dict) and "name" in value:
            value = {"name": value["name"], **value}
            # Its name says how a lookup went.
            if payload is None and kind == "artifact" and value["name"] in LOOKUP_ARTIFACTS:
                payload = b"{}"
        yield _record(at, place, kind, value, record, payload)


def from_list(stream: IO[bytes]) -> Iterator[bytes]:
    """The lookups, the reasons of recompiles and the events of a folder of tlparse that has nothing else."""
    found: list[tuple[float, bytes]] = []
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, OverflowError, OSError):
        listed = load_json(stream.read(_MOST_BYTES))
        events: Any = load_json(_beside(stream, "chromium_events.json") or b"")
        of_compile = by_key(((event.get("args") or {}).get("compile_id", ""), event) for event in events)
        for compile_id, those in of_compile.items():
            ids = _ids(compile_id)
            for event in those:
                payload = json.dumps({"name": event["name"], "ts": event["ts"], **event}, indent=0).encode()
                found.append((event["ts"], _at(event["ts"], "chromium_event", {}, ids, payload)))
        times = {one: [event["ts"] for event in those] for one, those in of_compile.items()}
        spans = {one: (min(those), max(those)) for one, those in times.items()}
        whole = min(first for first, _ in spans.values()), max(last for _, last in spans.values())
        for number, (title, one) in enumerate(listed.items()):
            ids, (first, later) = _ids(title.strip("[]")), spans.get(title.strip("[]"), whole)
            stack = []
            for item in reversed(one["artifacts"]):
                match, content = _ARTIFACT.fullmatch(item["name"]), _beside(stream, item["url"]) or b"{}"
                kind, ts = match[1] if match else "", later
                if kind == RECOMPILE_ARTIFACT:
                    ts = first - 2  # torch writes the reasons before it begins
                elif kind in LOOKUP_ARTIFACTS and (began := load_json(content).get("cache_event_time")):
                    # Those without a time precede the next that has one.
                    later = began / 1000 - 1
                    ts = later + load_json(content).get("time_taken_ns", 0) / 1000
                if kind in LOOKUP_ARTIFACTS or kind in (RECOMPILE_ARTIFACT, RUNNABLE_ARTIFACT):
                    value = {"name": kind, "encoding": "json"}
                    found.append((ts, _at(ts, "artifact", value, ids, content)))
                elif item["name"].startswith("compilation_metrics"):
                    # The first stack of the page is the compile's.
                    stack = _FRAME.findall(content.partition(b"</div>")[0].decode("utf-8", "replace"))[-1:]
            frames = [{"filename": number, "line": int(line), "name": name} for _, line, name in stack]
            begin = [_at(first, "str", [file, number], {}) for file, _, _ in stack]
            begin += [_at(first, "dynamo_start", {"stack": frames}, ids)] if ids else []
            found.append((first - 1, b"".join(begin)))
    yield from (record for _, record in sorted(found, key=lambda one: one[0]))


def _ids(compile_id: str) -> dict[str, int]:
    match = _COMPILE.fullmatch(compile_id)
    found = {} if match is None else {key: int(text) for key, text in match.groupdict().items() if text}
    return {"attempt": 0, **found} if found else {}


def _at(ts: float, kind: str, value: object, ids: dict[str, int], payload: bytes | None = None) -> bytes:
    place = "torch/_inductor/compile_fx.py:0" if "fx_graph" in str(value) else "torch/_dynamo/utils.py:0"
    return _record(datetime.fromtimestamp(ts / 1e6, UTC), f"0 {place}", kind, value, ids, payload)


def _record(
    at: datetime, place: str, kind: str, value: object, about: dict[str, Any], payload: bytes | None = None
) -> bytes:
    line = {kind: value, **{key: about[key] for key in _ENVELOPE if about.get(key) is not None}}
    if payload is not None:
        line["has_payload"] = hashlib.md5(payload, usedforsecurity=False).hexdigest()
    text = f"V{at:%m%d %H:%M:%S.%f} {place}] {json.dumps(line)}\n".encode()
    return text if payload is None else text + b"\t" + payload.replace(b"\n", b"\n\t") + b"\n"


def _beside(stream: IO[bytes], name: object) -> bytes | None:
    """A file in the folder of the stream's own; None if there is none, or a link leads out of the folder."""
    own = getattr(stream, "name", None)
    if isinstance(own, str) and isinstance(name, str) and "\0" not in name:
        folder = os.path.realpath(os.path.dirname(own))
        path = os.path.realpath(os.path.join(folder, name))
        if path.startswith(os.path.join(folder, "")) and os.path.isfile(path):
            with contextlib.suppress(OSError), open(path, "rb") as file:
                return file.read(_MOST_BYTES).rstrip(b"\n")
    return None
