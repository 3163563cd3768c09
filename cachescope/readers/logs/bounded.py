"""A decompressed stream with a size limit: it guards against decompression bombs."""

from __future__ import annotations

import io
from typing import IO, Any, Final

# Logs compress to a tenth of their size, or to a three-hundredth if all lookups are alike.
_MOST_TIMES: Final = 1_000
_ALWAYS_BYTES: Final = 32 << 20


class TooMuchError(EOFError):
    """The stream is longer than the limit."""


class Bounded(io.RawIOBase):
    """The unpacked bytes of a compressed file: at most a thousand times its size, or 32 MiB if that is more.

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
        """Return True."""
        return True

    def readinto(self, space: Any) -> int:
        """Fill the buffer with one read of the stream.

        Raises
        ------
        TooMuchError
            If the limit is reached and more bytes follow.
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
        """Close the stream and the compressed file, too."""
        self._stream.close()
        self._packed.close()
        super().close()
