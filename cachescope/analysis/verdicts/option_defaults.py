"""The hash that a hash detail has if its Inductor option is at torch's own default.

The catalogue quotes defaults from torch's source. A default that is neither a literal nor a switch of one
environment variable is not evaluated.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Final

from cachescope.catalogue.facts import field_facts
from cachescope.keys.detail_hash import detail_hashes
from cachescope.keys.json_values import UnsupportedValueError

# os.environ.get('NAME', '0') == '1' of torch/_inductor/config.py (2.4 to 2.15).
_SWITCH: Final = re.compile(r"os\.(?:environ\.get|getenv)\('\w+'(?:, '(?P<unset>[^']*)')?\) == '1'")


@cache
def default_hashes(field: str, version: str | None = None) -> frozenset[str]:
    """The hashes of a field whose option was not set; empty if the default is unknown.

    Examples
    --------
    >>> from cachescope.keys.detail_hash import detail_hash
    >>> detail_hash(True) in default_hashes("inductor_config[epilogue_fusion]", "2.13.0")
    True
    >>> detail_hash(False) in default_hashes("inductor_config[max_autotune]", "2.13.0")
    True
    """
    facts = field_facts(field, version)
    if facts is None or facts.default is None:
        return frozenset()
    try:
        return detail_hashes(_value(facts.default))
    except (ValueError, SyntaxError, UnsupportedValueError):
        return frozenset()


def _value(source: str) -> object:
    switch = _SWITCH.fullmatch(source)
    return switch["unset"] == "1" if switch else ast.literal_eval(source)
