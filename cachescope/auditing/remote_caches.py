"""Audits the values of a remote cache: torch unpickles some of them, and writes others to files that it then reads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from cachescope.auditing.contents import audit_content, audit_setting
from cachescope.auditing.findings import File, Finding, shown
from cachescope.keys.paths import get_path
from cachescope.readers.cache_file import DamagedContent, load_object
from cachescope.readers.kinds import looks_like_dump
from cachescope.readers.logs.byte_source import read_head
from cachescope.readers.pickles.inert_pickle import NotRead
from cachescope.readers.remote_cache.address import is_redis
from cachescope.readers.remote_cache.stored import Stored, content_of, kind_and_key
from cachescope.terms import BUNDLED_AUTOTUNE, OTHER

_CACHE: Final = "/cache"


def is_remote_cache(path: str) -> bool:
    """Whether this is the address of a Redis, or a dump of one."""
    return is_redis(path) or (os.path.isfile(path) and looks_like_dump(read_head(path, 256)))


def audit_value(root: str, one: Stored) -> Iterator[Finding]:
    """Yield the findings in one value."""
    kind, key = kind_and_key(one.key)
    path = f"{root}/{one.key}"
    if kind == OTHER:
        yield Finding("unknown-file", path, "a value that torch does not store")
    elif one.value is None:
        yield Finding("entry-not-read", path, one.why_not)
    else:
        try:
            content = content_of(kind, one.value)
        except DamagedContent as error:
            yield Finding("entry-damaged", path, error.what, error.offset, kind)
            return
        except NotRead as error:
            yield Finding("entry-not-read", path, error.what)
            return
        if kind == BUNDLED_AUTOTUNE:
            yield from _bundle(path, content)
        # torch names the entry only when it writes it.
        yield from audit_content(File(path, ".0.0.tmp", kind, key, content))


def _bundle(path: str, bundle: bytes) -> Iterator[Finding]:
    """Names that lead elsewhere: ``_AutotuneCacheBundlerImpl._load_cache`` makes a path of each, and writes to it; and what it writes."""
    for name, values in load_object(bundle).items():
        root, ending = os.path.splitext(name)
        written = os.path.normpath(get_path(root, ending[1:], cache_root=_CACHE)[2])
        if not written.startswith(_CACHE + os.sep):
            message = f"its configuration is written to the place {shown(name)}"
            yield Finding("path-escapes", path, message, None, BUNDLED_AUTOTUNE)
        if isinstance(values, dict):
            yield from audit_setting(File(path, name, BUNDLED_AUTOTUNE, None, b""), values)
