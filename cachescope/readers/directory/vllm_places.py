"""The folders of vLLM's ``torch_compile_cache``, and how each is known by the names in and around it.

::

    torch_compile_cache/
        <10 hex>/rank_<i>_<j>/                      one folder of an engine, one of each rank in it
            <prefix>/                               a part of the model: backbone, eagle_head, ...
                cache_key_factors.json  vllm_compile_cache.py  computation_graph.py
                artifact_compile_range_<a>_<b>_subgraph_<n>     a file, or a cache of torch where it was unpacked
                artifact_shape_<size or None>_subgraph_<n>      the same of vLLM before 0.12
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
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final

from cachescope.keys.vllm import FOLDER_NAME, RANK_FOLDER
from cachescope.readers.directory.places import (
    ROOT,
    TRITON_DEVICES,
    FileRule,
    FolderRule,
    List,
    Place,
    first_items,
)
from cachescope.terms import VLLM_AOT, VLLM_ARTIFACT, VLLM_FACTORS, VLLM_GRAPH, VLLM_HANDLES

_ARTIFACT: Final = (
    r"artifact_(?:compile_range|shape)_{}None|\d{{1,18}}(?:_\d{{1,18}})?)_subgraph_{}\d{{1,9}})"
)
ARTIFACT: Final = re.compile(_ARTIFACT.format("(", "("))

_FACTORS, _HANDLES = "cache_key_factors.json", "vllm_compile_cache.py"
_SGLANG_HANDLES: Final = "sglang_compile_cache.py"
_SGLANG_GRAPH: Final = re.compile(r"computation_graph_\d{1,12}\.\d{1,12}\.py")
_AOT_NAME: Final = "torch_aot_compile"
_AOT_KEY: Final = re.compile("[0-9a-f]{64}")

_TORCH_CACHES: Final = (FolderRule("inductor_cache", ROOT), FolderRule("triton_cache", TRITON_DEVICES))
_PART_FILES: Final = (
    FileRule(r"cache_key_factors\.json", VLLM_FACTORS, VLLM_FACTORS),
    FileRule(r"(?:vllm|sglang)_compile_cache\.py", VLLM_HANDLES, VLLM_HANDLES),
    FileRule(r"computation_graph\.py|transformed_code\.py", VLLM_GRAPH),
    FileRule(_SGLANG_GRAPH.pattern, VLLM_GRAPH),
    FileRule(_ARTIFACT.format("(?:", "(?:"), VLLM_ARTIFACT, VLLM_ARTIFACT),
)
PART: Final = Place(VLLM_ARTIFACT, _PART_FILES, (FolderRule(ARTIFACT.pattern, ROOT), *_TORCH_CACHES))
RANK: Final = Place(VLLM_ARTIFACT, _PART_FILES, (*_TORCH_CACHES, FolderRule(".+", PART, False)))
FOLDER: Final = Place(VLLM_ARTIFACT, folders=(FolderRule(RANK_FOLDER.pattern, RANK),), key_of=str)
_MODEL: Final = FileRule("model", VLLM_AOT, VLLM_AOT)
_UNFINISHED_MODEL: Final = FileRule(r"model\.\d+\.tmp", VLLM_AOT, None, "temporary")
AOT_RANK: Final = Place(VLLM_AOT, (_MODEL, _UNFINISHED_MODEL))
AOT_FOLDER: Final = Place(
    VLLM_AOT, folders=(*_TORCH_CACHES, FolderRule(RANK_FOLDER.pattern, AOT_RANK)), key_of=str
)
AOT: Final = Place(VLLM_AOT, folders=(FolderRule(_AOT_KEY.pattern, AOT_FOLDER),))
_IN_A_TREE: Final = ((_AOT_NAME, AOT), (FOLDER_NAME.pattern, FOLDER), (RANK_FOLDER.pattern, RANK))
TREE: Final = Place(VLLM_ARTIFACT, folders=tuple(FolderRule(name, place) for name, place in _IN_A_TREE))


def vllm_place_of(path: str, items: List = first_items) -> Place | None:
    """The place of vLLM that a folder is; None if nothing in it identifies one."""
    name = os.path.basename(os.path.abspath(path))
    names = _names(path, items)
    if _are_of_a_part(names):
        return RANK if RANK_FOLDER.fullmatch(name) else PART
    inner = [(one, os.path.join(path, one)) for one in names]
    if RANK_FOLDER.fullmatch(name):
        if _AOT_KEY.fullmatch(os.path.basename(os.path.dirname(os.path.abspath(path)))) and "model" in names:
            return AOT_RANK
        return RANK if any(_are_of_a_part(_names(below, items)) for _, below in inner) else None
    ranks = [below for one, below in inner if RANK_FOLDER.fullmatch(one)]
    if ranks and not any(FOLDER_NAME.fullmatch(one) for one in names):
        if _AOT_KEY.fullmatch(name) and any("model" in _names(below, items) for below in ranks):
            return AOT_FOLDER
        return FOLDER if any(vllm_place_of(below, items) is RANK for below in ranks) else None
    if any(_AOT_KEY.fullmatch(one) and vllm_place_of(below, items) is AOT_FOLDER for one, below in inner):
        return AOT
    is_tree = any(
        (FOLDER_NAME.fullmatch(one) and vllm_place_of(below, items) is FOLDER)
        or (one == _AOT_NAME and vllm_place_of(below, items) is AOT)
        for one, below in inner
    )
    return TREE if is_tree else None


def _are_of_a_part(names: Iterable[str]) -> bool:
    """Whether these names are in the folder of a part of a model."""
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


def _names(path: str, items: List) -> list[str]:
    try:
        return [item.name for item in items(path)]
    except OSError:
        return []
