"""What torch notes of itself and of a function in the packages of Dynamo: precompile packages and compiled functions."""

from __future__ import annotations

from cachescope.readers.directory.entry_file import text
from cachescope.readers.pickles.inert_pickle import Stub


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
    known = {
        "torch": version,
        "Python": state.get("python_version"),
        "toolkit": state.get("toolkit_version"),
    }
    found = [f"{what} {value}" for what, value in known.items() if isinstance(value, str)]
    device = state.get("gpu_name")
    return [text(part) or "" for part in (*found, *([device] if isinstance(device, str) else []))]
