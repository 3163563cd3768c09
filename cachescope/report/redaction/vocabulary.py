"""Words that identify nobody, and how texts are split into words; what is known of a value from its column.

None of them is read from a source. Every other word of a source is hidden, whatever it looks like.

The words known to be harmless are extracted from cachescope's own texts by the same rules, and so are recognised.

All other values are free text, in which every word must be known. A new column needs nothing here to be safe.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import errno
import json
import keyword
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import chain
from typing import Any, Final

from cachescope.catalogue.defects import all_defects, sentence
from cachescope.frames.described import FRAMES
from cachescope.rows import columns_of, grain

# Column, or key of a JSON form -> the kind of its stand-ins. Their values are no sentences: blanks separate no words in them.
WHOLE: Final = {
    **dict.fromkeys(
        ("source", "sources", "path", "paths", "root", "cache_dir", "filled_dir", "folder"), "path"
    ),
    **dict.fromkeys(("file", "entry_path", "link", "report"), "path"),
    **dict.fromkeys(("host", "hostname", "node"), "host"),
    **dict.fromkeys(("user", "owner", "mail", "email"), "user"),
    **dict.fromkeys(("function", "callee"), "function"),
    "uuid": "uuid",
    **dict.fromkeys(("pci", "pci_bus_id", "pci_device_id", "pci_domain_id"), "bus"),
}
# Numbers that identify one board.
NUMBERS_HIDDEN: Final = frozenset({"pci_bus_id", "pci_device_id", "pci_domain_id"})
# Columns in which a text of the right form is a key or a hash of torch or cachescope; elsewhere it may be a commit.
KEYS: Final = frozenset(
    {
        "cache_key", "code_key", "fx_keys", "kernel_keys", "triton_hashes", "child_key", "other_key", "other_code_key",
        "isolation_key", "what_if_key", "detail_hash", "torch_detail_hash", "torch_version_hash", "triton_version_hash",
    }
)  # fmt: skip

# Non-ASCII characters belong to words, so no name is cut at an accent; the signs of our own texts are excepted.
_SIGN: Final = "…–—·×→←≤≥•‘’“”"
_LETTER: Final = rf"(?:\w|(?![{_SIGN}\s])[^\x00-\x7f])"
_ENTITY: Final = r"&#?\w{1,10};"

RUN: Final = rf"(?:{_ENTITY}|[^\s'\"`,;(){{}}\[\]<>|={_SIGN}])+"
WORD: Final = re.compile(rf"{_LETTER}+(?:[.\-]+{_LETTER}+)*")
_RUN: Final = re.compile(RUN)
_BEFORE: Final = "!?*"
_AFTER: Final = ".:!?*"

# Code that runs or shows things rather than wording them; examples of what is hidden; and threads, which name people and their projects.
_LEFT_OUT: Final = frozenset({"redaction", "redact.py", "samples", "views", "defects.json", "__pycache__"})
_SAID_BY_PYTHON: Final = """Permission denied No such file or directory Is a directory Not a directory Too many open files
Input/output error Connection refused Linux Darwin Windows x86_64 aarch64 arm64 glibc2 CPython GCC Clang main default AMD64
ieee tf32 highest high medium low none cpu cuda xpu mps hip rocm meta miss hit bypass aten triton inductor sympy numpy GET PUT UTC str bytes File Traceback most recent
call last invalid unexpected expected missing unsupported USER HOME HOST HOSTNAME LOGNAME PATH PWD LD_LIBRARY_PATH user
unrecognized ambiguous argument arguments required choose from choice username hostname host password passwd token secret api_key Authorization Bearer Basic https http"""
# Mostly the names in hostile pickles: an audit would be empty without them.
_MODULES_THAT_RUN: Final = (
    "builtins ctypes functools importlib marshal operator os pickle posix pty runpy shutil socket subprocess sys types".split()  # noqa: SIM905
)


def trimmed(run: str) -> str:
    """A run without the signs of a sentence around it."""
    return run.lstrip(_BEFORE).rstrip(_AFTER)


def words_of(text: str) -> Iterator[str]:
    """The known parts of a text: its words, and its runs with slashes, colons and the like."""
    for run in _RUN.findall(text):
        yield trimmed(run)
        yield from WORD.findall(run)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What is known to be harmless."""

    words: frozenset[str]  # words and whole runs
    pieces: frozenset[str]  # the parts from which names of fused kernels are generated
    files: frozenset[str]  # the files of torch's compiler, from ``torch/``


@lru_cache(maxsize=1)
def vocabulary() -> Vocabulary:
    """The words, collected once."""
    package = files("cachescope")
    sections: dict[str, list[str]] = {}
    for line in files(__package__).joinpath("torch_words.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            sections[line.strip("[]")] = members = []
        else:
            members.append(line)
    operators = sections["operators"]
    said_of_defects = (sentence(one) for one in all_defects() if one.sign is not None)
    own = (word for text in chain(_own_texts(package), said_of_defects) for word in words_of(text))
    system = (word for number in errno.errorcode for word in words_of(os.strerror(number)))
    columns = (column.name for kind in FRAMES.values() for column in columns_of(kind))
    grains = (word for kind in FRAMES.values() for word in words_of(grain(kind)))
    python = (*keyword.kwlist, *dir(builtins), *_SAID_BY_PYTHON.split(), *system, *_functions_that_run())
    return Vocabulary(
        frozenset((*operators, *sections["words"], *own, *python, *columns, *grains, *WHOLE, *KEYS)),
        frozenset(piece for name in operators for piece in (name, *name.split("_"))),
        frozenset(sections["files"]),
    )


def _functions_that_run() -> Iterator[str]:
    for name in _MODULES_THAT_RUN:
        with contextlib.suppress(ImportError):  # posix and pty are not everywhere
            yield from (f"{name}.{function}" for function in dir(import_module(name)))


def _own_texts(folder: Traversable) -> Iterator[str]:
    for child in folder.iterdir():
        if child.name in _LEFT_OUT:
            continue
        if child.is_dir():
            yield from _own_texts(child)
        elif child.name.endswith(".py"):
            yield from _constants(ast.parse(child.read_text(encoding="utf-8")))
        elif child.name.endswith(".json"):
            yield from _texts(json.loads(child.read_text(encoding="utf-8")))


def _constants(tree: ast.AST) -> Iterator[str]:
    """The texts of a module, except for its documentation, which uses made-up names as examples."""
    # Not by ast.walk, which takes three times as long.
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield node.value
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            for value in vars(node).values():
                if isinstance(value, ast.AST):
                    waiting.append(value)
                elif isinstance(value, list):
                    waiting += [one for one in value if isinstance(one, ast.AST)]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value


# cachescope/keys/hashing.py: sha256 in base32, with the letter of the kind before 51 characters of it.
_HASH: Final = r"[a-z2-7]{51,52}"
_ENDINGS: Final = ("py", "cpp", "h", "hpp", "so", "o", "a", "cu", "cubin", "ptx", "hsaco", "spv", "amdgcn", "zebin", "json", "txt", "pt2",
    "best_config", "lock", "source", "ttir", "ttgir", "llir", "pyc")  # fmt: skip
_ENDING: Final = f"(?:{'|'.join(_ENDINGS)})"
# Longer numbers identify accounts and cards, except for the bounds of a size.
_NUMBER: Final = (
    r"(?:(?:\d{1,11}|922337203685477580[67]|18446744073709551615)(?:\.\d{1,20})?)(?:e[+-]?\d{1,4})?"
)
_LONGEST: Final = 400
_UNIT: Final = r"(?:[kKMGTP]?i?B|B|ns|us|µs|ms|s|min|h|x|L|LL|u|ul|ull|f|j|th|st|nd|rd|MHz|GHz|W|bit|d)"
_VERSION: Final = (
    r"[vV]?\d{1,4}(?:\.\d{1,6}){1,2}(?:(?:a|b|rc)\d{1,3})?(?:\.(?:dev|post)\d{1,8})?"  # not four: an address
)
_SYMBOL: Final = (
    r"(?:[suzxyri]|ks|ps|zuf|zf|tmp|buf|arg|args|in_ptr|out_ptr|in_out_ptr|stream)\d{1,5}(?:_\d{1,5})?"
)
_DATE: Final = r"(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_HARMLESS: Final = re.compile(
    rf"[A-Za-z]|{_NUMBER}{_UNIT}?|{_VERSION}|{_SYMBOL}|{_DATE}(?:T\d\d)?|T\d\d|\d\dZ"
    r"|\d{1,3}-\d{1,3}|\d{1,6}(?:x\d{1,6})+|\d{1,3}(?:_\d{3})+|\d{1,6}_\d{1,6}"
    r"|(?:primals|tangents|getitem|view|fwd_rng_state|bwd_rng_state)_\d{1,5}"
    r"|(?:r\d_)?[xyzr](?:numel|offset|index|mask|base)\d?|(?:[XYZR]|R\d_)BLOCK"
    r"|cu1\d\d|sm_\d{2,3}[a-z]?|compute_\d{2,3}[a-z]?|gfx\d{1,2}[0-9a-f]{2}|(?:py|cp)3\d{0,2}"
    rf"|{_HASH}(?:\.(?:main|optimized|kernel|wrapper|weights))?(?:\.{_ENDING})?"
)
# The keys of a what-if are cachescope's own: analysis/what_if/keys.py.
_KEY: Final = re.compile(rf"{_HASH}|w[0-9a-f]{{32}}")
_HEXADECIMAL: Final = re.compile(r"[0-9a-f]{32}|[0-9a-f]{64}")
_GENERATED: Final = re.compile(
    r"(?:triton|cpp)_(?:[a-z]{2,4}_)?fused_?(?P<of>\w*?)_?\d{0,5}|(?P<op>\w+)_\d{1,5}|kernel_cpp_\d+"
)
# Dotted names of known words begin with one of these; names of hosts and of a user's modules do not.
_ROOTS: Final = frozenset(
    {"torch", "nn", "triton", "aten", "prims", "inductor", "tl", "libdevice", "ops", "sympy", "numpy", "extern_kernels", "math", "config"}
)  # fmt: skip
# 15:36:00, and 15:36.
TIME: Final = re.compile(r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{3,9})?)?Z?")
# s0//2, and 0/0: sizes, and compile ids.
AMOUNTS: Final = re.compile(
    rf"/{{0,2}}!?(?:{_SYMBOL}|[a-z]|\d{{1,9}}(?:_\d{{1,4}})?)(?:[*+%/-]+(?:{_SYMBOL}|[a-z]|\d{{1,9}}(?:_\d{{1,4}})?))*"
)


def is_torch_hash(text: str) -> bool:
    """Whether a text has the form of a key or a hash that only torch makes."""
    return _KEY.fullmatch(text) is not None


def may_be_torch_hash(text: str) -> bool:
    """Whether a text has the form of torch's hashes, which others share: a commit looks the same."""
    return is_torch_hash(text) or _HEXADECIMAL.fullmatch(text) is not None


def is_harmless(word: str, known: Vocabulary) -> bool:
    """Whether a word identifies nobody."""
    if len(word) > _LONGEST:
        return False
    if word in known.words or _HARMLESS.fullmatch(word):
        return True
    return _is_dotted(word.split("."), known) if "." in word else _is_generated(word, known)


def _is_dotted(parts: list[str], known: Vocabulary) -> bool:
    if len(parts) == 2 and parts[1] in _ENDINGS and _is_generated(parts[0], known):
        return True
    if parts[0] not in _ROOTS and not re.fullmatch(_SYMBOL, parts[0]):
        return False
    return all(part in known.words or part.isdigit() for part in parts[1:])


def _is_generated(word: str, known: Vocabulary) -> bool:
    """``triton_poi_fused_add_relu_0``, ``add_1``: made only from the names of operators."""
    match = _GENERATED.fullmatch(word)
    if match is None:
        return False
    pieces = match["of"] or match["op"]
    return (
        pieces is None or not pieces or all(not piece or piece in known.pieces for piece in pieces.split("_"))
    )
