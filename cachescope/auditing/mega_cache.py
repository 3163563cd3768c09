"""Audits a mega-cache file: torch writes its contents to the cache directory, and then loads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from cachescope.auditing.audited_file import File
from cachescope.auditing.finding import Finding, shown
from cachescope.auditing.known import ANY
from cachescope.auditing.pickles import Place, audit_bytes, audit_pickle
from cachescope.readers.checked_file import DamagedContent
from cachescope.readers.directory.mega_cache import artifacts
from cachescope.terms import AOT_KEY, AOTAUTOGRAD, FX_KEY, FXGRAPH, HASH, MEGA_CACHE, PGO, PRECOMPILE

_ENTRIES: Final = {"inductor": FXGRAPH, "aot_autograd": AOTAUTOGRAD}
_PICKLES: Final = {"pgo": PGO, "precompile": PRECOMPILE, "precompile_dynamo": PRECOMPILE}
# `populate_cache` of each type joins its key to a folder (torch/_inductor/codecache.py, autograd_cache.py, ...).
_KEYS: Final = {
    "inductor": FX_KEY,
    "aot_autograd": re.compile(rf"{AOT_KEY.pattern}|0\.\d+(?:e-\d+)?|[0-9a-f]{{32}}"),
    "autotune": re.compile(rf"[a-z2-7]{{2}}/(?:[0-9a-f]{{64}}|c{HASH})\.best_config"),
}
_NO_PATH: Final = re.compile(r"(?!\.\.?$)[^/\\\0]+")


def audit_mega_cache(
    path: str, data: bytes, audit_entry: Callable[[File], Iterator[Finding]]
) -> Iterator[Finding]:
    """Yield the findings in each artifact of a mega-cache.

    Parameters
    ----------
    path : str
        The file.
    data : bytes
        Its whole content.
    audit_entry : callable
        Audits an FX or AOTAutograd entry.
    """
    try:
        for kind, key, content, at in artifacts(data):
            yield from _key(path, kind, key, at)
            yield from (_moved(finding, at) for finding in _content(path, kind, key, content, audit_entry))
    except DamagedContent as error:
        yield Finding("entry-damaged", path, error.what, error.offset, MEGA_CACHE)


def _key(path: str, kind: str, key: str, at: int) -> Iterator[Finding]:
    # The key of PGO is a job's name, from which torch removes anything that leads elsewhere (`code_state_path`).
    pattern = _KEYS.get(kind, _NO_PATH)
    if kind != "pgo" and not pattern.fullmatch(key):
        message = f"its {kind} artifact is written to the place {shown(key)}"
        yield Finding("path-escapes", path, message, at, MEGA_CACHE)


def _content(
    path: str, kind: str, key: str, content: bytes, audit_entry: Callable[[File], Iterator[Finding]]
) -> Iterator[Finding]:
    if kind in _ENTRIES:
        # torch names the entry only when it writes it.
        yield from audit_entry(File(path, ".0.0.tmp", _ENTRIES[kind], key, content))
    elif kind in _PICKLES:
        yield from audit_pickle(content, Place(path, _PICKLES[kind])).findings
    else:
        yield from audit_bytes(content, Place(path, ANY))


def _moved(finding: Finding, at: int) -> Finding:
    return replace(finding, offset=at + (finding.offset or 0))
