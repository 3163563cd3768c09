"""Carries the standard error of a command to ours, through `RecordFilter`, in a thread of its own."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import termios
import threading
import time
from contextlib import suppress
from typing import Final

from cachescope.capture.stderr_filter import RecordFilter

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
