"""What torch wrote, from the recordings, taken apart into what is changed: records, messages, files.

Long lists of hash details are cut to a few, so that thousands of inputs a second can be made of them.
"""

from __future__ import annotations

import hashlib
import json
import re
import tarfile
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data"
RECORDINGS = (
    "2.6.0/dynamic_guards", "2.6.0/training", "2.10.0/training", "2.13.0/training", "2.13.0/dynamic_guards", "2.13.0/four_ranks",
    "2.13.0/entry_truncated", "2.13.0/bypass_freezing", "2.13.0/force_disabled", "2.13.0/failed_backward", "2.13.0/text_short",
    "2.13.0/config_flip_fx", "2.15.0/training",
)  # fmt: skip
DIRECTORIES = ("torch_2.13.0", "torch_2.6.0", "caching_2.10.0", "triton_kernels", "cutlass_configs")
SHIPPED = (
    "vllm/0.13.0", "vllm/0.33.0", "sglang/0.5.23", "shipped/2.10.0", "shipped/2.13.0", "shipped/2.15.0",
)  # fmt: skip
REMOTE = ("2.10.0", "2.13.0", "2.15.0")
_SHIPPED = re.compile(
    r"cache_key_factors\.json|(?:vllm|sglang)_compile_cache\.py|artifact_compile_range.*|model|"
    r"standalone(?:_aot)?\.bin|bundle\.bin|function\.pt|model\.pt|sources\.pt2"
)
_RECORD = re.compile(rb"(?m)^(?=[VIWEC]\d{4} )")
_LOOKUP = re.compile(rb'\{"artifact": \{"name": "(fx_graph|aotautograd)_cache_(?:hash|hit|miss|bypass)"')
_OUTCOME = re.compile(rb"(fx graph|AOTAutograd) cache (?:hit|miss) for key ([af][a-z2-7]{51})(?!\S)")
_MOST_OF_A_RECORD = 20_000
_DETAILS = 3


@dataclass(frozen=True)
class Piece:
    """A record of a trace, or a message of a text log, and the lookup that it alone tells of."""

    data: bytes
    lookup: tuple[str, str] | None = None
    is_touched: bool = False

    def changed(self, data: bytes) -> Piece:
        return replace(self, data=data, is_touched=True)


def record_of(line: bytes, payload: bytes | None) -> bytes:
    """A record with this payload, whose checksum holds."""
    if payload is None:
        return line
    digest = hashlib.md5(payload, usedforsecurity=False).hexdigest().encode()
    line = re.sub(rb'"has_payload": "[0-9a-f]{32}"', b'"has_payload": "%b"' % digest, line)
    return line + b"".join(b"\n\t" + part for part in payload.split(b"\n"))


def taken_apart(record: bytes) -> tuple[bytes, bytes | None]:
    line, _, rest = record.partition(b"\n\t")
    return line, rest.replace(b"\n\t", b"\n") if rest else None


class Seeds:
    """Everything that inputs are made of, unpacked below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        places = {f"recordings/{name}": folder / "recordings" / name for name in RECORDINGS}
        places |= {f"directories/{name}": folder / "directories" / name for name in DIRECTORIES}
        places |= {name: folder / "shipped" / name for name in SHIPPED}
        places |= {f"remote/{name}": folder / "remote" for name in REMOTE}
        for name, place in places.items():
            with tarfile.open(DATA / f"{name}.tar.xz") as archive:
                archive.extractall(place, filter="tar" if name.startswith("directories/") else "data")

    @cached_property
    def traces(self) -> list[list[Piece]]:
        found = [_records(path.read_bytes()) for path in sorted(self.folder.glob("recordings/*/*/trace/*"))]
        return [records for records in found if len(records) > 2]

    @cached_property
    def texts(self) -> list[list[Piece]]:
        found = [_messages(one.read_bytes()) for one in sorted(self.folder.glob("recordings/*/*/text/*.log"))]
        return [messages for messages in found if messages]

    @cached_property
    def entries(self) -> list[tuple[str, bytes]]:
        """Real entries of both caches."""
        return [
            (cache, path.read_bytes())
            for cache in ("fxgraph", "aotautograd")
            for path in sorted(self.folder.glob(f"recordings/*/cold*/cache/{cache}/**/*"))
            + sorted(self.folder.glob(f"recordings/*/training/cache/{cache}/**/*"))
            if path.is_file()
        ]

    @cached_property
    def directories(self) -> list[Path]:
        """Cache directories, small ones of recordings and whole ones."""
        return sorted(self.folder.glob("recordings/*/*/cache")) + sorted(self.folder.glob("directories/*"))

    @cached_property
    def files(self) -> list[Path]:
        """Every file of the whole directories that is not large."""
        found = sorted(self.folder.glob("directories/**/*"))
        return [
            path
            for path in found
            if path.is_file() and not path.is_symlink() and 0 < path.stat().st_size < 60_000
        ]

    @cached_property
    def shipped(self) -> list[tuple[Path, bytes]]:
        """Files of each kind that vLLM, SGLang and people ship, the smallest of each; where it lies says what some are."""
        found: dict[tuple[str, str], tuple[Path, bytes]] = {}
        for path in sorted(self.folder.glob("shipped/**/*")):
            if not path.is_file() or path.is_symlink() or not _SHIPPED.fullmatch(path.name):
                continue
            parts = path.relative_to(self.folder / "shipped").parts
            roots = [name for name in ("torch_compile_cache", "torch_aot_compile") if name in parts]
            place = Path(*parts[parts.index(roots[0]) :]) if roots else None
            data = path.read_bytes()
            kind = (parts[1], path.name.partition("_range")[0])
            if kind not in found or len(data) < len(found[kind][1]):
                found[kind] = place or Path(path.name), data
        return list(found.values())

    @cached_property
    def remote(self) -> list[tuple[str, dict[str, Any]]]:
        """Keys of remote caches, and the values under them."""
        dumps = sorted(self.folder.glob("remote/*/remote.jsonl"))
        records = [json.loads(line) for dump in dumps for line in dump.read_text().splitlines()]
        return [(record["key"], record["value"]) for record in records]

    @cached_property
    def json_files(self) -> list[tuple[Path, object]]:
        found = []
        for path in self.files:
            try:
                value = json.loads(path.read_bytes())
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict | list) and path.stat().st_size < 20_000:
                found.append((path, value))
        return found


def _records(data: bytes) -> list[Piece]:
    found = []
    for record in _RECORD.split(data)[1:]:
        line, payload = taken_apart(record.rstrip(b"\n"))
        lookup = _LOOKUP.search(line)
        if lookup is not None and payload is not None:
            told = json.loads(payload)
            if isinstance(told.get("components"), list):
                told["components"] = told["components"][:_DETAILS]
            payload = json.dumps(told).encode()
            if isinstance(told.get("key"), str):
                cache = "fxgraph" if lookup[1] == b"fx_graph" else "aotautograd"
                found.append(Piece(record_of(line, payload), (cache, told["key"])))
                continue
        whole = record_of(line, payload)
        if len(whole) < _MOST_OF_A_RECORD:
            found.append(Piece(whole))
    # One of each kind says as much as hundreds.
    seen: dict[bytes, int] = {}
    kept = []
    for piece in found:
        kind = piece.data.partition(b"] {")[2][:24]
        seen[kind] = seen.get(kind, 0) + 1
        if piece.lookup is not None or seen[kind] <= 2:
            kept.append(piece)
    return kept


def _messages(data: bytes) -> list[Piece]:
    """Lines one by one; of hash details only the first few."""
    found = []
    details = 0
    for line in data.split(b"\n"):
        details = details + 1 if re.search(rb"(?:^|\] )\[[a-z2-7]{51}\] ", line) else 0
        outcome = _OUTCOME.search(line)
        lookup = None
        if outcome is not None:
            lookup = ("fxgraph" if outcome[1] == b"fx graph" else "aotautograd", outcome[2].decode())
        if details <= _DETAILS and len(line) < 4_000:
            found.append(Piece(line, lookup))
    at = [i for i, piece in enumerate(found) if piece.lookup is not None]
    return found[max(at[0] - 12, 0) : at[-1] + 4][:120] if at else []
