"""A file that is audited."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class File:
    """One regular file whose bytes were read.

    Attributes
    ----------
    path, name : str
        Where it is, and its last part.
    kind : str
        What it is: as `cachescope.terms` calls it.
    key : str or None
        The key whose folder it is in.
    data : bytes
        All of it.
    """

    path: str
    name: str
    kind: str
    key: str | None
    data: bytes

    @property
    def ending(self) -> str:
        """The last part of its name."""
        return os.path.splitext(self.name)[1][1:].lower()
