"""The exceptions of cachescope. Every one says what failed, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cachescope.wording import harmless_line


class CachescopeError(Exception):
    """Base of everything cachescope raises on purpose.

    Its text is one line and harmless, whatever it quotes of a source: a traceback prints it as it is. The attributes hold
    what was read.
    """

    def __str__(self) -> str:
        return harmless_line(super().__str__())


@contextmanager
def telling(what: str) -> Iterator[None]:
    """Raise an error of the operating system as one of cachescope: what failed, and why."""
    try:
        yield
    except OSError as error:
        raise CachescopeError(f"{what}: {error.strerror or error}") from error


class SourceError(CachescopeError):
    """A source that is not there, may not be read, or is nothing cachescope knows.

    Attributes
    ----------
    source : str
        The path as it was given.
    kind : str
        ``missing``, ``unreadable``, ``empty`` or ``unknown_source``: as in the frame ``problems``, where one of
        several sources is such.
    message : str
        What is wrong with it.
    """

    def __init__(self, source: str, message: str, kind: str = "unreadable") -> None:
        super().__init__(f"{source}: {message}")
        self.source = source
        self.kind = kind
        self.message = message
        self._given = (source, message, kind)

    def __reduce__(self) -> tuple[type[SourceError], tuple[str, ...]]:
        # A worker process may raise it.
        return type(self), self._given


class RecordError(CachescopeError):
    """A damaged record, raised instead of a row in ``problems`` under ``strict=True``.

    Attributes
    ----------
    source, where, kind : str
        As in the frame ``problems``.
    """

    def __init__(self, source: str, where: str, kind: str, message: str) -> None:
        super().__init__(f"{source} ({where}): {kind}: {message}")
        self.source = source
        self.where = where
        self.kind = kind
        self._given = (source, where, kind, message)

    def __reduce__(self) -> tuple[type[RecordError], tuple[str, ...]]:
        return type(self), self._given


class SchemaError(CachescopeError, ValueError):
    """An isolation schema that torch would not accept."""


class NotFoundError(CachescopeError, LookupError):
    """A lookup, key, run or frame that the scope does not hold."""
