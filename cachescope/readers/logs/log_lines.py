r"""The lines of a log, ended by ``\n`` alone, and runs of lines that begin with the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cachescope.readers.logs.byte_source import Pieces

_READ_BYTES: Final = 1 << 18
_MOST_BYTES_OF_A_LINE: Final = 16 << 20
"""Torch's longest lines are texts of fields: some hundred kilobytes."""


class Lines:
    """Returns one line after another."""

    def __init__(self, pieces: Pieces, number: int = 0) -> None:
        self.number = number  # of lines that have been returned or skipped
        self.bytes = 0  # that were read
        self.is_whole = True  # False if the last line had no end
        self.too_long: list[int] = []  # the numbers of lines that were cut after 16 MiB
        self._pieces = pieces
        self._space = bytearray(_READ_BYTES)
        self._data = b""
        self._at = 0

    def head(self, size: int) -> bytes:
        """The next bytes of the log, without consuming them."""
        if len(self._data) - self._at < size:
            self._read()
        return self._data[self._at : self._at + size]

    def take(self) -> bytes | None:
        """The next line without its end, None after the last."""
        end = self._line_end()
        if self._at >= len(self._data):
            return None
        self.is_whole = end < len(self._data)
        line = self._data[self._at : end]
        self._at = end + 1
        self.number += 1
        if len(line) > _MOST_BYTES_OF_A_LINE:
            self.too_long.append(self.number)
            return line[:_MOST_BYTES_OF_A_LINE]
        return line

    def pass_over(self, mark: bytes) -> None:
        """Skip to the next line that contains these bytes, without a step in Python per line."""
        is_there = True
        while is_there:
            found = self._data.find(mark, self._at)
            start = self._data.rfind(b"\n", self._at, len(self._data) if found < 0 else found) + 1
            if start > self._at:
                self.number += self._data.count(b"\n", self._at, start)
                self._at = start
            # The last line may continue.
            is_there = found < 0 and len(self._data) - self._at <= _MOST_BYTES_OF_A_LINE and self._read()

    def _line_end(self) -> int:
        """Where the current line ends in the data; the rest of a line that is too long is skipped."""
        end = self._data.find(b"\n", self._at)
        while end < 0:
            size = len(self._data) - self._at
            if size > _MOST_BYTES_OF_A_LINE:
                return self._pass_over(size)
            if not self._read():
                return len(self._data)
            end = self._data.find(b"\n", size)
        return end

    def _pass_over(self, size: int) -> int:
        line = self._data[self._at :]
        end = -1
        while end < 0:
            self._at = len(self._data)
            if not self._read():
                break  # no data are left
            end = self._data.find(b"\n")
        self._data = line + self._data[end:]
        return size

    def take_continued(self, prefix: bytes, is_wanted: Callable[[bytes], bool]) -> list[bytes]:
        """The texts after a prefix in the next lines, as long as each line has the prefix, an end, and a wanted text.

        It also stops after about 16 MiB.
        """
        taken: list[bytes] = []
        size, width = 0, len(prefix)
        while size <= _MOST_BYTES_OF_A_LINE and self._data.startswith(prefix, self._at):
            end = self._data.find(b"\n", self._at)
            if end < 0:
                if len(self._data) - self._at > _MOST_BYTES_OF_A_LINE or not self._read():
                    break
                continue
            text = self._data[self._at + width : end]
            if len(text) > _MOST_BYTES_OF_A_LINE - width or not is_wanted(text):
                break
            taken.append(text)
            size += len(text)
            self._at = end + 1
        self.number += len(taken)
        return taken

    def _read(self) -> bool:
        read = self._pieces.read_into(memoryview(self._space))
        self._data = self._data[self._at :] + self._space[:read]
        self._at = 0
        self.bytes += read
        return read > 0
