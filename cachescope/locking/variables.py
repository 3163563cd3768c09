"""The environment variables that enter keys, and the values that torch makes of them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from cachescope.keys.detail_hash import PROTOCOLS, detail_hash
from cachescope.locking.lock import Rule
from cachescope.terms import AOTAUTOGRAD, CACHES

SWITCH: Final = "switch"
INT: Final = "int"
TEXT: Final = "text"
OTHER: Final = "other"
_LONGEST: Final = 4000
_SHOWN: Final = 100

_CACHES_OFF: Final = "it switches caches off"
_COMPILING_OFF: Final = "it switches torch.compile off"


@dataclass(frozen=True, slots=True)
class Off:
    """A value of a variable that no key holds, and with which entries are not looked up.

    Attributes
    ----------
    value : str
    what : str
        What it does.
    caches : tuple of str
        The caches whose entries are not found then.
    """

    value: str
    what: str = _CACHES_OFF
    caches: tuple[str, ...] = CACHES


# torch/_inductor/config.py, torch/_functorch/config.py, torch/compiler/config.py, torch/_dynamo/config.py,
# torch/_dynamo/eval_frame.py (`optimize`), 2.6 to 2.15.
OFF: Final = {
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES": Off("1"),
    "TORCH_COMPILE_FORCE_DISABLE_CACHES": Off("1"),
    "TORCHINDUCTOR_FX_GRAPH_CACHE": Off("0"),
    "TORCHINDUCTOR_AUTOGRAD_CACHE": Off("0", "it switches AOTAutograd's cache off", (AOTAUTOGRAD,)),
    "TORCH_COMPILE_DISABLE": Off("1", _COMPILING_OFF),
    "TORCHDYNAMO_DISABLE": Off("1", _COMPILING_OFF),
}


def hashes_of(rule: Rule, text: str | None) -> frozenset[str] | None:
    """The hashes that a field may have if its variable is set to a text, by either protocol; None if not known.

    Examples
    --------
    >>> detail_hash(True) in hashes_of(Rule("switch", "0"), "1")
    True
    >>> hashes_of(Rule("int", "1"), "many") is None
    True
    """
    given = rule.unset if text is None else text
    value: object
    if rule.kind == SWITCH:
        value = given == "1"
    elif rule.kind == TEXT:
        value = given
    elif rule.kind == INT and given is not None and given.isascii() and given.isdecimal() and len(given) < 19:
        value = int(given)
    else:
        return None
    return frozenset(detail_hash(value, protocol) for protocol in PROTOCOLS)


def shown_value(text: str | None) -> str:
    """A value for people."""
    return "not set" if text is None else repr(text)


def environment(names: Iterable[str]) -> dict[str, str | None]:
    """What some variables are here; of a long value the beginning and a hash, and no byte that is not UTF-8."""
    return {name: None if (text := os.environ.get(name)) is None else _plain(text) for name in names}


def _plain(text: str) -> str:
    plain = os.fsencode(text).decode("utf-8", "backslashreplace")
    if len(plain) <= _LONGEST:
        return plain
    return f"{plain[:_SHOWN]}… sha256 {hashlib.sha256(os.fsencode(text)).hexdigest()}"
