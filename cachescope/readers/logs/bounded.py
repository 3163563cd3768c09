"""A decompressed stream that ends where no log would go on: small files that unpack to gigabytes are made to do harm."""

from __future__ import annotations

import io
from typing import IO, Any, Final

# Logs compress to a tenth, or a three-hundredth where one lookup is like another.
_MOST_TIMES: Final = 1_000
_ALWAYS_BYTES: Final = 32 << 20


class TooMuchError(EOFError):
    """More came than is read."""


class Bounded(io.RawIOBase):
    """What a compressed file unpacks to: a thousand times its size at most, or 32 MiB.

    Parameters
    ----------
    stream : file
        Gives the unpacked bytes.
    packed : file
        The compressed file; it is closed with the stream.
    packed_bytes : int
        Its size.
    """

    def __init__(self, stream: IO[bytes], packed: IO[bytes], packed_bytes: int) -> None:
        self._stream = stream
        self._packed = packed
        self._most = self._left = max(_MOST_TIMES * packed_bytes, _ALWAYS_BYTES)

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, space: Any) -> int:
        """Fill this space as far as the stream does at once.

        Raises
        ------
        TooMuchError
            Where the limit was reached and more is to come.
        """
        if not self._left:
            if self._stream.read(1):
                raise TooMuchError(
                    f"unpacks to more than {_MOST_TIMES:,} times its size: {self._most:,} bytes are read"
                )
            return 0
        size: int = self._stream.readinto(memoryview(space)[: self._left])  # type: ignore[attr-defined]
        self._left -= size
        return size

    def close(self) -> None:
        """Close what it is read from, too."""
        self._stream.close()
        self._packed.close()
        super().close()
