"""Precompile packages: ``dynamo/<source id>/entry`` (``TORCH_CACHING_PRECOMPILE=1``)."""

from __future__ import annotations

from cachescope.readers.checked_file import DamagedContent, content_reader
from cachescope.readers.pickles.hostile_pickles import loads_harmless
from cachescope.readers.pickles.inert_pickle import Stub, global_name
from cachescope.readers.reading import Entry, Reading


def fill_precompile(entry: Entry, name: str, data: bytes, reading: Reading) -> None:
    """Count the compiled backends in a package.

    Mirrors ``PrecompileCacheEntry`` and ``DiskDynamoStore.write`` (torch/_dynamo/package.py, 2.10 to 2.15).
    """
    package = loads_harmless(data)
    made_of = global_name(package)
    if not isinstance(package, Stub) or made_of is None or not made_of.startswith("torch._dynamo."):
        raise DamagedContent(f"no precompile package: holds {made_of or type(package).__name__}")
    backends = package.state.get("backends")
    if isinstance(backends, dict):
        entry.detail = f"{len(backends)} backends"


read_precompile = content_reader(fill_precompile)
