"""Files of Dynamo: precompile packages (``dynamo/<source id>/entry``), what ``save_compiled_function`` writes (2.10 to 2.15), profiles.

The packages are pickles with the bytecode of the function in them: whoever lets torch load one runs what is in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.cache_file import DamagedContent, content_reader
from cachescope.readers.directory.entry_file import text
from cachescope.readers.directory.graph_entries import take_bundled
from cachescope.readers.json_record import well_formed
from cachescope.readers.kinds import AOT_MAGIC
from cachescope.readers.pickles.inert_pickle import NotRead, Stub, global_name, loads_harmless
from cachescope.readers.reading import Reading
from cachescope.wording import plural

_FORMAT: Final = b"\x01"
_OBJECT: Final = re.compile(r"<([\w.]{1,200}) object at 0x[0-9a-f]{1,16}>")
_PARTS: Final = frozenset({"signature", "compiled_fn", "original_code", "guards_state"})


def place_of(function: object, file: object, line: object) -> str | None:
    """A function and its location; None without its name."""
    if not isinstance(function, str):
        return None
    return text(f"{function} at {file}:{line}" if isinstance(file, str) and type(line) is int else function)


def system_of(info: object) -> list[str]:
    """What made a package, of a ``SystemInfo`` (torch/_dynamo/package.py), which torch compares with the process that loads it."""
    state = info.state if isinstance(info, Stub) else {}
    version = state.get("torch_version")
    if isinstance(version, Stub) and version.args:  # `TorchVersion`, a kind of str
        version = version.args[0]
    known = {"torch": version, "Python": state.get("python_version"), "toolkit": state.get("toolkit_version")}
    found = [f"{what} {value}" for what, value in known.items() if isinstance(value, str)]
    device = state.get("gpu_name")
    return [text(part) or "" for part in (*found, *([device] if isinstance(device, str) else []))]


def fill_precompile(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Say what was compiled, for which torch, Python and device, and count its compiled graphs.

    Mirrors ``PrecompileCacheEntry``, ``_DynamoCacheEntry`` and ``DiskDynamoStore.write`` (torch/_dynamo/package.py, 2.10 to 2.15).
    """
    package = loads_harmless(data)
    made_of = global_name(package)
    if not isinstance(package, Stub) or made_of is None or not made_of.startswith("torch._dynamo."):
        raise DamagedContent(f"no precompile package: holds {made_of or type(package).__name__}")
    backends, dynamo = package.state.get("backends"), package.state.get("dynamo")
    state = dynamo.state if isinstance(dynamo, Stub) else {}
    entry.name = place_of(state.get("fn_name"), _file(state.get("codes")), state.get("fn_first_lineno"))
    if (device := text(state.get("device_type"))) is not None:
        entry.device_types = (device,)
    graphs = [plural(len(backends), "compiled graph")] if isinstance(backends, dict) else []
    entry.detail = ", ".join((*graphs, *system_of(state.get("system_info")))) or None


def _file(codes: object) -> object:
    """The location of the first code object, which is the function itself."""
    first = codes[0] if isinstance(codes, list) and codes else None
    code = first.state.get("python_code") if isinstance(first, Stub) else None
    return code.state.get("co_filename") if isinstance(code, Stub) else None


def fill_aot_compile(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Say what was compiled, for which torch, Python and device.

    Mirrors ``AOTCompiledFunction.serialize`` and ``AOTCompiledModel.serialize`` (torch/_dynamo/aot_compile.py).
    """
    packages = _packages(data)
    for package in packages[:1]:
        _take(entry, package, reading)
    if len(packages) != 1:
        counted = plural(len(packages), "compiled graph")
        entry.detail = f"{counted}; {entry.detail}" if entry.detail else counted


def _packages(data: bytes) -> list[dict[object, object]]:
    value = _load(data)
    found = [_load(one) for one in value if isinstance(one, bytes)] if isinstance(value, list) else [value]
    packages = [one for one in found if isinstance(one, dict) and one.keys() >= _PARTS]
    if len(packages) != len(value if isinstance(value, list) else found):
        raise DamagedContent("no package of a compiled function")
    return packages


def _load(data: bytes) -> object:
    if data.startswith(AOT_MAGIC):
        at = len(AOT_MAGIC)
        if data[at : at + 1] != _FORMAT:
            raise NotRead(f"format {data[at : at + 1].hex()} of a compiled function is not known", at)
        data = data[at + 1 :]
    return loads_harmless(data)


def _take(entry: EntryRow, package: dict[object, object], reading: Reading) -> None:
    code = package["original_code"]  # a `SerializedCode` (torch/_dynamo/package.py)
    state = code.state if isinstance(code, Stub) else {}
    entry.name = place_of(*(state.get(name) for name in ("co_qualname", "co_filename", "co_firstlineno")))
    compiled = package["compiled_fn"]
    if isinstance(compiled, tuple) and len(compiled) == 2 and isinstance(compiled[1], bytes):
        take_bundled(entry, loads_harmless(compiled[1]), reading)
    if not entry.device_types and (device := text(package.get("device_type"))) is not None:
        entry.device_types = (device,)
    backend = text(package.get("backend_name"))
    made_by = system_of(package.get("system_info"))
    if backend is not None:
        # A backend without a name is called by its repr, whose address differs in each process.
        made_by.append("backend " + _OBJECT.sub(r"\1", backend))
    entry.detail = ", ".join(made_by)


read_aot_compile = content_reader(fill_aot_compile)


CODE_STATE: Final = "code_state_"
"""How the name of a file begins."""
_NOT_IN_NAMES: Final = re.compile(r'[<>:"/\\|?*]')
_SHOWN: Final = 20


def key_in_name(key: str) -> str:
    """A key of PGO as it is in the name of its file: `code_state_path` (torch/_dynamo/pgo.py)."""
    return _NOT_IN_NAMES.sub("_", key)


def fill_code_state(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Note the frames for which torch knows how their inputs varied.

    Mirrors ``put_local_code_state`` (torch/_dynamo/pgo.py): a ``defaultdict`` of ``CodeId`` to ``CodeState``.
    """
    if not name.startswith(CODE_STATE):
        # A "/" in the job id turned its first part into a folder (2.6).
        entry.cache_key = f"{entry.cache_key}/{well_formed(name.removesuffix('.pkl'))}"
    state = loads_harmless(data)
    made_of = global_name(state)
    if not isinstance(state, Stub) or made_of != "collections.defaultdict":
        raise DamagedContent(f"no code state: holds {made_of or type(state).__name__}")
    frames = list(_frames(state))
    entry.detail = ", ".join(frames[:_SHOWN])
    if len(frames) > _SHOWN:
        entry.detail += f" and {len(frames) - _SHOWN} more"


def _frames(state: Stub) -> Iterator[str]:
    for code, _ in state.pairs:
        if not isinstance(code, Stub) or code.name != "CodeId":
            raise DamagedContent("no code state: a key that is no CodeId")
        file, line, name = (code.state.get(part) for part in ("filename", "firstlineno", "name"))
        yield well_formed(f"{str(name)[:100]} ({str(file)[:300]}:{str(line)[:20]})")
