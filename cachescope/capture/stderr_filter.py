"""Keeps the DEBUG records of the cache loggers off the user's terminal: 100 kB of text for every lookup.

Nothing is lost: the records are in the log file that torch writes itself (``TORCH_LOGS_OUT``).
"""

from __future__ import annotations

import re
from typing import Final

from cachescope.readers.logs.log_prefix import PREFIX

# torch._inductor.codecache and torch._functorch._aot_autograd.autograd_cache. Without the log these two would
# print warnings and errors only, so those still pass.
_PLACE: Final = re.compile(
    rb"(?:^|/)torch/(?:_inductor/codecache|_functorch/_aot_autograd/autograd_cache)\.py:\d+$"
)
_HIDDEN_LEVELS: Final = (b"V", b"I")
# What torch (`[rank0]:`) and torchrun (`[default0]:`) put before the prefix.
_LEAD: Final = re.compile(rb"(?:\[[A-Za-z_-]*\d*\]:? ?)*\Z")
# The beginning of a prefix at the end of the data so far; looser than the prefix, but never shorter.
_BEGUN: Final = re.compile(
    rb"(?:\[[A-Za-z_-]{0,20}\d{0,6}\]?:? ?)*(?:[VI](?:\d[\d :.]{0,40}(?:[\w./-]{0,200}(?::\d{0,9}\]?)?)?)?)?\Z"
)
_LONGEST_PREFIX: Final = 320


class RecordFilter:
    """Passes bytes on, except for the lines of those records.

    A record is recognised anywhere in a line: a progress bar leaves its line open, and the record follows it.
    """

    __slots__ = ("_held", "_is_record")

    def __init__(self) -> None:
        self._held = b""
        self._is_record = False

    @property
    def is_holding(self) -> bool:
        """Whether it holds back bytes that may begin a record."""
        return bool(self._held)

    def feed(self, data: bytes) -> bytes:
        """The part of `data`, and of what was held back before, that may be shown."""
        *lines, rest = (self._held + data).split(b"\n")
        self._held = b""
        shown = [self._line(line) for line in lines]
        if self._is_record:
            return b"".join(shown)
        at = _record_start(rest)
        if at is not None:
            self._is_record = True
            shown.append(rest[:at])
        else:
            held = _BEGUN.search(rest, max(0, len(rest) - _LONGEST_PREFIX))
            cut = held.start() if held else len(rest)
            shown.append(rest[:cut])
            self._held = rest[cut:]
        return b"".join(shown)

    def flush(self) -> bytes:
        """The bytes held back: nothing followed, so they begin no record."""
        held, self._held = self._held, b""
        return held

    def _line(self, line: bytes) -> bytes:
        if self._is_record:
            self._is_record = False
            return b""
        at = _record_start(line)
        # The line end is removed with the record: a progress bar before it stays in place.
        return line + b"\n" if at is None else line[:at]


def _record_start(line: bytes) -> int | None:
    for match in PREFIX.finditer(line):
        if match["level"] in _HIDDEN_LEVELS and _PLACE.search(match["place"]):
            lead = _LEAD.search(line, max(0, match.start() - _LONGEST_PREFIX), match.start())
            return match.start() if lead is None else lead.start()
    return None
