"""Standalone artifacts: what ``torch._inductor.standalone_compile(...).save(path=..., format="binary")`` writes, torch 2.8 to 2.15.

One in the unpacked format is a cache directory, and is read as one.
"""

from __future__ import annotations

import zlib

from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.cache_file import DamagedContent, content_reader
from cachescope.readers.directory.graph_entries import take_bundled
from cachescope.readers.directory.mega_cache import fill_mega_cache, sized_bytes, sized_text
from cachescope.readers.kinds import AOT_HEADER, CACHE_HEADER, CHECKSUM_BYTES, TORCH_KEY_BYTES
from cachescope.readers.pickles.inert_pickle import loads_harmless
from cachescope.readers.reading import Reading
from cachescope.terms import AOTAUTOGRAD, MEGA_CACHE


def fill_standalone(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Read the AOTAutograd key, the key of the torch that wrote it, and the entries of torch's caches in it.

    Mirrors ``CacheCompiledArtifact.save`` and ``AOTCompiledArtifact.save``. torch loads it only if its own key is the same.
    """
    is_whole = zlib.crc32(data[CHECKSUM_BYTES:]).to_bytes(4, "big") == data[:CHECKSUM_BYTES]
    wrong = [] if is_whole else ["checksum differs from the content"]
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


read_standalone = content_reader(fill_standalone)
