"""What is in the files of vLLM's ``torch_compile_cache``.

This is as in vLLM 0.13.0 and 0.33.0. Nothing is executed: ``vllm_compile_cache.py`` is parsed as a literal,
as vLLM itself does, and pickles are followed without making anything.
"""

from __future__ import annotations

import json
import os
from typing import Final

from cachescope.catalogue.vllm_variables import is_secret
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.vllm import FactorsRow
from cachescope.json_types import JsonObject
from cachescope.keys.printed_values import literal_value
from cachescope.keys.vllm import place_in_tree, vllm_env_hash
from cachescope.readers.cache_file import DamagedContent, load_object
from cachescope.readers.directory.bundles import fill_standalone
from cachescope.readers.directory.dynamo_packages import read_aot_compile
from cachescope.readers.directory.vllm_places import ARTIFACT
from cachescope.readers.pickles.inert_pickle import Limits, NotRead
from cachescope.readers.reading import Reading
from cachescope.rows import like
from cachescope.wording import plural

# Real ones have 10 KB and 250 variables, and 250 bytes for each compiled subgraph.
_MOST_FACTOR_BYTES: Final = 4 << 20
_MOST_VARIABLES: Final = 5_000
_MOST_HANDLE_BYTES: Final = 2 << 20
_HASHES: Final = ("config_hash", "code_hash", "compiler_hash")
_LONGEST_HASH: Final = 200


def fill_factors(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Keep what the name of a folder was made of.

    Mirrors ``VllmBackend.__call__`` of ``vllm/compilation/backends.py``, which writes the file only if it is not there.
    Values of variables that are named like secrets (vLLM before 0.33 wrote ``VLLM_API_KEY``) are distinguished but not kept.
    """
    if len(data) > _MOST_FACTOR_BYTES:
        raise NotRead(f"more than {_MOST_FACTOR_BYTES} bytes: not read")
    found = load_object(data)
    env, hashes = found.get("env"), [found.get(key) for key in _HASHES]
    if not isinstance(env, dict):
        raise DamagedContent("no factors of vLLM: env is no object")
    if len(env) > _MOST_VARIABLES:
        raise NotRead(f"more than {_MOST_VARIABLES} variables: not read")
    texts = [one for one in hashes if isinstance(one, str) and one.isascii() and len(one) <= _LONGEST_HASH]
    if len(texts) != len(_HASHES):
        raise DamagedContent(f"no factors of vLLM: {', '.join(_HASHES)} are not all there")
    place = place_in_tree(os.path.abspath(entry.path))
    try:
        env_hash, kept = vllm_env_hash(env), json.dumps(_without_secrets(env, reading), sort_keys=True)
    except RecursionError as error:
        raise DamagedContent("no factors of vLLM: nested too deep") from error
    entry.cache_key = entry.cache_key or place.folder
    entry.detail = f"{plural(len(env), 'variable')}, hashes of the configuration, the code and the compiler"
    told = dict(zip(_HASHES, texts, strict=True)) | {"env": kept, "env_hash": env_hash}
    reading.vllm_factors.append(like(FactorsRow, place, entry=0, file=entry, **told))


def _without_secrets(env: JsonObject, reading: Reading) -> JsonObject:
    """The variables, with a number in the place of each secret; equal ones have equal numbers."""
    kept, known = {**env}, reading.vllm_secrets
    for name, value in env.items():
        if isinstance(value, str) and value and is_secret(name):
            kept[name] = f"(secret {known.setdefault(value, len(known) + 1)})"
    return kept


def fill_handles(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Count the artifacts that vLLM would load.

    Mirrors ``CompilerManager.save_to_file`` of ``vllm/compilation/backends.py``:
    ``{((start, end), subgraph, compiler): {"graph_handle": (name, path), "cache_key": key}}``; 0.13.0 has the handle alone.
    SGLang's ``srt/compilation/backend.py`` (0.5.23) writes ``{(size or None, subgraph, compiler): (FX key, path)}``.
    """
    if len(data) > _MOST_HANDLE_BYTES:
        raise NotRead(f"more than {_MOST_HANDLE_BYTES} bytes: not read")
    try:
        handles = literal_value(data.decode())
    except ValueError as error:
        raise DamagedContent(f"{name} is no literal") from error
    if not isinstance(handles, dict):
        raise DamagedContent(f"{name} holds no dict")
    keys = [key for key in handles if isinstance(key, tuple) and len(key) == 3]
    if len(keys) != len(handles):
        raise DamagedContent(f"{name} has a key that is not of vLLM")
    compilers = sorted({key[2] for key in keys if isinstance(key[2], str)})
    subgraphs = plural(len({repr(key[1])[:40] for key in keys}), "subgraph")
    entry.detail = f"{plural(len(keys), 'artifact')} of {subgraphs}: {', '.join(compilers)[:80]}"


def fill_artifact(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Read a compiled subgraph, which is an artifact of torch's ``standalone_compile``.

    The names are those of ``PiecewiseBackend`` and ``InductorStandaloneAdaptor`` (``vllm/compilation``).
    """
    if (match := ARTIFACT.fullmatch(name)) is not None:
        sizes = "any size" if match[1] == "None" else f"sizes {match[1].replace('_', ' to ')}"
        entry.name = f"{sizes}, subgraph {match[2]}"
    fill_standalone(entry, name, data, reading)


def read_model(entry: EntryRow, path: str, name: str, reading: Reading) -> None:
    """Say what was compiled, for which torch, Python and device; one that has gigabytes is not opened.

    Mirrors ``save_aot_compiled_function`` of ``vllm/compilation/decorators.py``: it is what torch's ``save_compiled_function``
    writes.
    """
    if entry.size_bytes is not None and entry.size_bytes > Limits().size_bytes:
        entry.detail = "a compiled model that is too big to be opened here"
        os.stat(path)  # it may be gone by now
    else:
        read_aot_compile(entry, path, name, reading)
