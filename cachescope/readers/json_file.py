"""JSON as torch and Triton write it: Python's own dialect, with ``Infinity``."""

from __future__ import annotations

import json

from cachescope.readers.cache_file import DamagedContent


def load_json(data: bytes) -> object:
    """Parse the bytes of a JSON file."""
    try:
        value: object = json.loads(data)
    except json.JSONDecodeError as error:
        raise DamagedContent(f"no JSON: {error.msg}", error.pos) from error
    except (ValueError, RecursionError) as error:  # bad UTF-8, a number of too many digits, nested too deep
        raise DamagedContent(f"no JSON: {type(error).__name__}") from error
    return value


def load_object(data: bytes) -> dict[str, object]:
    """Parse the bytes of a JSON file that contains one object; raises `DamagedContent` like `load_json`."""
    value = load_json(data)
    if not isinstance(value, dict):
        raise DamagedContent(f"holds a JSON {type(value).__name__}, not an object")
    return value
