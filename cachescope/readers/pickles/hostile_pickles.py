"""Recognizes pickles that were made to run code, by the globals they name, and refuses them."""

from __future__ import annotations

from cachescope.readers.pickles.inert_pickle import (
    InertUnpickler,
    Limits,
    UnreadablePickle,
    loads_inert,
)

# Modules and builtins that no compiled graph needs. A pickle that names one of them was made to
# run code. Other unknown modules are the user's own: tensor subclasses, kernels, opaque values.
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
    """Read a pickle inertly, as `loads_inert` does, but refuse it if it names a hostile global.

    Raises
    ------
    UnreadablePickle
        If anything is wrong with the bytes, or at the first hostile global.
    """
    return loads_inert(data, limits, _HarmlessUnpickler)


class _HarmlessUnpickler(InertUnpickler):
    def stands_for(self, module: str, name: str) -> object:
        if _is_hostile(module, name):
            raise UnreadablePickle(f"hostile: names {module}.{name}")
        return super().stands_for(module, name)


def _is_hostile(module: str, name: str) -> bool:
    if module in ("builtins", "__builtin__"):
        return name.partition(".")[0] in _HOSTILE_BUILTINS
    return module.partition(".")[0] in _HOSTILE_MODULES
