"""Files that people ship by themselves, under names of their own: their content says what they are."""

from __future__ import annotations

from typing import Final

from cachescope.readers.checked_file import ReadFile
from cachescope.readers.directory.aot_compile import looks_like_aot_compile, read_aot_compile
from cachescope.readers.directory.aotinductor import looks_like_aotinductor, read_aotinductor
from cachescope.readers.directory.mega_cache import looks_like_mega_cache, read_mega_cache
from cachescope.readers.directory.standalone import looks_like_standalone, read_standalone
from cachescope.terms import AOT_COMPILE, AOTINDUCTOR, MEGA_CACHE, STANDALONE

HEAD_BYTES: Final = 256

SHIPPED_READERS: Final[dict[str, ReadFile]] = {
    MEGA_CACHE: read_mega_cache,
    STANDALONE: read_standalone,
    AOT_COMPILE: read_aot_compile,
    AOTINDUCTOR: read_aotinductor,
}


def shipped_kind(path: str, head: bytes) -> str | None:
    """What a file is that begins so; None for any other file."""
    if looks_like_mega_cache(head):
        return MEGA_CACHE
    if looks_like_standalone(head):
        return STANDALONE
    if looks_like_aot_compile(head):
        return AOT_COMPILE
    return AOTINDUCTOR if looks_like_aotinductor(path, head) else None
