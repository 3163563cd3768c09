"""Checks generated code that torch runs or compiles again for what no kernel needs: Python, C++ and machine code.

The vocabulary is from the wrappers and kernels of torch 2.6 to 2.15. Generated code also contains kernels in C++ and
Triton, so code that passes is not proven harmless: every source counts as code that cannot be verified.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from typing import Final, TypeGuard

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

_MOST_CHARACTERS: Final = 4 << 20
TOO_LONG: Final = "is too long to be looked at"
_DEEPEST: Final = 4
_MODULES: Final = re.compile(
    r"(?:torch|triton)(?:\.\w+)*|math|cmath|random|os|tempfile|numpy|sympy|__future__|typing"
)
# Every wrapper imports these modules, and none uses them.
_UNUSED: Final = frozenset({"os", "tempfile"})
_NAMES_OF: Final = {"ctypes": re.compile(r"c_\w+"), "math": re.compile(r"inf|nan"), "cmath": re.compile(r"nanj"),
                    "typing": re.compile(r"\w+"), "__future__": re.compile(r"\w+")}  # fmt: skip
_BUILTINS: Final = frozenset(
    "eval exec compile __import__ open input getattr setattr delattr vars locals breakpoint help exit quit "  # noqa: SIM905
    "__builtins__ __loader__ __spec__ __build_class__".split()
)
_PARTS: Final = frozenset(
    "os sys subprocess shutil socket pickle importlib builtins pathlib tempfile io codecs marshal runpy pty inspect "  # noqa: SIM905
    "platform ctypes urllib http multiprocessing threading signal hub cpp_extension load load_library load_inline "
    "package serialization model_zoo system popen Popen check_output check_call".split()
)
_OWN_NAMES: Final = frozenset({"__name__", "__file__"})
_DUNDER: Final = re.compile(r"__\w+__")


def foreign_names(data: bytes) -> list[str]:
    """Names in compiled Python that generated code does not use."""
    return [f"names {name.decode()}" for name in dict.fromkeys(_NAMES.findall(data))]


def foreign_calls(text: str) -> list[str]:
    """Calls and includes in C++ code that no kernel of torch's has."""
    found = [f"calls {match[0].rstrip('( ')}" for match in _CALLS.finditer(text)]
    for include in _INCLUDES.findall(text):
        header = include.strip()
        if _FOREIGN_INCLUDE.match(header) or not (_LIBRARY_HEADER.match(header) or _OWN_HEADER.match(header)):
            found.append(f"includes {header[:100]}")
    return list(dict.fromkeys(found))


def foreign_symbols(data: bytes, *, is_launcher: bool = False) -> list[str]:
    """Functions in the tables of a shared library that can start programs."""
    names = dict.fromkeys(_SYMBOLS.findall(data))
    return [f"links {name.decode()}" for name in names if not (is_launcher and name in _OF_LAUNCHERS)]


def foreign_parts(text: str, depth: int = 0) -> list[str]:
    """Imports, calls and names in a source that generated code does not have, including code in its strings."""
    if len(text) > _MOST_CHARACTERS or depth > _DEEPEST:
        return [TOO_LONG]
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ["is no Python that can be read"]
    return list(dict.fromkeys(_of_tree(tree, depth)))


def rule_of(part: str) -> str:
    """The rule that a foreign part breaks."""
    return "entry-not-read" if part == TOO_LONG else "code-foreign-call"


def _of_tree(tree: ast.AST, depth: int) -> Iterator[str]:
    # A string that is a statement by itself is a comment: torch writes down there how it tuned (`__doc__` is not known).
    comments = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    waiting = {id(node) for call in ast.walk(tree) if _waits(call) for node in ast.walk(call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (f"imports {alias.name}" for alias in node.names if not _is_plain_import(alias))
        elif isinstance(node, ast.ImportFrom):
            yield from _of_import(node)
        elif isinstance(node, ast.Name):
            if node.id in _BUILTINS or (_DUNDER.fullmatch(node.id) and node.id not in _OWN_NAMES):
                yield f"uses {node.id}"
            elif node.id == "globals" and id(node) not in waiting:
                yield "uses globals"
            elif node.id in _UNUSED:
                yield f"uses {node.id}, which generated code only imports"
        elif isinstance(node, ast.Attribute):
            if (node.attr in _PARTS or _DUNDER.fullmatch(node.attr)) and ast.unparse(node) != "tl.load":
                yield f"uses {ast.unparse(node)[:100]}"
        elif _is_text(node) and id(node) not in comments:
            yield from _of_text(str(node.value), depth)


def _is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    """Whether a node is a string of several lines."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value.strip()


def _waits(node: ast.AST) -> bool:
    """Whether a node is a call of the form ``async_compile.wait(globals())``."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "async_compile.wait"


def _is_plain_import(alias: ast.alias) -> bool:
    if not _MODULES.fullmatch(alias.name) or not _PARTS.isdisjoint(alias.name.split(".")[1:]):
        return False
    if alias.asname == "tl":
        return alias.name == "triton.language"
    return alias.asname is None or alias.name.partition(".")[0] in ("torch", "triton", "numpy", "sympy")


def _of_import(node: ast.ImportFrom) -> Iterator[str]:
    module = node.module or "."
    for alias in node.names:
        names = _NAMES_OF.get(module)
        if names is not None:
            is_known = names.fullmatch(alias.name) is not None
        else:
            is_known = (
                module.partition(".")[0] in ("torch", "triton")
                and _PARTS.isdisjoint(module.split("."))
                and alias.name not in _PARTS
                and alias.name not in _BUILTINS
                and alias.name != "*"
            )
        if not is_known or node.level:
            yield f"imports {alias.name} from {module}"


def _of_text(text: str, depth: int) -> Iterator[str]:
    """Check a string: wrappers contain kernels as text, Triton's in Python, the others in C++."""
    if "#include" in text or 'extern "C"' in text:
        yield from foreign_calls(text)
    elif "import " in text or "def " in text:
        yield from foreign_parts(text, depth + 1)
