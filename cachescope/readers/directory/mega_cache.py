"""Mega-cache files: the result of ``torch.compiler.save_cache_artifacts``, torch 2.7 to 2.15."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Final

from cachescope.readers.checked_file import DamagedContent, content_reader
from cachescope.readers.directory.aotautograd import check_aotautograd
from cachescope.readers.directory.fxgraph import check_fxgraph
from cachescope.readers.pickles.inert_pickle import Limits, NotRead
from cachescope.readers.reading import Entry, FileFacts, Reading
from cachescope.readers.steady_file import read_steady
from cachescope.terms import AOTAUTOGRAD, FXGRAPH, UNREADABLE

_CHECKSUM_BYTES: Final = 4
_VERSION: Final = (1).to_bytes(8, "big")
# `CacheArtifact.type` of the subclasses (torch/compiler/_cache.py names none of them itself).
_TYPES: Final = frozenset({"inductor", "aot_autograd", "autotune", "pgo", "precompile", "precompile_dynamo"})
_TYPE_NAMES: Final = tuple(base64.b64encode(name.encode()) for name in sorted(_TYPES))
_CHECKS: Final = {"inductor": (FXGRAPH, check_fxgraph), "aot_autograd": (AOTAUTOGRAD, check_aotautograd)}
HEAD_BYTES: Final = 64


def looks_like_mega_cache(head: bytes) -> bool:
    """Whether these are the first bytes of a mega-cache: an optional checksum, the version, a known type.

    Mirrors ``AppendingByteSerializer`` (torch/utils/_appending_byte_serializer.py).
    """
    return _start(head) is not None


def _start(head: bytes) -> int | None:
    for start in (_CHECKSUM_BYTES, 0):
        if head[start : start + 8] == _VERSION and any(
            head[start + 8 :].startswith(len(name).to_bytes(8, "big") + name) for name in _TYPE_NAMES
        ):
            return start
    return None


def fill_mega_cache(entry: Entry, name: str, data: bytes, reading: Reading) -> None:
    """Count the artifacts by type, and check the checksum and the entries among them.

    The entries are the same bytes as files on disk, so the hash details of their FX graphs are stored, too.
    """
    start = _start(data)
    if start is None:
        raise DamagedContent("no mega-cache")
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    fx_keys: dict[str, None] = {}
    try:
        for kind, key, content, _ in _artifacts(data, start + len(_VERSION)):
            counts[kind] += 1
            if kind in _CHECKS:
                damage = _check(entry, kind, key, content, reading, fx_keys)
                if damage is not None:
                    wrong.append(f"{kind} {key[:60]}: {damage}")
    finally:
        entry.detail = ", ".join(f"{kind} {count}" for kind, count in counts.items())
        entry.fx_keys = tuple(fx_keys)
    if start == _CHECKSUM_BYTES and zlib.crc32(data[start:]).to_bytes(4, "big") != data[:start]:
        wrong.insert(0, "checksum differs from the content")
    if wrong:
        raise DamagedContent("; ".join(wrong[:3]))


def _check(
    whole: Entry, kind: str, key: str, content: bytes, reading: Reading, fx_keys: dict[str, None]
) -> str | None:
    cache, check = _CHECKS[kind]
    inner = Entry(cache=cache, path=whole.path, root=whole.root, cache_key=key)
    damage, _ = check(inner, content, reading)
    if kind == "inductor":
        fx_keys[key] = None
        if inner.details is not None:
            reading.details_of_key[key] = inner.details
    whole.device_types = tuple(dict.fromkeys((*whole.device_types, *inner.device_types)))
    return damage


def _artifacts(data: bytes, at: int) -> Iterator[tuple[str, str, bytes, int]]:
    """Type, key and content of each artifact, and the offset of the content (``CacheArtifactManager.serialize``)."""
    while at < len(data):
        kind, at = _text(data, at)
        if kind not in _TYPES:
            raise DamagedContent(f"an artifact of unknown type {kind[:40]!r}", at)
        count, at = _number(data, at)
        for _ in range(count):
            key, at = _text(data, at)
            content, at = _bytes(data, at)
            yield kind, key, content, at - len(content)


def artifacts(data: bytes) -> Iterator[tuple[str, str, bytes, int]]:
    """Yield type, key and content of each artifact of a mega-cache, and the offset of the content.

    Raises
    ------
    DamagedContent
        If the data is no mega-cache, or at the point where it breaks off.
    """
    start = _start(data)
    if start is None:
        raise DamagedContent("no mega-cache")
    yield from _artifacts(data, start + len(_VERSION))


def _number(data: bytes, at: int) -> tuple[int, int]:
    if at + 8 > len(data):
        raise DamagedContent("truncated", len(data))
    return int.from_bytes(data[at : at + 8], "big"), at + 8


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = _number(data, at)
    if at + length > len(data):
        raise DamagedContent("truncated", len(data))
    return data[at : at + length], at + length


def _text(data: bytes, at: int) -> tuple[str, int]:
    raw, end = _bytes(data, at)
    try:
        return base64.b64decode(raw, validate=True).decode(), end
    except (binascii.Error, UnicodeDecodeError) as error:
        raise DamagedContent("a text that is no base64 of UTF-8", at) from error


read_mega_cache = content_reader(fill_mega_cache)


def read_as_directory(path: str, reading: Reading) -> None:
    """Read the entries in a mega-cache as those of a directory that has the path of the file: what torch has once it loaded it."""
    inside = entries_inside(path, reading)
    facts: list[FileFacts] = [
        (one.cache, path, path, None, None, one.cache_key, one.status, None) for one in inside
    ]
    reading.entries.add(facts, dict(enumerate(inside)))
    reading.cache_roots.append(path)


def is_mega_cache(path: str) -> bool:
    """Whether this is a file that begins as a mega-cache does."""
    try:
        with open(path, "rb", buffering=0) as file:
            return looks_like_mega_cache(file.read(HEAD_BYTES) or b"")
    except OSError:
        return False


def entries_inside(path: str, reading: Reading) -> list[Entry]:
    """Read the FX and AOTAutograd entries in a mega-cache, as if each were in the directory ``path``.

    Torch writes them to its cache directory when it loads the file. From a file that is cut, the entries before the
    cut are read.
    """
    try:
        data, _ = read_steady(path, Limits().size_bytes)
    except OSError:
        return []
    start = _start(data)
    found: list[Entry] = []
    try:
        for kind, key, content, _ in _artifacts(data, len(_VERSION) + start) if start is not None else ():
            if kind in _CHECKS:
                cache, check = _CHECKS[kind]
                inner = Entry(cache=cache, path=path, root=path, cache_key=key)
                found.append(inner)
                try:
                    inner.damage, _ = check(inner, content, reading)
                except NotRead as error:
                    inner.status, inner.damage = UNREADABLE, error.what
                else:
                    inner.status = "ok" if inner.damage is None else "damaged"
    except DamagedContent:
        pass
    return found
