"""The folders of vLLM's ``torch_compile_cache``, and how each is known by the names in and around it.

::

    torch_compile_cache/
        <10 hex>/rank_<i>_<j>/                      one folder of an engine, one of each rank in it
            <prefix>/                               a part of the model: backbone, eagle_head, ...
                cache_key_factors.json  vllm_compile_cache.py  computation_graph.py
                artifact_compile_range_<a>_<b>_subgraph_<n>     a file, or a cache of torch where it was unpacked
            inductor_cache/  triton_cache/          caches of torch and Triton, without standalone artifacts
        torch_aot_compile/<64 hex>/                 vLLM 0.13.0 has it beside torch_compile_cache
            rank_<i>_<j>/model
            inductor_cache/

Mirrors ``VllmBackend.__call__`` and ``CompilerManager`` of ``vllm/compilation/backends.py``, ``initialize_cache`` of
``vllm/compilation/compiler_interface.py`` and ``support_torch_compile`` of ``vllm/compilation/decorators.py`` (0.13.0, 0.33.0).

SGLang's fork writes, by ``SGLangBackend.__call__`` of ``srt/compilation/backend.py`` and ``InductorAdaptor`` of
``srt/compilation/compiler_interface.py`` (0.5.23)::

    torch_compile_cache/
        <10 hex>/rank_0_0/<prefix>/                 the name is of torch and the GPU alone; with the compiler "eager" there is none
            sglang_compile_cache.py  computation_graph_<time>.py
            inductor_cache/  triton_cache/

This describes vLLM 0.13.0 and 0.33.0. Nothing is executed: ``vllm_compile_cache.py`` is parsed as a literal,
as vLLM itself does, and pickles are followed without making anything.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Final

from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.vllm import FactorsRow
from cachescope.json_types import JsonObject
from cachescope.keys.printed_values import literal_value
from cachescope.keys.vllm import FOLDER_NAME, RANK_FOLDER, place_in_tree, vllm_env_hash
from cachescope.readers.cache_file import DamagedContent, content_reader
from cachescope.readers.directory.dynamo_packages import read_aot_compile
from cachescope.readers.directory.places import ROOT, TRITON_DEVICES, FileRule, FolderRule, Place
from cachescope.readers.directory.standalone import fill_standalone
from cachescope.readers.json_file import load_object
from cachescope.readers.pickles.inert_pickle import Limits, NotRead
from cachescope.readers.reading import Reading
from cachescope.terms import VLLM_AOT, VLLM_ARTIFACT, VLLM_FACTORS, VLLM_GRAPH, VLLM_HANDLES
from cachescope.wording import plural

# Real ones have 10 KB and 250 variables, and 250 bytes for each compiled subgraph.
_MOST_FACTOR_BYTES: Final = 4 << 20
_MOST_VARIABLES: Final = 5_000
_MOST_HANDLE_BYTES: Final = 2 << 20
_HASHES: Final = ("config_hash", "code_hash", "compiler_hash")
_LONGEST_HASH: Final = 200
_SECRET: Final = re.compile(r"key|token(?!s|iz)|secret|passw|credential", re.IGNORECASE)

ARTIFACT: Final = re.compile(r"artifact_compile_range_(\d{1,18})_(\d{1,18})_subgraph_(\d{1,9})")


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
    texts = [
        text for text in hashes if isinstance(text, str) and text.isascii() and len(text) <= _LONGEST_HASH
    ]
    if len(texts) != len(_HASHES):
        raise DamagedContent(f"no factors of vLLM: {', '.join(_HASHES)} are not all there")
    place = place_in_tree(os.path.abspath(entry.path))
    try:
        env_hash, kept = vllm_env_hash(env), json.dumps(_without_secrets(env, reading), sort_keys=True)
    except RecursionError as error:
        raise DamagedContent("no factors of vLLM: nested too deep") from error
    entry.cache_key = entry.cache_key or place.folder
    entry.detail = f"{plural(len(env), 'variable')}, hashes of the configuration, the code and the compiler"
    reading.vllm_factors.append(
        FactorsRow(
            entry=0,
            folder=place.folder,
            rank=place.rank,
            dp_rank=place.dp_rank,
            prefix=place.prefix,
            env=kept,
            env_hash=env_hash,
            **dict(zip(_HASHES, texts, strict=True)),
            file=entry,
        )
    )


def _without_secrets(env: JsonObject, reading: Reading) -> JsonObject:
    return {
        name: _numbered(value, reading) if isinstance(value, str) and value and _is_secret(name) else value
        for name, value in env.items()
    }


@lru_cache(_MOST_VARIABLES)
def _is_secret(name: str) -> bool:
    return _SECRET.search(name) is not None


def _numbered(value: str, reading: Reading) -> str:
    """Equal secrets have equal numbers."""
    number = reading.vllm_secrets.setdefault(value, len(reading.vllm_secrets) + 1)
    return f"(secret {number})"


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
    subgraphs = len({repr(key[1])[:40] for key in keys})
    entry.detail = (
        f"{plural(len(keys), 'artifact')} of {plural(subgraphs, 'subgraph')}: {', '.join(compilers)[:80]}"
    )


def fill_artifact(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Read a compiled subgraph, which is an artifact of torch's ``standalone_compile``.

    The names are those of ``PiecewiseBackend`` and ``InductorStandaloneAdaptor`` (``vllm/compilation``).
    """
    if (match := ARTIFACT.fullmatch(name)) is not None:
        entry.name = f"sizes {match[1]} to {match[2]}, subgraph {match[3]}"
    fill_standalone(entry, name, data, reading)


def read_model(entry: EntryRow, path: str, name: str, reading: Reading) -> bool:
    """Say what was compiled, for which torch, Python and device; one that has gigabytes is not opened.

    Mirrors ``save_aot_compiled_function`` of ``vllm/compilation/decorators.py``: it is what torch's ``save_compiled_function``
    writes.
    """
    if entry.size_bytes is not None and entry.size_bytes > Limits().size_bytes:
        entry.detail = "a compiled model that is too big to be opened here"
        return os.path.exists(path)
    return read_aot_compile(entry, path, name, reading)


read_factors = content_reader(fill_factors)
read_handles = content_reader(fill_handles)
read_artifact = content_reader(fill_artifact)

_LOOK_AT: Final = 1_000
_FACTORS, _HANDLES = "cache_key_factors.json", "vllm_compile_cache.py"
_SGLANG_HANDLES: Final = "sglang_compile_cache.py"
_SGLANG_GRAPH: Final = re.compile(r"computation_graph_\d{1,12}\.\d{1,12}\.py")
_AOT_NAME: Final = "torch_aot_compile"
_AOT_KEY: Final = re.compile("[0-9a-f]{64}")
_ANY: Final = re.compile(r".+", re.DOTALL)

_TORCH_CACHES: Final = (
    FolderRule(re.compile("inductor_cache"), ROOT),
    FolderRule(re.compile("triton_cache"), TRITON_DEVICES),
)
_PART_FILES: Final = (
    FileRule(re.compile(r"cache_key_factors\.json"), VLLM_FACTORS, read_factors),
    FileRule(re.compile(r"vllm_compile_cache\.py"), VLLM_HANDLES, read_handles),
    FileRule(re.compile(r"sglang_compile_cache\.py"), VLLM_HANDLES, read_handles),
    FileRule(re.compile(r"computation_graph\.py|transformed_code\.py"), VLLM_GRAPH),
    FileRule(_SGLANG_GRAPH, VLLM_GRAPH),
    FileRule(re.compile(ARTIFACT.pattern.replace("(", "(?:")), VLLM_ARTIFACT, read_artifact),
)
PART: Final = Place(VLLM_ARTIFACT, _PART_FILES, (FolderRule(ARTIFACT, ROOT), *_TORCH_CACHES))
RANK: Final = Place(VLLM_ARTIFACT, _PART_FILES, (*_TORCH_CACHES, FolderRule(_ANY, PART, False)))
FOLDER: Final = Place(VLLM_ARTIFACT, folders=(FolderRule(RANK_FOLDER, RANK),), key_of=str)
_MODEL: Final = FileRule(re.compile("model"), VLLM_AOT, read_model)
_UNFINISHED_MODEL: Final = FileRule(re.compile(r"model\.\d+\.tmp"), VLLM_AOT, None, "temporary")
AOT_RANK: Final = Place(VLLM_AOT, (_MODEL, _UNFINISHED_MODEL))
AOT_FOLDER: Final = Place(
    VLLM_AOT, folders=(_TORCH_CACHES[0], _TORCH_CACHES[1], FolderRule(RANK_FOLDER, AOT_RANK)), key_of=str
)
AOT: Final = Place(VLLM_AOT, folders=(FolderRule(_AOT_KEY, AOT_FOLDER),))
TREE: Final = Place(
    VLLM_ARTIFACT,
    folders=(
        FolderRule(re.compile(_AOT_NAME), AOT),
        FolderRule(FOLDER_NAME, FOLDER),
        FolderRule(RANK_FOLDER, RANK),
    ),
)


def vllm_place_of(path: str) -> Place | None:
    """The place of vLLM that a folder is; None if nothing in it identifies one."""
    name = os.path.basename(os.path.abspath(path))
    names = list(islice(_names(path), _LOOK_AT))
    if _are_of_a_part(names):
        return RANK if RANK_FOLDER.fullmatch(name) else PART
    inner = [(one, os.path.join(path, one)) for one in names]
    if RANK_FOLDER.fullmatch(name):
        if _AOT_KEY.fullmatch(os.path.basename(os.path.dirname(os.path.abspath(path)))) and "model" in names:
            return AOT_RANK
        return RANK if any(_is_part(below) for _, below in inner) else None
    ranks = [below for one, below in inner if RANK_FOLDER.fullmatch(one)]
    if ranks and not any(FOLDER_NAME.fullmatch(one) for one in names):
        if _AOT_KEY.fullmatch(name) and any("model" in _names(below) for below in ranks):
            return AOT_FOLDER
        return FOLDER if any(vllm_place_of(below) is RANK for below in ranks) else None
    if any(_AOT_KEY.fullmatch(one) and vllm_place_of(below) is AOT_FOLDER for one, below in inner):
        return AOT
    is_tree = any(
        (FOLDER_NAME.fullmatch(one) and vllm_place_of(below) is FOLDER)
        or (one == _AOT_NAME and vllm_place_of(below) is AOT)
        for one, below in inner
    )
    return TREE if is_tree else None


def _is_part(path: str) -> bool:
    """Whether a folder holds the files of a part of a model."""
    return _are_of_a_part(islice(_names(path), _LOOK_AT))


def _are_of_a_part(names: Iterable[str]) -> bool:
    return any(name in (_FACTORS, _HANDLES) or is_of_sglang(name) for name in names)


def is_of_sglang(name: str) -> bool:
    """Whether SGLang alone names a file so."""
    return name == _SGLANG_HANDLES or _SGLANG_GRAPH.fullmatch(name) is not None


def vllm_place_of_file(path: str) -> tuple[Place, FileRule] | None:
    """The place and rule of a single file that vLLM alone names so."""
    above, name = os.path.split(os.path.abspath(path))
    if (rule := PART.file_rule(name)) is not None and rule.kind != VLLM_GRAPH:
        return PART, rule
    rank, key = os.path.basename(above), os.path.basename(os.path.dirname(above))
    if RANK_FOLDER.fullmatch(rank) and _AOT_KEY.fullmatch(key) and (rule := AOT_RANK.file_rule(name)):
        return AOT_RANK, rule
    return None


def _names(path: str) -> Iterator[str]:
    try:
        with os.scandir(path) as found:
            for item in found:
                yield item.name
    except OSError:
        return
