"""Pickles that were made to run something, told by the globals they name; and inert reading that refuses them."""

from __future__ import annotations

from cachescope.readers.inert_pickle import Limits, UnreadablePickle, loads_with_globals

# Modules whose functions no compiled graph needs, and those builtins. A pickle with one of them was made to
# run something. Other unknown modules are the user's own: tensor subclasses, kernels, opaque values.
_HOSTILE_MODULES = frozenset(
    {
        "asyncio",
        "bdb",
        "cmd",
        "code",
        "codeop",
        "commands",
        "ctypes",
        "doctest",
        "ftplib",
        "http",
        "imp",
        "importlib",
        "marshal",
        "multiprocessing",
        "nt",
        "os",
        "pdb",
        "pickle",
        "pip",
        "pkgutil",
        "platform",
        "posix",
        "profile",
        "pty",
        "runpy",
        "shelve",
        "shutil",
        "smtplib",
        "socket",
        "subprocess",
        "sys",
        "tempfile",
        "threading",
        "timeit",
        "trace",
        "urllib",
        "webbrowser",
    }
)
_HOSTILE_BUILTINS = frozenset(
    {
        "__import__",
        "breakpoint",
        "compile",
        "delattr",
        "eval",
        "exec",
        "globals",
        "input",
        "locals",
        "open",
        "setattr",
        "vars",
    }
)


def loads_harmless(data: bytes, limits: Limits | None = None) -> object:
    """Read a pickle inertly, as `loads_inert` does; refuse one that names what no cache needs.

    Raises
    ------
    UnreadablePickle
        Whatever is wrong with the bytes, or the hostile globals.
    """
    value, names = loads_with_globals(data, limits)
    hostile = sorted(f"{module}.{name}" for module, name in names if _is_hostile(module, name))
    if hostile:
        raise UnreadablePickle(f"hostile: names {', '.join(hostile[:3])}")
    return value


def _is_hostile(module: str, name: str) -> bool:
    if module in ("builtins", "__builtin__"):
        return name.partition(".")[0] in _HOSTILE_BUILTINS
    return module.partition(".")[0] in _HOSTILE_MODULES
