"""Torch's own default of an Inductor option, as the hash that a hash detail has of it.

Defaults stand in the catalogue as torch's source has them. Where one is neither a literal nor a switch of one
environment variable, nothing is said.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Final

from cachescope.catalogue.facts import field_facts
from cachescope.keys.detail_hash import PROTOCOLS, detail_hash
from cachescope.keys.json_values import UnsupportedValueError

# os.environ.get('NAME', '0') == '1' of torch/_inductor/config.py (2.4 to 2.15).
_SWITCH: Final = re.compile(r"os\.(?:environ\.get|getenv)\('\w+'(?:, '(?P<unset>[^']*)')?\) == '1'")


@cache
def default_hashes(field: str, version: str | None = None) -> frozenset[str]:
    """The hashes that a field has where nothing was set; empty where the default cannot be told.

    Parameters
    ----------
    field : str
        A field such as ``inductor_config[epilogue_fusion]``.
    version : str, optional
        The version of torch; the newest that has the field by default.

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
        value = _value(facts.default)
        return frozenset(detail_hash(value, protocol) for protocol in PROTOCOLS)
    except (ValueError, SyntaxError, UnsupportedValueError):
        return frozenset()


def _value(source: str) -> object:
    switch = _SWITCH.fullmatch(source)
    return switch["unset"] == "1" if switch else ast.literal_eval(source)
