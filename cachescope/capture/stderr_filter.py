"""Keeps the DEBUG records of the cache loggers off the user's terminal: 100 kB of text for every lookup.

`StderrPump` carries its standard error to ours, in a thread. Nothing is lost: the records are in the log file that torch writes itself (``TORCH_LOGS_OUT``).
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import termios
import threading
import time
from contextlib import suppress
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


_CHUNK: Final = 1 << 16
# Bytes held back as the possible beginning of a record are shown if nothing follows this soon.
_HOLD_S: Final = 0.05
_POLL_S: Final = 0.2
# After the command has ended, a process it left behind may write forever.
_LONGEST_DRAIN_S: Final = 3.0


class StderrPump:
    """A pseudo terminal or a pipe: `child_end` for the command, the other end read by a thread.

    Reading never stops before the command ends, even if our own standard error is gone: the command
    never waits for us.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._is_terminal = os.isatty(target)
        if self._is_terminal:
            self._source, self.child_end = os.openpty()
            self._pass_bytes_unchanged()
            self.copy_size()
        else:
            self._source, self.child_end = os.pipe()
        self._filter = RecordFilter()
        self._ended = threading.Event()
        self._target_gone = False
        self._thread = threading.Thread(target=self._carry, name="cachescope-stderr", daemon=True)

    def start(self) -> None:
        """Start copying; the command has its end by now, and ours is closed."""
        os.close(self.child_end)
        self._thread.start()

    def finish(self) -> None:
        """Copy the rest once the command has ended."""
        self._ended.set()
        self._thread.join()
        os.close(self._source)

    def close(self) -> None:
        """Clean up if nothing was started."""
        os.close(self.child_end)
        os.close(self._source)

    def copy_size(self) -> None:
        """Set the size of the pseudo terminal to the size of ours."""
        if self._is_terminal:
            with suppress(OSError):
                size = fcntl.ioctl(self._target, termios.TIOCGWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
                fcntl.ioctl(self._source, termios.TIOCSWINSZ, size)

    def _pass_bytes_unchanged(self) -> None:
        # Our own terminal turns "\n" into "\r\n"; doing it twice would be wrong.
        mode = termios.tcgetattr(self.child_end)
        mode[1] &= ~termios.OPOST
        mode[3] &= ~termios.ECHO
        termios.tcsetattr(self.child_end, termios.TCSANOW, mode)

    def _carry(self) -> None:
        deadline = None
        while True:
            ready, _, _ = select.select(
                [self._source], [], [], _HOLD_S if self._filter.is_holding else _POLL_S
            )
            if ready:
                data = self._read()
                if not data:
                    break
                self._show(self._filter.feed(data))
            else:
                self._show(self._filter.flush())
            if self._ended.is_set():
                deadline = deadline or time.monotonic() + _LONGEST_DRAIN_S
                if not ready or time.monotonic() > deadline:
                    break
        self._show(self._filter.flush())

    def _read(self) -> bytes:
        try:
            return os.read(self._source, _CHUNK)
        except OSError:  # Linux: EIO once every process has closed the terminal
            return b""

    def _show(self, data: bytes) -> None:
        while data and not self._target_gone:
            try:
                data = data[os.write(self._target, data) :]
            except BlockingIOError:
                select.select([], [self._target], [])
            except OSError:
                self._target_gone = True
