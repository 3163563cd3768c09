"""Parses and joins components as torch writes them: texts ``[hash] field: value``.

Separate from `details`: capturing a snapshot needs no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from cachescope.rows import col, row
from cachescope.terms import HASH

# torch/_inductor/codecache.py, `FxGraphCachePickler.debug_lines`: a list gives one line per element, a
# dict one per item. The key of a dict may contain a bracket, so it ends at the first "]: ".
_COMPONENT = re.compile(
    rf"\[(?P<hash>{HASH})\] (?P<attr>[A-Za-z_]\w*)(?:\[(?P<key>.*?)\])?: (?P<value>.*)", re.DOTALL
)
_NEXT = re.compile(rf"\n(?=\[{HASH}\] )")


@row("hash_details")
class Detail:
    """One hash detail of one key."""

    field: str = col("path of the field")
    detail_hash: str = col(
        "torch's hash of its value; that of the printed value if a DeviceMesh is in the key (2.13 and later), for torch's then depends on what it had hashed before"
    )
    value_text: str = col("the value as torch printed it; may be cut, and may contain addresses")


def parse_component(text: str) -> Detail | None:
    """Parse one component; None if it is no hash detail.

    Mirrors the lines of ``FxGraphCachePickler.debug_lines`` (torch/_inductor/codecache.py, 2.4 to 2.15).

    >>> parse_component("[" + "a" * 51 + "] inductor_config[cpp.threads]: -1").field
    'inductor_config[cpp.threads]'
    """
    match = _COMPONENT.fullmatch(text)
    if match is None:
        return None
    attr, key = match["attr"], match["key"]
    return Detail(attr if key is None else f"{attr}[{key}]", match["hash"], match["value"])


def join_components(lines: Iterable[str]) -> list[str]:
    r"""Join lines into components: a line that begins no hash detail continues the component before.

    Values in text logs span many lines, and torch 2.4 split its components at every newline.

    >>> join_components(["[" + "a" * 51 + "] gm: def f():", "    return 1"])[0][-24:]
    'm: def f():\n    return 1'
    """
    return _NEXT.split("\n".join(lines))
