"""What the bytes of damaged logs still say for certain, found without the package: torch's own lines and records."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from pathlib import Path

from tests.wild.damaged_logs import logs

_OUTCOME = re.compile(
    rb"^(?:[^\n]*?[VIWEC]\d{4} \S+ (?P<pid>\d+) [^\n]*\]|INFO:\S+) "
    rb"(?:fx graph|AOTAutograd) cache (?:hit|miss) for key (?P<key>[fa][a-z2-7]{51})\r?\n",
    re.MULTILINE,
)
_RECORD = re.compile(rb"^(?=[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d{6} )", re.MULTILINE)
_HEAD = re.compile(rb"[VIWEC]\d{4} \S+ (?P<pid>\d+) [^\n]*?\] (?P<json>\{[^\n]*\})\n")
_ARTIFACT = re.compile(r"(?:fx_graph|aotautograd)_cache_(?:hit|miss|hash)")
_Said = Counter[tuple[bytes, str]]


def outcomes_left(folder: Path, kinds: list[str]) -> Counter[str]:
    """How many lookups of each key the logs of these kinds still tell the outcome of, in whole lines or records."""
    said: _Said = Counter()
    for kind in kinds:
        of_kind: _Said = Counter()
        for path in logs(folder, kind):
            # What may not be read, and what is compressed, is asked for nothing.
            if os.access(path, os.R_OK, effective_ids=True):
                of_kind += (_in_text if kind == "text" else _in_trace)(path)
        # A trace and a text log tell of the same lookups.
        said |= of_kind
    found: Counter[str] = Counter()
    for (_, key), count in said.items():
        found[key] += count
    return found


def _in_text(path: Path) -> _Said:
    return Counter(
        (match["pid"] or path.name.encode(), match["key"].decode())
        for match in _OUTCOME.finditer(path.read_bytes())
    )


def _in_trace(path: Path) -> _Said:
    """Of 2.5 to 2.15: one artifact is one lookup, and its payload is whole where its hash is right."""
    found: _Said = Counter()
    for record in _RECORD.split(path.read_bytes()):
        head = _HEAD.match(record)
        if head is None or b'"artifact"' not in head["json"]:
            continue
        told = json.loads(head["json"])
        payload = b"\n".join(line[1:] for line in record[head.end() :].removesuffix(b"\n").split(b"\n"))
        is_whole = hashlib.md5(payload, usedforsecurity=False).hexdigest() == told.get("has_payload")
        if is_whole and _ARTIFACT.fullmatch(told["artifact"]["name"]):
            key = json.loads(payload).get("key")
            if key:
                found[head["pid"], key] += 1
    return found
