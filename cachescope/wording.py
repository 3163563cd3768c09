"""How values are put into words wherever people read them: times, sizes, counts, and text from a log made harmless."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

# Control characters steer a terminal; log values hold them (`torch_version` is 32 raw bytes).
_CONTROL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
SHORT_KEY: Final = 8


def harmless(text: str) -> str:
    """Text from a log with every control character made visible, so that it cannot steer a terminal."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def duration(ns: int | None) -> str:
    """Nanoseconds as people write them; a dash where nothing is known.

    Examples
    --------
    >>> duration(4_100_000_000), duration(230_000_000), duration(None)
    ('4.1 s', '230 ms', '-')
    """
    if ns is None:
        return "-"
    seconds = ns / 1e9
    if seconds >= 600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def file_size(count: int) -> str:
    """Bytes as people write them.

    Examples
    --------
    >>> file_size(512), file_size(152_100), file_size(3_000_000_000)
    ('512 B', '152.1 kB', '3.0 GB')
    """
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def file_time(ns: int) -> str:
    """A time of the frames as people write it, to the minute; UTC."""
    return f"{datetime.fromtimestamp(ns // 10**9, UTC):%Y-%m-%d %H:%M}"


def plural(count: int, one: str, many: str = "") -> str:
    """``1 lookup``, ``2 lookups``."""
    return f"{count} {one if count == 1 else many or one + 's'}"
