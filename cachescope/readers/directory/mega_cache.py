"""Mega-cache files: the result of ``torch.compiler.save_cache_artifacts``, torch 2.7 to 2.15."""

from __future__ import annotations

import base64
import binascii
import contextlib
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Final

from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.cache_file import DamagedContent, content_reader
from cachescope.readers.directory.graph_entries import check_aotautograd, check_fxgraph
from cachescope.readers.kinds import MEGA_TYPES, MEGA_VERSION, mega_cache_start
from cachescope.readers.reading import Reading
from cachescope.terms import AOTAUTOGRAD, FXGRAPH

_ALTERED: Final = "checksum differs from the content"
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
    fx_keys: dict[str, None] = {}
    lost = 0
    try:
        for kind, key, content, is_loaded in loaded_artifacts(data):
            counts[kind] += 1
            lost += not is_loaded
            if kind in CHECKS:
                damage = _check(entry, kind, key, content, reading, fx_keys)
                if damage is not None:
                    wrong.append(f"{kind} {key[:60]}: {damage}")
    finally:
        entry.detail = ", ".join(f"{kind} {count}" for kind, count in counts.items())
        if lost:
            entry.detail += (
                f"; torch loads only what was saved last, {counts.total() - lost} of {counts.total()}"
            )
        entry.fx_keys = tuple(fx_keys)
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


def _check(
    whole: EntryRow, kind: str, key: str, content: bytes, reading: Reading, fx_keys: dict[str, None]
) -> str | None:
    cache, check = CHECKS[kind]
    inner = EntryRow(cache=cache, path=whole.path, root=whole.root, cache_key=key)
    damage, _ = check(inner, content, reading)
    if kind == "inductor":
        fx_keys[key] = None
        if inner.detail_set is not None:
            reading.details_of_key[key] = inner.detail_set
    whole.device_types = tuple(dict.fromkeys((*whole.device_types, *inner.device_types)))
    return damage


def _grouped(data: bytes, at: int) -> Iterator[tuple[int, str, str, bytes, int]]:
    """Where its group begins, type, key and content of each artifact, and the offset of the content.

    Mirrors ``CacheArtifactManager.serialize``: one group for each type, and new groups each time that artifacts are saved.
    """
    while at < len(data):
        group = at
        kind, at = sized_text(data, at)
        if kind not in MEGA_TYPES:
            raise DamagedContent(f"an artifact of unknown type {kind[:40]!r}", at)
        count, at = _number(data, at)
        for _ in range(count):
            key, at = sized_text(data, at)
            content, at = sized_bytes(data, at)
            yield group, kind, key, content, at - len(content)


def _all_of(data: bytes) -> Iterator[tuple[int, str, str, bytes, int]]:
    start = mega_cache_start(data)
    if start is None:
        raise DamagedContent("no mega-cache")
    yield from _grouped(data, start + len(MEGA_VERSION))


def artifacts(data: bytes) -> Iterator[tuple[str, str, bytes, int]]:
    """Yield type, key and content of each artifact of a mega-cache, and the offset of the content."""
    for _, kind, key, content, at in _all_of(data):
        yield kind, key, content, at


def loaded_artifacts(data: bytes) -> Iterator[tuple[str, str, bytes, bool]]:
    """Yield type, key and content of each artifact, and whether torch loads it.

    ``CacheArtifactManager.deserialize`` (torch/compiler/_cache.py, 2.10 to 2.15) makes a dict of the groups, by type: where a
    process saved twice, what it saved first is in the file, and lost.
    """
    last: dict[str, int] = {}
    with contextlib.suppress(DamagedContent):
        last.update((kind, group) for group, kind, *_ in _all_of(data))
    for group, kind, key, content, _ in _all_of(data):
        yield kind, key, content, last[kind] == group


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
    except (binascii.Error, UnicodeDecodeError) as error:
        raise DamagedContent("a text that is no base64 of UTF-8", at) from error


read_mega_cache = content_reader(fill_mega_cache)
