"""The hash of an input among the hash details: its printed metadata, and the module in which pickle finds its memory format.

A memory format names no module. pickle looks it up in sys.modules, and takes the first one with a `torch` in which it is: torch's own,
or the main program, by the name that multiprocessing gives it, if that was imported before torch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from cachescope.keys.detail_hash import PROTOCOLS, plain_pickle
from cachescope.keys.device_text import DEVICE
from cachescope.keys.hashing import sha256_hash
from cachescope.keys.json_values import UnsupportedValueError
from cachescope.keys.printed_values import literal_value

MAIN: Final = "__mp_main__"
"""What multiprocessing calls the main program."""
_MODULES: Final = ("torch._utils", MAIN)
_SIZES: Final = re.compile(r"torch\.Size\((?P<sizes>\[.*\])\)")


def module_of_format(metadata: Mapping[str, str], printed_hash: str) -> str | None:
    """The module in which pickle found the memory format of an input, by the hash of its metadata; None if that is not known.

    >>> module_of_format({"shape": "torch.Size([s0])", "memory_format": "torch.contiguous_format"}, "aaa")
    """
    if not metadata.get("memory_format", "").startswith("torch."):
        return None
    ways = ((module, protocol) for module in _MODULES for protocol in PROTOCOLS)
    try:
        return next((way[0] for way in ways if sha256_hash(_pickled(metadata, *way)) == printed_hash), None)
    except (ValueError, OverflowError, RecursionError, UnsupportedValueError):
        return None


def _pickled(metadata: Mapping[str, str], module: str, protocol: int) -> bytes:
    """What `FxGraphCachePickler._reduce_fake_tensor` of torch/_inductor/codecache.py (2.5 to 2.15) pickles of an input, without a memo."""
    function = _name("torch._inductor.codecache", "_ident")
    of_class = _name("torch._subclasses.fake_tensor", "TensorMetadata") + b")\x81N}("
    parts = b"".join(_text(name) + _value(name, value, module) for name, value in metadata.items())
    body = function + of_class + parts + b"u\x86b\x85R."
    return b"\x80%c\x95%b%b" % (protocol, len(body).to_bytes(8, "little"), body)


def _value(name: str, text: str, module: str) -> bytes:
    if sizes := _SIZES.fullmatch(text):
        read = literal_value(sizes["sizes"])
        if not isinstance(read, list):
            raise ValueError(sizes["sizes"])
        return _name("torch", "Size") + _plain(tuple(read)) + b"\x85R"
    if device := DEVICE.fullmatch(text):
        index = b"\x85" if device["index"] is None else _plain(int(device["index"])) + b"\x86"
        return _name("torch", "device") + _text(device["type"]) + index + b"R"
    if not text.startswith("torch."):
        return _plain(literal_value(text))
    if name == "layout":
        return _name("torch.serialization", "_get_layout") + _text(text) + b"\x85R"
    return _name(module, text) if name == "memory_format" else _name("torch", text.removeprefix("torch."))


def _plain(value: object) -> bytes:
    """Numbers and tuples of them are pickled alike by every protocol: this one has no frame."""
    return plain_pickle(value, 3, without_memo=True)[2:-1]


def _name(module: str, name: str) -> bytes:
    return _text(module) + _text(name) + b"\x93"


def _text(text: str) -> bytes:
    return b"\x8c%c%b" % (len(text), text.encode())
