"""Values of torch's remote caches, from a server or a dump, as rows of ``entries``: the same entries as in a cache directory.

Mirrors ``RedisRemoteCache`` and its users, torch 2.6 to 2.15: the key ``pt2:<cache id>::<key>:c1``, and JSON as the value.
A cache holds one value per key: an entry with other guards replaces the one before.

``{"key": "pt2:fx-graph-v1::f…:c1", "value": {"data": "gASV…", "time_taken_ms": 812}}``
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import lzma
import re
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.cache_file import DamagedContent, Fill, load_object, marked
from cachescope.readers.directory.bundles import CHECKS
from cachescope.readers.directory.dynamo_packages import CODE_STATE, fill_code_state, key_in_name
from cachescope.readers.directory.triton_files import fill_best_config
from cachescope.readers.json_record import well_formed
from cachescope.readers.logs.byte_source import open_bytes
from cachescope.readers.pickles.inert_pickle import Limits, NotRead
from cachescope.readers.reading import FileFacts, Reading, entry_of
from cachescope.terms import AOTAUTOGRAD, BEST_CONFIG, BUNDLED_AUTOTUNE, FXGRAPH, OTHER, PGO

MOST_BYTES: Final = Limits().size_bytes // 3 * 4 + 1024
"""What a value may have: the largest entry that is read, as base64."""

# `RedisRemoteCache.__init__` (torch/_inductor/remote_cache.py); another version is of a torch that is not known yet.
_KEY_BEGINS, _ENDS = "pt2:", ":c1"
# The `cache_id` of each `create_cache` in torch.
_KINDS: Final = {
    "fx-graph-v1": FXGRAPH,
    "autograd-experimental": AOTAUTOGRAD,
    "bundled-autotune-v1": BUNDLED_AUTOTUNE,
    "dynamo-pgo": PGO,
}
# `AutotuneCache._setup_remote_autotune_cache`: a hash of torch, backend and configurations.
_OF_A_KERNEL: Final = re.compile(r"[0-9a-f]{64}")
_PICKLED: Final = (FXGRAPH, AOTAUTOGRAD, PGO)
_SHOWN: Final = 5
# An empty list takes thirty times its text. A bundle has some values for each kernel of a graph.
_MOST_VALUES: Final = 200_000

# A key may be as long as a value; torch's have some hundred bytes.
_MOST_LINE_BYTES: Final = MOST_BYTES + (1 << 16)


@dataclass(frozen=True, slots=True)
class Stored:
    """One value of a remote cache."""

    key: str  # the whole key
    value: bytes | dict[str, object] | None  # the value, as text or parsed; None if it was not read
    size_bytes: int | None = None  # the size of a value that was not read
    why_not: str = ""  # why it was not read


def kind_and_key(key: str) -> tuple[str, str | None]:
    """The kind of entry under a whole key, and its own key; `OTHER` if torch is not known to store anything there."""
    cache, divided, own = key.removeprefix(_KEY_BEGINS).removesuffix(_ENDS).partition("::")
    if not (divided and key.startswith(_KEY_BEGINS) and key.endswith(_ENDS)):
        return OTHER, None
    kind = BEST_CONFIG if _OF_A_KERNEL.fullmatch(cache) else _KINDS.get(cache, OTHER)
    return kind, key_in_name(own) if kind == PGO else own


def read_stored(root: str, found: Iterable[Stored], reading: Reading) -> None:
    """Read values into ``reading.entries``, as those of the directory `root`."""
    seen_ns = time.time_ns()
    facts: list[FileFacts] = []
    opened: dict[int, EntryRow | None] = {}
    try:
        for number, one in enumerate(found):
            kind, key = kind_and_key(one.key)
            status = "foreign" if kind == OTHER else "ok"
            facts.append((kind, f"{root}/{one.key}", root, one.size_bytes, None, key, status, None))
            if kind != OTHER:
                opened[number] = entry = entry_of(facts[number])
                _fill(entry, one, reading)
    finally:
        # What was read before a server went away is there.
        reading.entries.add(facts, opened, seen_ns)
        reading.cache_roots.append(root)


def object_in(text: bytes) -> dict[str, object]:
    """The object that a value or a line of a dump is."""
    if text.count(b",") > _MOST_VALUES:
        raise NotRead(f"more than {_MOST_VALUES:,} values of JSON: not read")
    return load_object(text)


def content_of(kind: str, value: bytes | dict[str, object]) -> bytes:
    """The bytes that torch would have in a file."""
    stored = object_in(value) if isinstance(value, bytes) else value
    if kind not in _PICKLED:
        return json.dumps(stored).encode("ascii")
    data = stored.get("data")
    if not isinstance(data, str):
        raise DamagedContent("holds no text called data")
    try:
        return base64.b64decode(data)
    except (binascii.Error, ValueError) as error:
        raise DamagedContent("its data are no base64") from error


def _fill(entry: EntryRow, one: Stored, reading: Reading) -> None:
    with marked(entry, reading):
        if one.value is None:
            raise NotRead(one.why_not)
        content = content_of(entry.cache, one.value)
        entry.size_bytes = len(content)
        if len(content) > Limits().size_bytes:
            raise NotRead(f"more than {Limits().size_bytes} bytes: not read")
        if entry.cache in _CHECKS:
            damage, offset = _CHECKS[entry.cache](entry, content, reading)
            if damage is not None:
                raise DamagedContent(damage, offset)
        else:
            _FILLS[entry.cache](entry, CODE_STATE, content, reading)


def _fill_bundle(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Note the configurations in a bundle (``_AutotuneCacheBundlerImpl``, torch/_inductor/runtime/autotune_cache.py)."""
    shown: list[str] = []
    bundle = load_object(data)
    for file, best in bundle.items():
        inner = EntryRow(cache=BEST_CONFIG, path=entry.path, root=entry.root)
        fill_best_config(inner, file, json.dumps(best).encode("ascii"), reading)
        entry.triton_hashes += inner.triton_hashes
        if len(shown) < _SHOWN:
            shown.append(f"{well_formed(file)[:12]}…: {inner.detail}")
    more = [f"{len(bundle) - _SHOWN} more"] if len(bundle) > _SHOWN else []
    entry.detail = "; ".join([*shown, *more])


_CHECKS: Final = dict(CHECKS.values())
_FILLS: Final[dict[str, Fill]] = {
    PGO: fill_code_state,
    BEST_CONFIG: fill_best_config,
    BUNDLED_AUTOTUNE: _fill_bundle,
}


def read_dump(path: str, reading: Reading) -> None:
    """Read a dump, plain or compressed, into ``reading.entries``."""
    read_stored(path, stored_in_dump(path, reading), reading)


def stored_in_dump(path: str, reading: Reading) -> Iterator[Stored]:
    """Yield the values of a dump, in its order; an invalid line becomes a problem."""
    number = 0
    with open_bytes(path) as file:
        stream = io.BufferedReader(file)  # type: ignore[type-var]
        try:
            while line := stream.readline(_MOST_LINE_BYTES):
                number += 1
                try:
                    yield _stored(line)
                except (DamagedContent, NotRead) as error:
                    reading.problem(path, f"line {number}", "not_json", error.what)
                while len(line) == _MOST_LINE_BYTES and not line.endswith(b"\n"):
                    line = stream.readline(_MOST_LINE_BYTES)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            reading.problem(path, f"line {number + 1}", "damaged_compression", str(error))


def _stored(line: bytes) -> Stored:
    record = object_in(line)
    key, value = record.get("key"), record.get("value")
    if not isinstance(key, str) or not isinstance(value, dict):
        raise DamagedContent("no key with an object as its value")
    return Stored(well_formed(key), value)
