"""Audits the content of one file, by the kind that its place and name imply; of a mega-cache, each content that torch would write."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from typing import Final

from cachescope.auditing.findings import File, Finding, shown
from cachescope.auditing.generated_code import (
    foreign_calls,
    foreign_names,
    foreign_parts,
    foreign_symbols,
    rule_of,
)
from cachescope.auditing.known import ANY, VERSIONED
from cachescope.auditing.pickles import (
    Audited,
    Place,
    acts_as_pickle,
    audit_bytes,
    audit_pickle,
    audit_zip,
    looks_like_pickle,
)
from cachescope.json_types import JsonObject
from cachescope.keys.hashing import entry_name, stored_code_hash
from cachescope.readers.cache_file import DamagedContent, load_object
from cachescope.readers.directory.bundles import artifacts, content_of
from cachescope.readers.directory.graph_entries import AOT_CLASSES, FX_CLASSES
from cachescope.readers.directory.places import TRITON_KEY, triton_hash
from cachescope.readers.directory.vllm_places import vllm_place_of_file
from cachescope.readers.kinds import looks_like_aot_compile, looks_like_standalone, mega_cache_start
from cachescope.readers.pickles.inert_pickle import Stub, global_name
from cachescope.terms import (
    AOT_COMPILE,
    AOT_KEY,
    AOTAUTOGRAD,
    CACHING_PACKAGE,
    CODE_KEY,
    FX_KEY,
    FXGRAPH,
    HASH,
    IMC,
    MEGA_CACHE,
    ON_DISK_CACHE,
    PGO,
    PRECOMPILE,
    STANDALONE,
    TRITON,
)

_ENTRIES: Final = {"inductor": FXGRAPH, "aot_autograd": AOTAUTOGRAD}
_PICKLES: Final = {"pgo": PGO, "precompile": PRECOMPILE, "precompile_dynamo": PRECOMPILE}
# `populate_cache` of each type joins its key to a folder (torch/_inductor/codecache.py, autograd_cache.py, ...).
_KEYS: Final = {
    "inductor": FX_KEY,
    "aot_autograd": re.compile(rf"{AOT_KEY.pattern}|0\.\d+(?:e-\d+)?|[0-9a-f]{{32}}"),
    "autotune": re.compile(rf"[a-z2-7]{{2}}/(?:[0-9a-f]{{64}}|c{HASH})\.best_config"),
}
_NO_PATH: Final = re.compile(r"(?!\.\.?$)[^/\\\0]+")

CODE_ENDINGS: Final = frozenset(
    "py pyc so o a obj lib dll dylib pyd cpp cc c cxx h hpp cu hip gch pch cubin hsaco ptx spv zebin amdgcn fatbin "  # noqa: SIM905
    "metallib ttir ttgir llir bc ll pt2".split()
)
_NATIVE: Final = frozenset("cpp cc c cxx h hpp cu hip".split())  # noqa: SIM905
_LINKED: Final = frozenset("so o a dylib pyd dll".split())  # noqa: SIM905
_TEMPORARY: Final = re.compile(r"\.\d+\.\d+\.tmp")
_CONTENT_NAME: Final = re.compile(r"[a-z2-7]{51}")
_TRITON_HASH: Final = re.compile(TRITON_KEY)
_CLASSES: Final = {FXGRAPH: FX_CLASSES, AOTAUTOGRAD: AOT_CLASSES}
_PICKLED: Final = {PGO: PGO, PRECOMPILE: PRECOMPILE, ON_DISK_CACHE: VERSIONED, CACHING_PACKAGE: VERSIONED}


def audit_mega_cache(path: str, data: bytes) -> Iterator[Finding]:
    """Yield the findings in each artifact of a mega-cache."""
    try:
        for kind, key, content, at in artifacts(data):
            yield from _key(path, kind, key, at)
            yield from _moved(_content(path, kind, key, content), at)
    except DamagedContent as error:
        yield Finding("entry-damaged", path, error.what, error.offset, MEGA_CACHE)


def _key(path: str, kind: str, key: str, at: int) -> Iterator[Finding]:
    # The key of PGO is a job's name, from which torch removes anything that leads elsewhere (`code_state_path`).
    if kind != "pgo" and not _KEYS.get(kind, _NO_PATH).fullmatch(key):
        message = f"its {kind} artifact is written to the place {shown(key)}"
        yield Finding("path-escapes", path, message, at, MEGA_CACHE)


def _content(path: str, kind: str, key: str, content: bytes) -> Iterator[Finding]:
    if kind in _ENTRIES:
        # torch names the entry only when it writes it.
        yield from audit_entry(File(path, ".0.0.tmp", _ENTRIES[kind], key, content))
    elif kind in _PICKLES:
        yield from audit_pickle(content, Place(path, _PICKLES[kind])).findings
    else:
        yield from audit_bytes(content, Place(path, ANY))


def _moved(found: Iterable[Finding], at: int) -> Iterator[Finding]:
    return (replace(finding, offset=at + (finding.offset or 0)) for finding in found)


def audit_content(file: File) -> Iterator[Finding]:
    """Yield the findings in a file."""
    if mega_cache_start(file.data[:200]) is not None:
        yield from audit_mega_cache(file.path, file.data)
    elif looks_like_standalone(file.data[:200]):
        yield from _standalone(file)
    elif looks_like_aot_compile(file.data[:200]):
        yield from _aot_compile(file)
    elif file.kind in _CLASSES:
        yield from audit_entry(file)
    elif file.kind in _PICKLED:
        yield from _pickled(file, _PICKLED[file.kind])
    elif file.ending in CODE_ENDINGS and not looks_like_pickle(file.data):
        yield from _code(file)
    else:
        yield from _other(file)


def _standalone(file: File) -> Iterator[Finding]:
    """Audit what torch puts into its cache from an artifact, or the one pickle that it holds."""
    try:
        kind, content = content_of(file.data)
    except DamagedContent as error:
        yield Finding("entry-damaged", file.path, error.what, error.offset, STANDALONE)
        return
    start = len(file.data) - len(content)
    if kind == MEGA_CACHE:
        yield from _moved(audit_mega_cache(file.path, content), start)
    else:
        yield from audit_pickle(content, Place(file.path, kind, start)).findings


def _aot_compile(file: File) -> Iterator[Finding]:
    """Audit a compiled function; of those in a model, each is a pickle in a pickle."""
    start = file.data.find(b"\x80")
    placed = vllm_place_of_file(file.path)
    kind = AOT_COMPILE if placed is None else placed[1].kind
    yield from audit_pickle(file.data[start:], Place(file.path, kind, start)).findings


def audit_entry(file: File) -> Iterator[Finding]:
    """Yield the findings in an FX or AOTAutograd entry: torch loads every file of a key's folder."""
    name, data = file.name, file.data
    is_named = _CONTENT_NAME.fullmatch(name) is not None
    if not is_named and not _TEMPORARY.fullmatch(name) and not (name == "entry" and file.kind == AOTAUTOGRAD):
        message = f"an entry called {shown(name)}; torch calls it by the hash of its content"
        yield file.finding("entry-odd-name", message)
    audited = yield from _pickled(file, file.kind)
    if audited is None:
        return
    if is_named and entry_name(data) != name:
        yield file.finding("entry-misnamed", "its content does not hash to its name")
    value = audited.value
    if value is None:
        return
    made_of = global_name(value)
    if not isinstance(value, Stub) or value.name not in _CLASSES[file.kind]:
        if not audited.findings:  # findings already give the reason
            message = f"no entry of {file.kind}: holds {shown(made_of or type(value).__name__)}"
            yield file.finding("entry-foreign-object", message, 0)
        return
    key = value.state.get("_fx_graph_cache_key")
    if file.kind == FXGRAPH and key is not None and file.key is not None and key != file.key:
        message = f"in the folder of {file.key}, it says that it is of {shown(str(key))}"
        yield file.finding("entry-misnamed", message)


def _pickled(file: File, kind: str) -> Generator[Finding, None, Audited | None]:
    """Yield the findings in a pickle; return what was audited, None if it is damaged."""
    if not file.data:
        yield file.finding("entry-damaged", "empty", 0)
        return None
    audited = audit_pickle(file.data, Place(file.path, kind))
    yield from audited.findings
    if audited.damage is None:
        return audited
    yield file.finding("entry-damaged", audited.damage)
    return None


def _code(file: File) -> Iterator[Finding]:
    data = file.data
    if file.ending == "py":
        text = data.decode("utf-8", "backslashreplace")
        stem = file.name[:-3]
        if CODE_KEY.fullmatch(stem) and stored_code_hash(text) != stem:
            yield file.finding("code-changed", "its text does not hash to its name", 0)
        yield from _foreign(file, foreign_parts(text))
    elif file.ending in _NATIVE:
        yield from _foreign(file, foreign_calls(data.decode("utf-8", "backslashreplace")))
    elif file.ending in _LINKED:
        yield from _foreign(file, foreign_symbols(data, is_launcher=file.kind == TRITON))
    elif file.ending == "pyc":
        yield from _foreign(file, foreign_names(data))
    elif file.ending == "pt2":
        yield from audit_zip(data, Place(file.path, ANY))


def _foreign(file: File, parts: Iterable[str]) -> Iterator[Finding]:
    return (file.finding(rule_of(part), shown(part), 0) for part in parts)


def _other(file: File) -> Iterator[Finding]:
    data = file.data
    if looks_like_pickle(data):
        yield from audit_bytes(data, Place(file.path, ANY))
    elif data and acts_as_pickle(data):
        yield from audit_pickle(data, Place(file.path, ANY)).findings
    elif file.kind == TRITON and file.ending == "json":
        yield from _object(file, _group if file.name.startswith("__grp__") else _kernel)
    elif file.kind == IMC:
        yield from _object(file, _dump)
    elif data[:2] == b"#!" or data[:4] in (b"\x7fELF", b"MZ\x90\x00"):
        yield file.finding("unknown-file", "a program", 0)


def _object(file: File, look: Callable[[File, JsonObject], Iterator[Finding]]) -> Iterator[Finding]:
    """Yield the findings in a JSON object, or that it is damaged."""
    try:
        stored = load_object(file.data)
    except DamagedContent as error:
        yield file.finding("entry-damaged", error.what, error.offset)
        return
    yield from look(file, stored)


def _kernel(file: File, values: JsonObject) -> Iterator[Finding]:
    """Check the metadata of a kernel: Triton uses them to load the files next to it."""
    stored = values.get("hash")
    folder = os.path.basename(os.path.dirname(file.path))
    if isinstance(stored, str) and _TRITON_HASH.fullmatch(folder) and triton_hash(folder) != stored:
        yield file.finding("entry-misnamed", "the kernel of another hash than its folder's", 0)


def _dump(file: File, values: JsonObject) -> Iterator[Finding]:
    """Audit keys and values of torch 2.10 that are bytes literals: torch unpickles them on a lookup."""
    for text in (*values.keys(), *values.values()):
        if not isinstance(text, str) or not text.startswith(("b'", 'b"')):
            continue
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, bytes):
            yield from audit_bytes(value, Place(file.path, VERSIONED, None))


def _group(file: File, values: JsonObject) -> Iterator[Finding]:
    """Check the paths of a group: Triton loads its files from there (`FileCacheManager.get_group`, triton/runtime/cache.py)."""
    paths = values.get("child_paths")
    folder = os.path.dirname(os.path.abspath(file.path))
    moved = False
    for name, path in paths.items() if isinstance(paths, dict) else ():
        parts = path.replace("\\", "/").split("/") if isinstance(path, str) else []
        if ".." in parts or parts[-2:] != [os.path.basename(folder), str(name)]:
            message = f"has Triton load {shown(str(path))} as {shown(str(name))}"
            yield file.finding("path-escapes", message, 0)
        elif os.path.dirname(path) != folder:
            moved = True
    if moved:
        yield file.finding("group-moved", "names the files of a folder that is not its own", 0)


def is_code(name: str) -> bool:
    """Whether a file with this name is run, or compiled and then run."""
    return os.path.splitext(name)[1][1:].lower() in CODE_ENDINGS
