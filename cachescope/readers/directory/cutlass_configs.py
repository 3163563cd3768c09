"""CUTLASS operations: ``configs_<8 hex>.json``, a JSON list of texts, each of which is JSON."""

from __future__ import annotations

from cachescope.readers.checked_file import DamagedContent, content_reader
from cachescope.readers.json_file import load_json
from cachescope.readers.reading import Entry, Reading


def fill_cutlass_configs(entry: Entry, name: str, data: bytes, reading: Reading) -> None:
    """Count the operations.

    Mirrors ``maybe_fetch_ops`` (torch/_inductor/codegen/cuda/cutlass_cache.py 2.7 to 2.10,
    codegen/cutlass/cache.py 2.11+). The name is the request key: `cachescope.keys.cutlass_request_key`.
    """
    operations = load_json(data)
    if not isinstance(operations, list) or not all(isinstance(one, str) for one in operations):
        raise DamagedContent("holds no list of texts")
    for one in operations:
        load_json(one.encode("utf-8", "surrogatepass"))
    entry.detail = f"{len(operations)} operations"


read_cutlass_configs = content_reader(fill_cutlass_configs)
