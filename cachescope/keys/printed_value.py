"""The value that torch printed as text in a hash detail: known where its hash confirms it."""

from __future__ import annotations

from cachescope.components import Detail
from cachescope.keys.detail_hash import PROTOCOLS, detail_hash
from cachescope.keys.json_values import UnsupportedValueError
from cachescope.keys.literals import literal_value


def printed_value(detail: Detail) -> object:
    """The value whose text torch printed, which its hash confirms; `NotImplemented` if none is confirmed.

    torch prints a text without quotes: ``1`` may be a number or a text.
    """
    for read in (literal_value, str):
        try:
            value = read(detail.value_text)
            if any(detail_hash(value, protocol) == detail.detail_hash for protocol in PROTOCOLS):
                return value
        except (ValueError, UnsupportedValueError):
            continue
    return NotImplemented
