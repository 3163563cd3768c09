"""Forms that are harmless: numbers, versions, times, sizes of dtypes, generated names, and the hashes torch makes."""

from __future__ import annotations

import re
from typing import Final

from cachescope.report.redaction.vocabulary import Vocabulary

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
_TIME: Final = re.compile(r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{3,9})?)?Z?")
_AMOUNTS: Final = re.compile(
    rf"/{{0,2}}!?(?:{_SYMBOL}|[a-z]|\d{{1,9}}(?:_\d{{1,4}})?)(?:[*+%/-]+(?:{_SYMBOL}|[a-z]|\d{{1,9}}(?:_\d{{1,4}})?))*"
)


def is_torch_hash(text: str) -> bool:
    """Whether a text has the form of a key or a hash that only torch makes."""
    return _KEY.fullmatch(text) is not None


def may_be_torch_hash(text: str) -> bool:
    """Whether a text has the form of torch's hashes, which others share: a commit looks the same."""
    return is_torch_hash(text) or _HEXADECIMAL.fullmatch(text) is not None


def is_time(text: str) -> bool:
    """``15:36:00``, and ``15:36``."""
    return _TIME.fullmatch(text) is not None


def is_arithmetic(text: str) -> bool:
    """``s0//2``, and ``0/0``: sizes, and compile ids."""
    return _AMOUNTS.fullmatch(text) is not None


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
