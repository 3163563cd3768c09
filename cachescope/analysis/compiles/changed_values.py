"""Which change of a value made torch turn it into a symbol: the recompile reasons name the earlier value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

# torch/csrc/dynamo/guards.cpp, `TensorCheck::check_verbose`, and torch/_dynamo/guards.py, `CONSTANT_MATCH` and `EQUALS_MATCH`; the
# compile whose guard failed precedes, and since 2.9 the line of code follows.
_SIZE: Final = re.compile(
    r"\d+(?:/\d+)*: tensor '(?P<tensor>.+?)' size mismatch at index (?P<dim>\d+)\. expected (?P<was>\d+), actual (?P<now>\d+).*"
)
_EQUAL: Final = re.compile(
    r"\d+(?:/\d+)*: (?P<source>.+?) == (?P<was>-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?: #.*| \(HINT.*)?"
)
# torch/_guards.py, `strip_local_scope`: since 2.7 reasons name L['x'] as x.
_LOCAL: Final = re.compile(r"L\[\s*['\"](.*?)['\"]\s*\]")


def value_before(source: str | None, value: str | None, reasons: Iterable[str]) -> str | None:
    """The value of a symbol's source in an earlier compile, if its change is among the reasons to compile again.

    Parameters
    ----------
    source, value : str or None
        Of the symbol.
    reasons : iterable of str
        Of its compile, the latest of the earlier compiles first.

    Examples
    --------
    >>> value_before("L['n']", "3", ["0/0: n == 2 # return x * n"])
    '2'
    """
    if source is None or value is None:
        return None
    name = _LOCAL.sub(r"\1", source)
    for reason in reasons:
        text = _LOCAL.sub(r"\1", reason)
        if match := _SIZE.fullmatch(text):
            if (f"{match['tensor']}.size()[{match['dim']}]", value) == (name, match["now"]):
                return match["was"]
        elif (match := _EQUAL.fullmatch(text)) and match["source"] == name and match["was"] != value:
            return match["was"]
    return None
