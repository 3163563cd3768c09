"""Files that hold entries of torch's caches: mega-caches and standalone artifacts.

Mega-caches are the result of ``torch.compiler.save_cache_artifacts``, torch 2.7 to 2.15. Standalone artifacts are what
``torch._inductor.standalone_compile(...).save(path=..., format="binary")`` writes, torch 2.8 to 2.15; one in the unpacked
format is a cache directory, and is read as one.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from cachescope.errors import SourceError
from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.cache_file import DamagedContent, marked, read_steady
from cachescope.readers.directory.dynamo_packages import key_in_name
from cachescope.readers.directory.graph_entries import check_aotautograd, check_fxgraph, take_bundled
from cachescope.readers.kinds import (
    AOT_HEADER,
    CACHE_HEADER,
    CHECKSUM_BYTES,
    HEAD_BYTES,
    MEGA_TYPES,
    MEGA_VERSION,
    TORCH_KEY_BYTES,
    TYPES_OF_2_7,
    is_of_2_7,
    looks_like_standalone,
    mega_cache_start,
)
from cachescope.readers.pickles.inert_pickle import Limits, NotRead, loads_harmless
from cachescope.readers.reading import Reading
from cachescope.terms import AOTAUTOGRAD, BEST_CONFIG, FXGRAPH, MEGA_CACHE, PGO, PRECOMPILE, UNREADABLE

_ALTERED: Final = "checksum differs from the content"


def fill_standalone(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Read the AOTAutograd key, the key of the torch that wrote it, and the entries of torch's caches in it.

    Mirrors ``CacheCompiledArtifact.save`` and ``AOTCompiledArtifact.save``. torch loads it only if its own key is the same.
    """
    is_whole = zlib.crc32(data[CHECKSUM_BYTES:]).to_bytes(4, "big") == data[:CHECKSUM_BYTES]
    wrong = [] if is_whole else [_ALTERED]
    header, at = sized_bytes(data, CHECKSUM_BYTES)
    torch_key, at = sized_bytes(data, at) if header in (CACHE_HEADER, AOT_HEADER) else (header, at)
    if len(torch_key) != TORCH_KEY_BYTES:
        raise DamagedContent("no standalone artifact: it has no key of torch", CHECKSUM_BYTES)
    made_by = f"torch key {torch_key.hex()}"
    entry.detail = made_by
    if header == AOT_HEADER:
        pickled, at = sized_bytes(data, at)
        take_bundled(entry, loads_harmless(pickled), reading)
    else:
        entry.cache_key, at = sized_text(data, at)
        blob, at = sized_bytes(data, at)
        try:
            fill_mega_cache(entry, name, blob, reading)
        except DamagedContent as error:
            wrong.append(error.what)
        entry.detail = f"{entry.detail}; {made_by}"
    if at != len(data):
        wrong.append("bytes follow its end")
    if wrong:
        raise DamagedContent("; ".join(wrong))


def content_of(data: bytes) -> tuple[str, bytes]:
    """The last part of a standalone artifact: what ``save_cache_artifacts`` gave, or one pickled AOTAutograd result."""
    header, at = sized_bytes(data, CHECKSUM_BYTES)
    if header in (CACHE_HEADER, AOT_HEADER):
        _, at = sized_bytes(data, at)
    if header == AOT_HEADER:
        return AOTAUTOGRAD, sized_bytes(data, at)[0]
    _, at = sized_text(data, at)
    return MEGA_CACHE, sized_bytes(data, at)[0]


CHECKS: Final = {"inductor": (FXGRAPH, check_fxgraph), "aot_autograd": (AOTAUTOGRAD, check_aotautograd)}
"""The kind of entry, and what checks it, of the types that are entries."""


def fill_mega_cache(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Count the artifacts by type, and check the checksum and the entries among them.

    The entries are the same bytes as files on disk, so the hash details of their FX graphs are stored, too.
    """
    if mega_cache_start(data) is None:
        raise DamagedContent("no mega-cache")
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    fx_sets: dict[str, int | None] = {}
    lost = 0
    try:
        for kind, key, content, is_loaded in loaded_artifacts(data):
            counts[kind] += 1
            lost += not is_loaded
            if kind in CHECKS:
                inner = _entry_in(entry.path, entry.root, kind, key, content, reading)
                if inner.status == UNREADABLE:
                    raise NotRead(inner.damage or "")
                if kind == "inductor":
                    fx_sets[key] = inner.detail_set
                    if inner.detail_set is not None:
                        reading.details_of_key[key] = inner.detail_set
                entry.device_types = tuple(dict.fromkeys((*entry.device_types, *inner.device_types)))
                if inner.damage is not None:
                    wrong.append(f"{kind} {key[:60]}: {inner.damage}")
    finally:
        entry.detail = ", ".join(f"{kind} {count}" for kind, count in counts.items())
        if lost:
            loaded, total = counts.total() - lost, counts.total()
            entry.detail += f"; torch loads only what was saved last, {loaded} of {total}"
        if is_of_2_7(data[:HEAD_BYTES]):
            entry.detail += "; torch 2.7 alone loads this form"
        entry.fx_keys = tuple(fx_sets)
        sets = [one for one in fx_sets.values() if one is not None]
        entry.fx_detail_sets = tuple(sets) if len(sets) == len(fx_sets) else ()
    if not _is_as_saved(data):
        wrong.insert(0, _ALTERED)
    if wrong:
        raise DamagedContent("; ".join(wrong[:3]))


def _is_as_saved(data: bytes) -> bool:
    start = mega_cache_start(data)
    return not start or zlib.crc32(data[start:]).to_bytes(4, "big") == data[:start]


def why_not_loaded(data: bytes) -> str | None:
    """Why torch loads nothing of a mega-cache; None if it loads it, whatever its artifacts are.

    Mirrors ``BytesReader`` (torch/utils/_appending_byte_serializer.py) and ``CacheArtifactManager.deserialize``
    (torch/compiler/_cache.py).
    """
    try:
        for _ in artifacts(data):
            pass
    except DamagedContent as error:
        return error.what
    return None if _is_as_saved(data) else _ALTERED


def _entry_in(path: str, root: str, kind: str, key: str, content: bytes, reading: Reading) -> EntryRow:
    """An entry that is in a bundle, and whether it is whole."""
    cache, check = CHECKS[kind]
    inner = EntryRow(cache=cache, path=path, root=root, cache_key=key)
    # What is wrong with it is said of the bundle.
    with marked(inner, Reading()):
        check(inner, key, content, reading)
    return inner


class Artifact(NamedTuple):
    """One artifact of a mega-cache."""

    kind: str
    key: str
    content: bytes
    at: int  # the offset of the content
    group: int  # and that of the group that it is in


def artifacts(data: bytes) -> Iterator[Artifact]:
    """Yield each artifact of a mega-cache.

    Mirrors ``CacheArtifactManager.serialize``: one group for each type, and new groups each time that artifacts are saved.
    """
    start = mega_cache_start(data)
    if start is None:
        raise DamagedContent("no mega-cache")
    at = start + len(MEGA_VERSION)
    is_flat = is_of_2_7(data[:HEAD_BYTES])
    while at < len(data):
        if is_flat:
            number, at = _number(data, at)
            if number >= len(TYPES_OF_2_7):
                raise DamagedContent(f"an artifact of unknown type {number}", at)
            raw, at = sized_bytes(data, at)
            content, at = sized_bytes(data, at)
            key = raw.decode("utf-8", "replace")
            yield Artifact(TYPES_OF_2_7[number], key, content, at - len(content), start)
            continue
        group = at
        kind, at = sized_text(data, at)
        if kind not in MEGA_TYPES:
            raise DamagedContent(f"an artifact of unknown type {kind[:40]!r}", at)
        count, at = _number(data, at)
        for _ in range(count):
            key, at = sized_text(data, at)
            content, at = sized_bytes(data, at)
            yield Artifact(kind, key, content, at - len(content), group)


def loaded_artifacts(data: bytes) -> Iterator[tuple[str, str, bytes, bool]]:
    """Yield type, key and content of each artifact, and whether torch loads it.

    ``CacheArtifactManager.deserialize`` (torch/compiler/_cache.py, 2.10 to 2.15) makes a dict of the groups, by type: where a
    process saved twice, what it saved first is in the file, and lost.
    """
    last: dict[str, int] = {}
    with contextlib.suppress(DamagedContent):
        last.update((one.kind, one.group) for one in artifacts(data))
    for one in artifacts(data):
        yield one.kind, one.key, one.content, last[one.kind] == one.group


def _number(data: bytes, at: int) -> tuple[int, int]:
    if at + 8 > len(data):
        raise DamagedContent("truncated", len(data))
    return int.from_bytes(data[at : at + 8], "big"), at + 8


def sized_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    """Bytes behind their length (``BytesWriter.write_bytes``), and the offset behind them."""
    length, at = _number(data, at)
    if at + length > len(data):
        raise DamagedContent("truncated", len(data))
    return data[at : at + length], at + length


def sized_text(data: bytes, at: int) -> tuple[str, int]:
    """A text (``BytesWriter.write_str``), and the offset behind it."""
    raw, end = sized_bytes(data, at)
    try:
        return base64.b64decode(raw, validate=True).decode(), end
    except ValueError as error:
        raise DamagedContent("a text that is no base64 of UTF-8", at) from error


# What torch makes of the other artifacts that it loads (`CacheArtifact.populate_cache` of each).
_FILES: Final = {"autotune": BEST_CONFIG, "pgo": PGO, "precompile": PRECOMPILE}


class Held(NamedTuple):
    """What a mega-cache holds."""

    entries: list[EntryRow]  # the FX and AOTAutograd entries that torch loads from it
    # sha256 of the other artifacts that torch loads by kind and key, as in the frame entries; of a
    # ``best_config`` the key is its folder and name.
    files: dict[tuple[str, str], str]
    lost: frozenset[tuple[str, str]]  # kind and key of what was saved earlier, and torch does not load
    refused: str | None  # why torch loads nothing of it


def is_bundle(path: str) -> bool:
    """Whether this is a file that begins as a mega-cache or a standalone artifact does."""
    with contextlib.suppress(OSError):
        head, _ = read_steady(path, HEAD_BYTES)
        return mega_cache_start(head) is not None or looks_like_standalone(head)
    return False


def read_as_directory(path: str, reading: Reading) -> None:
    """Read the entries in a bundle as those of a directory that has the path of the file: what torch has once it loaded it."""
    reading.entries += entries_inside(path, reading)
    reading.cache_roots.append(path)


def held_in(path: str, reading: Reading) -> Held:
    """Read all that is in a mega-cache; a link to one is followed."""
    try:
        data, _ = read_steady(os.path.realpath(path), Limits().size_bytes)
    except OSError as error:
        raise SourceError(path, f"cannot be read: {error.strerror}") from error
    files: dict[tuple[str, str], str] = {}
    lost = set()
    with contextlib.suppress(DamagedContent):
        for kind, key, content, is_loaded in loaded_artifacts(data):
            cache = CHECKS[kind][0] if kind in CHECKS else _FILES.get(kind)
            if cache is not None:
                name = key_in_name(key) if cache == PGO else key
                if not is_loaded:
                    lost.add((cache, name))
                elif kind in _FILES:
                    # Of several under one key, torch writes the last one last.
                    files[cache, name] = hashlib.sha256(content).hexdigest()
    return Held(_entries_in(data, path, reading), files, frozenset(lost), why_not_loaded(data))


def entries_inside(path: str, reading: Reading) -> list[EntryRow]:
    """Read the FX and AOTAutograd entries in a bundle, as if each were in the directory ``path``.

    Torch writes them to its cache directory when it loads the file; what it does not load, as it was saved earlier, is left
    out. From a file that is cut, the entries before the cut are read.
    """
    try:
        data, _ = read_steady(os.path.realpath(path), Limits().size_bytes)
    except OSError:
        return []
    return _entries_in(data, path, reading)


def _entries_in(data: bytes, path: str, reading: Reading) -> list[EntryRow]:
    found: list[EntryRow] = []
    with contextlib.suppress(DamagedContent):
        if looks_like_standalone(data[:HEAD_BYTES]):
            holds, data = content_of(data)
            if holds != MEGA_CACHE:
                return []
        for kind, key, content, is_loaded in loaded_artifacts(data):
            if kind in CHECKS and is_loaded:
                found.append(_entry_in(path, path, kind, key, content, reading))
    return found
