"""Finds calls, includes and symbols that no kernel needs in C++ and machine code that torch compiles or loads."""

from __future__ import annotations

import re
from typing import Final

_CALLS: Final = re.compile(
    r"(?<!\w)(?:system|popen|exec[lv]p?e?|execvpe|fexecve|v?fork|clone|posix_spawnp?|dlopen|dlmopen|dlsym|socket|connect|"
    r"ptrace|mprotect|syscall|unlink|rmdir|setuid|chmod|PyRun_\w+|Py_CompileString\w*|PyEval_Eval\w*|PyImport_\w+|"
    r"std::filesystem\S*)\s*\(|__attribute__\s*\(\(\s*(?:constructor|ifunc|destructor)|\b(?:__)?asm(?:__)?\s*(?:volatile)?\s*\(|"
    r"\b(?:std::)?[io]?fstream\b"
)
_INCLUDES: Final = re.compile(r"^[ \t]*#[ \t]*include(?:_next)?[ \t]*(\S[^\n]*)", re.MULTILINE)
_FOREIGN_INCLUDE: Final = re.compile(
    r"[<\"](?:unistd\.h|dlfcn\.h|spawn\.h|fcntl\.h|netdb\.h|signal\.h|sys/|arpa/|netinet/|filesystem>|fstream>|windows\.h)"
)
# Older torch includes its header in the cache by the full path.
_OWN_HEADER: Final = re.compile(r'"(?:[^"]*/)?c[a-z2-7]{51}\.h"')
_LIBRARY_HEADER: Final = re.compile(r'<[^>\n]*>|"(?:[^"]*/)?(?:torch|ATen|c10|cuda|cutlass|hip)\S*"')
# Names in the tables of a shared library; each is between NULs.
_SYMBOLS: Final = re.compile(
    rb"\0(system|popen|exec[lv]p?e?|v?fork|posix_spawnp?|socket|connect|ptrace|mprotect|syscall|PyRun_SimpleStringFlags|"
    rb"PyRun_StringFlags|PyRun_SimpleString|PyRun_String|PyEval_EvalCode|dlopen|dlmopen)(?=[\0@])"
)
# Triton's launchers load their driver themselves.
_OF_LAUNCHERS: Final = frozenset({b"dlopen", b"dlsym"})
# Names in compiled Python.
_NAMES: Final = re.compile(
    rb"(?<!\w)(?:subprocess|__import__|popen|system|execve|spawnl|socket|urllib|marshal|importlib|__builtins__|__subclasses__)(?!\w)"
)


def foreign_names(data: bytes) -> list[str]:
    """Names in compiled Python that generated code does not use."""
    return [f"names {name.decode()}" for name in dict.fromkeys(_NAMES.findall(data))]


def foreign_calls(text: str) -> list[str]:
    """Calls and includes in C++ code that no kernel of torch's has."""
    found = [f"calls {match[0].rstrip('( ')}" for match in _CALLS.finditer(text)]
    for include in _INCLUDES.findall(text):
        header = include.strip()
        if _FOREIGN_INCLUDE.match(header) or (
            not _LIBRARY_HEADER.match(header) and not _OWN_HEADER.match(header)
        ):
            found.append(f"includes {header[:100]}")
    return list(dict.fromkeys(found))


def foreign_symbols(data: bytes, *, is_launcher: bool = False) -> list[str]:
    """Functions in the tables of a shared library that can start programs."""
    names = dict.fromkeys(_SYMBOLS.findall(data))
    return [f"links {name.decode()}" for name in names if not (is_launcher and name in _OF_LAUNCHERS)]
