"""Snapshots of isolation contexts: the JSON file of ``cachescope capture``.

A bare ``_isolation_context()`` written as JSON is read too. Never torch, never pickle.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Final

from cachescope.errors import SourceError
from cachescope.keys import CONTEXT_FORMS

SNAPSHOT_VERSION: Final = 1
# A context is about 100 kB; what is far beyond that is no snapshot and is not loaded.
MAX_BYTES: Final = 64 * 1024 * 1024

_HEAD: Final = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:cachescope_snapshot|runtime_context|compile_context)"\s*:'
)
# Everything beside the context, and the JSON type it has where it is given.
_FIELDS: Final[dict[str, type]] = {
    "context_source": str,
    "torch_version": str,
    "python_version": str,
    "platform": str,
    "host": str,
    "pid": int,
    "time": str,
    "environment": dict,
    "device_properties": list,
    "not_json": list,
}


def looks_like_snapshot(head: bytes) -> bool:
    """Tell from its first bytes whether a file is meant as a snapshot or a bare context.

    Parameters
    ----------
    head : bytes
        The start of the file; a hundred bytes are enough.

    Examples
    --------
    >>> looks_like_snapshot(b'{"cachescope_snapshot": 1, "context": {')
    True
    >>> looks_like_snapshot(b'{"system": {')
    False
    """
    return _HEAD.match(head) is not None


def read_snapshot(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read and check a snapshot, or a bare isolation context written as JSON.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    dict
        The keys of `cachescope.capture.contexts.capture`, all of them. What the file does not
        say is None, or empty for ``environment``, ``device_properties`` and ``not_json``; for
        a bare context ``cachescope_snapshot`` is None. Forms that this version of cachescope
        does not know are kept.

    Raises
    ------
    SourceError
        If the file cannot be read, is no JSON, or is no snapshot.
    """
    name = os.fspath(path)
    document = _load(name)
    if not isinstance(document, dict):
        raise SourceError(name, "a snapshot is a JSON object")
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
    _check_context(name, document.get("context"))
    return {
        "cachescope_snapshot": document["cachescope_snapshot"],
        "context": document["context"],
        **{field: _field(name, document, field) for field in _FIELDS},
    }


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


def _check_context(name: str, context: object) -> None:
    if not isinstance(context, dict) or set(context) != set(CONTEXT_FORMS):
        raise SourceError(name, f"its context does not have exactly the keys {', '.join(CONTEXT_FORMS)}")
    for section, values in context.items():
        if values is not None and not isinstance(values, dict):
            raise SourceError(name, f"{section} is neither null nor an object")


def _field(name: str, document: dict[str, Any], field: str) -> Any:
    kind = _FIELDS[field]
    value: Any = document.get(field)
    if value is None:
        return kind() if kind in (dict, list) else None
    if not isinstance(value, kind):
        raise SourceError(name, f"{field} is {type(value).__name__}, not {kind.__name__}")
    items: Any = value.values() if isinstance(value, dict) else value
    if kind in (dict, list) and not all(isinstance(item, str) for item in items):
        raise SourceError(name, f"{field} holds something that is not text")
    return value
