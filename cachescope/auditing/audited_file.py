"""A file in an audit."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class File:
    """One regular file whose bytes were read.

    Attributes
    ----------
    path, name : str
        Its path, and the last part of the path.
    kind : str
        Its kind, as in `cachescope.terms`.
    key : str or None
        The key whose folder it is in.
    data : bytes
        Its whole content.
    """

    path: str
    name: str
    kind: str
    key: str | None
    data: bytes

    @property
    def ending(self) -> str:
        """The ending of its name, without the dot."""
        return os.path.splitext(self.name)[1][1:].lower()
