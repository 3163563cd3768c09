"""Precompile packages: ``dynamo/<source id>/entry`` (``TORCH_CACHING_PRECOMPILE=1``)."""

from __future__ import annotations

from cachescope.readers.checked_file import DamagedContent, content_reader
from cachescope.readers.directory.dynamo_package import place_of, system_of
from cachescope.readers.directory.entry_file import text
from cachescope.readers.pickles.hostile_pickles import loads_harmless
from cachescope.readers.pickles.inert_pickle import Stub, global_name
from cachescope.readers.reading import Entry, Reading
from cachescope.wording import plural


def fill_precompile(entry: Entry, name: str, data: bytes, reading: Reading) -> None:
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


read_precompile = content_reader(fill_precompile)
