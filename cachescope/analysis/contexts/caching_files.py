"""Which files of torch 2.10's caching package would be found under an isolation key.

Stored results do not contain the parameters of a call. The caller has to give them, or they come from the keys that
a deterministic cache dumped (``imc.save``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final

from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.sharing_rows import CachingFile
from cachescope.keys.caching_key import CachingNames, caching_names, pickled_name, with_isolation_key
from cachescope.keys.json_values import UnsupportedValueError
from cachescope.readers.directory.entry_file import value_text
from cachescope.readers.pickles.inert_pickle import loads_harmless
from cachescope.terms import CACHING_PACKAGE

# A call by its name and parameters, or a pickled key as torch dumped it, whose bytes identify it.
Call = tuple[str, object] | bytes
_NO_NAME: Final = "no name can be made of these parameters"


def caching_files(
    entries: Iterable[EntryRow], isolation_key: str, calls: Iterable[Call]
) -> list[CachingFile]:
    """The file that each call would find under an isolation key; see ``describe("caching_files")``."""
    files = (row for row in entries if row.cache == CACHING_PACKAGE)
    stored = {(row.name, os.path.basename(row.path)): row.entry for row in files}
    # A call made under several schemas was dumped once for each, but is one call under this key.
    calls = list(calls)
    dumped = dict.fromkeys(with_isolation_key(one, isolation_key) for one in calls if isinstance(one, bytes))
    every: list[Call] = [*dumped, *(one for one in calls if not isinstance(one, bytes))]
    return [_row(call, isolation_key, stored) for call in every]


def _row(call: Call, isolation_key: str, stored: Mapping[tuple[str | None, str], int]) -> CachingFile:
    names: CachingNames | None
    if isinstance(call, bytes):
        callee, params = _parts(call)
        names, doubt = CachingNames(pickled_name(call)), None
    else:
        callee, params = call
        try:
            names = caching_names(callee, params, isolation_key)
            doubt = names.doubt
        except UnsupportedValueError as error:
            names, doubt = None, f"{_NO_NAME}: {error}"
    found = [] if names is None else [n for n in (names.name, *names.others) if (callee, n) in stored]
    return CachingFile(
        callee=callee,
        params=value_text(params),
        isolation_key=isolation_key,
        file_name=None if names is None else names.name,
        status="found" if found else "unknown" if doubt else "absent",
        entry=stored[callee, found[0]] if found else None,
        reason=doubt,
    )


def _parts(pickled_key: bytes) -> tuple[str, object]:
    key = loads_harmless(pickled_key)
    if isinstance(key, tuple) and isinstance(key[0], tuple) and len(key[0]) == 2:
        return str(key[0][0]), key[0][1]
    return value_text(key), None
