"""Audits the content of one file, by the kind that its place and name imply; of a mega-cache, each content that torch would write."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from typing import Final

from cachescope.auditing.findings import File, Finding, shown
from cachescope.auditing.generated_code import foreign_parts
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
from cachescope.keys.paths import get_path
from cachescope.keys.printed_values import literal_value
from cachescope.readers.cache_file import DamagedContent, load_object
from cachescope.readers.directory.bundles import artifacts, content_of
from cachescope.readers.directory.caching_package import bytes_of_literal
from cachescope.readers.directory.graph_entries import AOT_CLASSES, FX_CLASSES
from cachescope.readers.directory.places import TRITON_KEY, triton_hash
from cachescope.readers.directory.triton_files import is_relative_name
from cachescope.readers.directory.vllm_places import vllm_place_of_file
from cachescope.readers.kinds import (
    looks_like_aot_compile,
    looks_like_dump,
    looks_like_standalone,
    mega_cache_start,
)
from cachescope.readers.logs.byte_source import read_head
from cachescope.readers.pickles.inert_pickle import NotRead, Stub, global_name
from cachescope.readers.remote_cache import stored as remote
from cachescope.readers.remote_cache.address import is_redis
from cachescope.terms import (
    AOT_COMPILE,
    AOT_KEY,
    AOTAUTOGRAD,
    BEST_CONFIG,
    BUNDLED_AUTOTUNE,
    CACHING_PACKAGE,
    CODE_KEY,
    FX_KEY,
    FXGRAPH,
    HASH,
    IMC,
    MEGA_CACHE,
    ON_DISK_CACHE,
    OTHER,
    PGO,
    PRECOMPILE,
    STANDALONE,
    TRITON,
    VLLM_AOT,
    VLLM_GRAPH,
    VLLM_HANDLES,
)

# Where the files would be written that torch makes of the values of a remote cache.
_CACHE: Final = "/cache"
_ENTRIES: Final = {"inductor": FXGRAPH, "aot_autograd": AOTAUTOGRAD}
_PICKLES: Final = {"pgo": PGO, "precompile": PRECOMPILE, "precompile_dynamo": PRECOMPILE}
# `populate_cache` of each type joins its key to a folder (torch/_inductor/codecache.py, autograd_cache.py, ...).
_KEYS: Final = {
    "inductor": FX_KEY,
    "aot_autograd": re.compile(rf"{AOT_KEY.pattern}|0\.\d+(?:e-\d+)?|[0-9a-f]{{32}}"),
    "autotune": re.compile(rf"[a-z2-7]{{2}}/(?:[0-9a-f]{{64}}|c{HASH})\.best_config"),
}
_NO_PATH: Final = re.compile(r"(?!\.\.?$)[^/\\\0]+")

# What file systems, editors and people leave in folders.
LEFT: Final = re.compile(
    r"\..*|README.*|CACHEDIR\.TAG|lost\+found|Thumbs\.db|desktop\.ini|__MACOSX|.*~|LICENSE.*",
    re.DOTALL | re.IGNORECASE,
)
CODE_ENDINGS: Final = frozenset(
    "py pyc so o a obj lib dll dylib pyd cpp cc c cxx h hpp cu hip gch pch cubin hsaco ptx spv zebin amdgcn fatbin "  # noqa: SIM905
    "metallib ttir ttgir llir bc ll pt2".split()
)
# What stands in the cache as Python writes it, or as text for people, is no machine code.
_TEXTS: Final = frozenset({"py", "ttir", "ttgir", "llir"})
# While it is written, or open when it was deleted.
_TEMPORARY: Final = re.compile(r"\.\d+\.\d+\.tmp|\.nfs[0-9a-f]+")
_CONTENT_NAME: Final = re.compile(r"[a-z2-7]{51}")
_TRITON_HASH: Final = re.compile(TRITON_KEY)
_CLASSES: Final = {FXGRAPH: FX_CLASSES, AOTAUTOGRAD: AOT_CLASSES}
_PICKLED: Final = {PGO: PGO, PRECOMPILE: PRECOMPILE, ON_DISK_CACHE: VERSIONED, CACHING_PACKAGE: VERSIONED}


def audit_mega_cache(path: str, data: bytes) -> Iterator[Finding]:
    """Yield the findings in each artifact of a mega-cache."""
    try:
        for kind, key, content, at, _ in artifacts(data):
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
    elif kind == "autotune":
        yield from _object(File(path, key, BEST_CONFIG, key, content), audit_setting)
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
    elif file.kind == VLLM_HANDLES:
        yield from _handles(file)
    elif file.kind == VLLM_GRAPH:
        return  # for people to read: nothing loads it
    elif file.data.startswith(b"PK") and b"data/aotinductor/" in file.data:
        yield file.finding("native-code", "a package of AOTInductor, with what it is compiled with")
        yield from audit_zip(file.data, Place(file.path, ANY), is_package=True)
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
    kind = VLLM_AOT if placed is not None and placed[1].kind == VLLM_AOT else AOT_COMPILE
    yield from audit_pickle(file.data[start:], Place(file.path, kind, start)).findings


def audit_entry(file: File) -> Iterator[Finding]:
    """Yield the findings in an FX or AOTAutograd entry: torch loads every file of a key's folder."""
    name, data = file.name, file.data
    if LEFT.fullmatch(name) and not name.endswith(".tmp"):
        left = audit_pickle(data, Place(file.path, file.kind))
        if left.damage is not None and not left.findings and not looks_like_pickle(data):
            return
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
    if file.ending == "py":
        text = file.data.decode("utf-8", "backslashreplace")
        stem = file.name[:-3]
        if CODE_KEY.fullmatch(stem) and stored_code_hash(text) != stem:
            yield file.finding("code-changed", "its text does not hash to its name", 0)
        yield from (file.finding(rule, message, 0) for rule, message in foreign_parts(text))
    elif file.ending not in _TEXTS:
        yield file.finding("native-code", f"code of another language: .{file.ending}")


def _other(file: File) -> Iterator[Finding]:
    data = file.data
    if looks_like_pickle(data):
        yield from audit_bytes(data, Place(file.path, ANY))
    elif data and acts_as_pickle(data):
        yield from audit_pickle(data, Place(file.path, ANY)).findings
    elif file.kind == TRITON and file.ending == "json":
        yield from _object(file, _group if file.name.startswith("__grp__") else _kernel)
    elif file.ending == BEST_CONFIG:
        yield from _object(file, audit_setting)
    elif file.kind == IMC:
        yield from _object(file, _dump)
    elif data[:2] == b"#!" or data[:4] in (b"\x7fELF", b"MZ\x90\x00"):
        yield file.finding("native-code", "a program")


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
        if isinstance(text, str) and (pickled := bytes_of_literal(text)) is not None:
            yield from audit_bytes(pickled, Place(file.path, VERSIONED, None))


def audit_setting(file: File, values: JsonObject) -> Iterator[Finding]:
    """Yield what is no number in the best configuration of a kernel: torch makes Python of it, which launches the kernel (``triton_heuristics.py``)."""
    for name, value in values.items():
        is_text = isinstance(value, str) and _WORD.fullmatch(value)
        if not (name.isidentifier() and (is_text or value is None or isinstance(value, bool | int | float))):
            yield file.finding("setting-runs-code", f"{shown(name)} is {shown(str(value))}", 0)


def _group(file: File, values: JsonObject) -> Iterator[Finding]:
    """Check the paths of a group: Triton loads its files from there (`FileCacheManager.get_group`, triton/runtime/cache.py)."""
    paths = values.get("child_paths")
    folder = os.path.basename(os.path.dirname(os.path.abspath(file.path)))
    places = paths.items() if isinstance(paths, dict) else ()
    yield from _leads(file, "Triton", [(path, (folder, str(name))) for name, path in places])


def _handles(file: File) -> Iterator[Finding]:
    """Check where vLLM loads its artifacts from (``CompilerManager`` of ``vllm/compilation/backends.py``)."""
    try:
        handles = literal_value(file.data.decode())
    except ValueError:
        yield file.finding("entry-damaged", "no literal", 0)
        return
    own = tuple(os.path.dirname(os.path.abspath(file.path)).split(os.sep)[-3:])
    found = []
    for value in handles.values() if isinstance(handles, dict) else ():
        handle = value.get("graph_handle") if isinstance(value, dict) else value
        if not (isinstance(handle, tuple) and len(handle) == 2):
            yield file.finding("entry-damaged", "a handle that is not of vLLM", 0)
        elif handle[1] is not None:
            found.append((handle[1], own))
    yield from _leads(file, "vLLM", found)


def _leads(file: File, who: str, places: list[tuple[object, tuple[str, ...]]]) -> Iterator[Finding]:
    """Check paths in a file: each leads to the file's own folder, by the names there, or to where this was when it was made."""
    folder = os.path.dirname(os.path.abspath(file.path))
    moved = False
    for path, inner in places:
        parts = path.replace("\\", "/").split("/") if isinstance(path, str) else []
        is_own = ".." not in parts and any(
            tuple(parts[at : at + len(inner)]) == inner for at in range(len(parts))
        )
        is_here = isinstance(path, str) and (
            os.path.normpath(path).startswith(folder + os.sep)
            or is_relative_name(os.path.dirname(path), folder)
        )
        if not is_own or (not is_here and os.path.exists(str(path))):
            yield file.finding("path-escapes", f"has {who} load {shown(str(path))}", 0)
        moved |= not is_here
    if moved:
        yield file.finding("group-moved", "names the files of a folder that is not its own", 0)


_WORD: Final = re.compile(r"[\w.-]*", re.ASCII)


def is_code(name: str) -> bool:
    """Whether a file with this name is run, or compiled and then run."""
    return os.path.splitext(name)[1][1:].lower() in CODE_ENDINGS


def is_remote_cache(path: str) -> bool:
    """Whether this is the address of a Redis, or a dump of one."""
    return is_redis(path) or (os.path.isfile(path) and looks_like_dump(read_head(path, 256)))


def audit_value(root: str, one: remote.Stored) -> Iterator[Finding]:
    """Yield the findings in one value."""
    kind, key = remote.kind_and_key(one.key)
    path = f"{root}/{one.key}"
    if kind == OTHER:
        yield Finding("unknown-file", path, "a value that torch does not store")
    elif one.value is None:
        yield Finding("entry-not-read", path, one.why_not)
    else:
        try:
            content = remote.content_of(kind, one.value)
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
