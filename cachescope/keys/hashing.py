"""torch.compile's content hashes: compact sha256, generated-code keys, names of entries, timings and Triton's results.

Pure functions without torch. Since torch 2.13 torch routes them through
``torch/_inductor/cache_key.py`` (``CacheKeyStrategy``); before that they are written out
in ``torch/_inductor/codecache.py``. The results are the same from 2.6 to 2.15, unless
a docstring notes a difference.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Final

from cachescope.errors import CachescopeError
from cachescope.keys.json_values import sorted_json

COMPACT_LENGTH: Final = 51

# The two branches of torch/_inductor/codecache.py get_hash, 2.13. "zebin" is
# torch/_inductor/utils.py XPU_KERNEL_FORMAT if TORCHINDUCTOR_XPU_KERNEL_FORMAT is not set.
TEXT_HASH_TYPES: Final = frozenset({"amdgcn", "code", "ptx", "spv"})
BINARY_HASH_TYPES: Final = frozenset({"cubin", "hsaco", "zebin"})


def sha256_hash(data: bytes) -> str:
    """Return torch's compact hash: 51 characters of lower-case base32 sha256.

    The cut drops the 52nd character, which carries the last bit of the digest, so the
    hash cannot be turned back into the 32 bytes.

    Parameters
    ----------
    data : bytes
        The bytes to hash.

    Notes
    -----
    Mirrors ``torch/_inductor/codecache.py`` ``sha256_hash`` (2.6 to 2.15;
    ``COMPACT_CACHE_KEY_STRATEGY`` from 2.13).

    Examples
    --------
    >>> sha256_hash(b"")
    '4oymiquy7qobjgx36tejs35zeqt24qpemsnzgtfeswmrw6csxbk'
    """
    return base64.b32encode(hashlib.sha256(data).digest())[:COMPACT_LENGTH].decode("ascii").lower()


def code_hash(code: str | bytes, extra: str | bytes = "") -> str:
    """Return the key of generated code: ``c`` and the compact hash, 52 characters.

    Parameters
    ----------
    code : str or bytes
        The code as hashed. torch strips what it writes first: see `stored_code_hash`.
    extra : str or bytes, optional
        What else affects the result (a compile command, a vector ISA). It is not stored
        with the file, so the key of a ``.cpp`` cannot be recomputed from the file alone.

    Notes
    -----
    Mirrors ``torch/_inductor/codecache.py`` ``code_hash`` (2.6 to 2.15;
    ``CODE_CACHE_KEY_STRATEGY`` from 2.13; 2.6 takes `extra` as str only).

    Examples
    --------
    >>> code_hash("x = 1") == code_hash(b"x = 1")
    True
    """
    data = _to_bytes(code)
    if extra:
        data = data + b"||" + _to_bytes(extra)
    return "c" + sha256_hash(data)


def get_hash(content: str | bytes, extra: str = "", hash_type: str = "code") -> str:
    r"""Return the ``c`` key torch gives a file of one kind.

    Parameters
    ----------
    content : str or bytes
        The content as hashed.
    extra : str, optional
        As for `code_hash`; binary kinds ignore it.
    hash_type : str, optional
        ``code``, ``ptx``, ``amdgcn`` and ``spv`` hash the content. ``cubin``, ``hsaco``
        and ``zebin`` hash the *text* ``repr(content)`` (``b'\x7fELF…'``), not the bytes.

    Raises
    ------
    CachescopeError
        If torch 2.13 knows no such kind (torch raises AssertionError).

    Notes
    -----
    Mirrors ``torch/_inductor/codecache.py`` ``get_hash``, 2.13. Other versions differ:
    2.6 hashes ``spv`` as repr and knows neither ``amdgcn``, ``ptx`` nor ``zebin``; 2.10
    has no ``zebin``; 2.15 is as 2.13. From 2.13 a process with
    ``TORCHINDUCTOR_XPU_KERNEL_FORMAT=spv`` still hashes ``spv`` as content, because the text
    branch comes first.

    Examples
    --------
    >>> get_hash(b"\x7fELF", hash_type="cubin") == code_hash(repr(b"\x7fELF"))
    True
    """
    if hash_type in TEXT_HASH_TYPES:
        return code_hash(content, extra)
    if hash_type in BINARY_HASH_TYPES:
        return code_hash(repr(content))
    known = ", ".join(sorted(TEXT_HASH_TYPES | BINARY_HASH_TYPES))
    raise CachescopeError(f"no such hash type: {hash_type!r}; torch knows {known}")


def stored_code_hash(content: str | bytes, extra: str = "", hash_type: str = "code") -> str:
    r"""Return the key under which torch writes `content` (surrounding space is not hashed).

    A generated ``.py`` is sound if this equals the file's stem. Read the file as text: str
    and bytes strip different characters.

    Parameters
    ----------
    content : str or bytes
        The content of the file.
    extra, hash_type : str, optional
        As for `get_hash`.

    Notes
    -----
    Mirrors the key made in ``torch/_inductor/codecache.py`` ``write`` (2.6 to 2.15).

    Examples
    --------
    >>> stored_code_hash("\nx = 1\n") == code_hash("x = 1")
    True
    """
    return get_hash(content.strip(), extra, hash_type)


def entry_name(content: bytes) -> str:
    """Return the file name of an FX graph or AOTAutograd entry, derived from its bytes.

    An entry with a different name is damaged: torch never checks this, cachescope can.

    Parameters
    ----------
    content : bytes
        The whole file.

    Notes
    -----
    Mirrors ``torch/_inductor/codecache.py`` ``FxGraphCache._write_to_local_cache`` (2.6 to
    2.15) and ``torch/_functorch/_aot_autograd/autograd_cache.py``
    ``AOTAutogradCache._write_to_local_cache`` (2.8 to 2.15). Through 2.7 an AOTAutograd
    entry is always called ``entry``.

    Examples
    --------
    >>> len(entry_name(b"content"))
    51
    """
    return sha256_hash(content)


def _to_bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8") if isinstance(text, str) else text


def best_config_name(kernel_file: str, cache_key_tag: str = "", torch_key: bytes | None = None) -> str:
    """Return the file name of the best configuration of a kernel; the file is in the kernel's folder.

    Parameters
    ----------
    kernel_file : str
        Base name of the kernel's file, ``c….py``.
    cache_key_tag : str, optional
        ``torch.compiler.config.cache_key_tag``, from the environment ``TORCH_COMPILE_CACHE_KEY_TAG``.
    torch_key : bytes, optional
        The 32 bytes of torch's ``torch_key()``, for torch 2.8 and later. None for 2.6 and 2.7.

    Notes
    -----
    Mirrors ``torch/_inductor/runtime/autotune_cache.py`` ``AutotuneCache._prepare_key`` (2.6 to 2.15) and
    ``_make_local_cache_key`` (2.8 to 2.15). In 2.5 the kernel's own name was used.

    Examples
    --------
    >>> best_config_name("cabc.py")[:8], best_config_name("cabc.py", torch_key=b"k" * 32)[:8]
    ('5b4f75fb', '84f08109')
    """
    name = hashlib.sha256(f"{kernel_file}:{cache_key_tag}".encode()).hexdigest()
    if torch_key is not None:
        name = hashlib.sha256(name.encode() + torch_key).hexdigest()
    return f"{name}.best_config"


def system_hash(info: Mapping[str, object]) -> str:
    """Return torch's 64 hexadecimal digits for a ``system`` object.

    Parameters
    ----------
    info : mapping
        The ``system`` object of the file, or the same without its ``hash``. Through torch
        2.14 it is empty on a machine without CUDA or ROCm; from 2.15 it always has
        ``version`` and may have ``device_interfaces``.

    Raises
    ------
    UnsupportedValueError
        If JSON cannot represent a value.

    Notes
    -----
    Mirrors ``torch/_inductor/codecache.py`` ``CacheBase.get_system`` (2.6 to 2.15;
    ``SYSTEM_CACHE_KEY_STRATEGY`` from 2.13).

    Examples
    --------
    >>> system_hash({})[:8]
    '44136fa3'
    """
    hashed = {key: value for key, value in info.items() if key != "hash"}
    return hashlib.sha256(sorted_json(hashed).encode()).hexdigest()
