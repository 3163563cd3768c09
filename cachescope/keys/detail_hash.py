"""The hash torch prints before one hash detail, for plain Python values.

``[hash] field: value`` lines hash the pickle of one value. Numbers, text and containers of
them pickle without torch; tensors, graphs and other objects do not, and are refused.
"""

from __future__ import annotations

import ast
import io
import pickle
import re
from base64 import b64decode
from functools import cache
from typing import Final

from cachescope.catalogue.facts import field_facts
from cachescope.errors import CachescopeError
from cachescope.keys.hashing import sha256_hash
from cachescope.keys.json_values import UnsupportedValueError

# pickle.DEFAULT_PROTOCOL, which FxGraphCachePickler uses: 4 through Python 3.13, then 5.
PROTOCOLS: Final = (4, 5)
_FIRST_OF_PROTOCOL_5: Final = (3, 14)

# Exact types: a subclass (an enum, a named tuple) pickles as a class reference.
_PLAIN_TYPES: Final = frozenset({type(None), bool, int, float, str, bytes, list, tuple, dict})

# os.environ.get('NAME', '0') == '1' of torch/_inductor/config.py (2.4 to 2.15).
_SWITCH: Final = re.compile(r"os\.(?:environ\.get|getenv)\('\w+'(?:, '(?P<unset>[^']*)')?\) == '1'")


def detail_hash(value: object, protocol: int = 4) -> str:
    """Return the hash torch gives one plain value among the hash details of a key.

    Parameters
    ----------
    value : object
        None, bool, int, float, str, bytes, and lists, tuples and dicts of these. The order
        of a dict matters. torch hashes a list or dict field item by item: pass the item.
    protocol : int, optional
        4 for a recording made by Python 3.13 or older, 5 from Python 3.14. torch passes no
        protocol, so the recording's Python decides and every hash changes with 3.14.

    Raises
    ------
    UnsupportedValueError
        If the value, or one inside it, is of another type, cyclic, or nested too deeply.
    CachescopeError
        If the protocol is neither 4 nor 5.

    Notes
    -----
    Mirrors ``torch/_inductor/codecache.py`` ``FxGraphCachePickler.get_hash`` (2.6 to 2.15):
    the C pickler in fast mode. Exact if the recording's Python writes the same pickle
    opcodes for these types as the running one. Compared with torch on Python 3.11 for protocol
    4. For protocol 5, the default of another Python, only the recorded hash of True was compared.

    Examples
    --------
    >>> detail_hash(True)[:8], detail_hash(False)[:8], detail_hash(True, protocol=5)[:8]
    ('cev5uo2j', 'esstihe2', 'kkapzzb6')
    """
    if protocol not in PROTOCOLS:
        raise CachescopeError(
            f"no torch pickles hash details with protocol {protocol}: "
            "give 4 (through Python 3.13) or 5 (from 3.14)"
        )
    # Without a memo, equal values give equal bytes, whether or not they are one object.
    return sha256_hash(plain_pickle(value, protocol, without_memo=True))


def detail_hashes(value: object) -> frozenset[str]:
    """The hashes that a value may have, by either protocol; raises as `detail_hash` does."""
    return frozenset(detail_hash(value, protocol) for protocol in PROTOCOLS)


@cache
def default_hashes(field: str, version: str | None = None) -> frozenset[str]:
    """The hashes of a field whose option of Inductor was not set; empty if the default is unknown.

    The catalogue quotes defaults from torch's source. One that is neither a literal nor a switch of one environment
    variable is not evaluated.

    >>> detail_hash(True) in default_hashes("inductor_config[epilogue_fusion]", "2.13.0")
    True
    >>> detail_hash(False) in default_hashes("inductor_config[max_autotune]", "2.13.0")
    True
    """
    facts = field_facts(field, version)
    if facts is None or facts.default is None:
        return frozenset()
    try:
        return detail_hashes(_default(facts.default))
    except (ValueError, SyntaxError, UnsupportedValueError):
        return frozenset()


def _default(source: str) -> object:
    switch = _SWITCH.fullmatch(source)
    return switch["unset"] == "1" if switch else ast.literal_eval(source)


def default_protocol(python_version: str | None) -> int:
    """The protocol by which a Python pickles if it is told none; an unknown one counts as older than 3.14."""
    parts = (python_version or "").split(".")[:2]
    numbers = tuple(int(part) for part in parts if part.isascii() and part.isdecimal() and len(part) < 5)
    return 5 if numbers >= _FIRST_OF_PROTOCOL_5 else 4


def torch_detail_hash(torch_version_hash: str | None, protocol: int = 4) -> str | None:
    """Return the hash of the hash detail ``torch_version``, computed from the context form of the same torch.

    ``FxGraphHashDetails.torch_version`` is ``torch_key()`` (torch/_inductor/codecache.py), and the form is
    ``b64encode(torch_key())`` (torch/_inductor/runtime/caching/context.py, 2.10 to 2.15).

    >>> torch_detail_hash("AAAA")[:8], torch_detail_hash("no base64")
    ('35z226sd', None)
    """
    try:
        key = b64decode(torch_version_hash or "", validate=True)
    except ValueError:
        return None
    return detail_hash(key, protocol) if key else None


def torch_detail_hashes(torch_version_hash: str | None) -> frozenset[str]:
    """The same by either protocol; empty if there is no key."""
    found = (torch_detail_hash(torch_version_hash, protocol) for protocol in PROTOCOLS)
    return frozenset(one for one in found if one is not None)


def plain_pickle(
    value: object, protocol: int, *, without_memo: bool = False, with_complex: bool = False
) -> bytes:
    """The pickle of plain values; raises `UnsupportedValueError` for any other, which torch may pickle in its own way."""
    stream = io.BytesIO()
    pickler = _PlainPickler(stream, protocol)
    pickler.fast = without_memo
    pickler.with_complex = with_complex
    try:
        pickler.dump(value)
    except (ValueError, RecursionError) as error:
        raise UnsupportedValueError(f"cannot pickle the value: {error}") from error
    return stream.getvalue()


class _PlainPickler(pickle.Pickler):
    with_complex = False

    def persistent_id(self, obj: object) -> None:
        # pickle calls this for each object, including items of containers; returning None leaves the bytes unchanged.
        # A complex number is pickled as a call of its class.
        is_complex = self.with_complex and (type(obj) is complex or obj is complex)
        if type(obj) not in _PLAIN_TYPES and not is_complex:
            kind = f"{type(obj).__module__}.{type(obj).__qualname__}"
            raise UnsupportedValueError(f"cannot pickle a {kind} as torch would: only plain values")
