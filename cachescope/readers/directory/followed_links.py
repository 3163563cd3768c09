"""Decides which links the walk of a cache directory follows: only links to torch's own files and folders.

torch opens whatever a path leads to, so folders and entries may be links to a bigger disk. A stray link may
lead to ``/``. So a link is followed only if its name or the target's contents identify a place, and behind a link
only folders in the table are walked. No place contains itself, so the walk ends.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Final

from cachescope.readers.directory.place_of import holds_file_of, is_linked_root
from cachescope.readers.directory.places import FolderRule

# A folder with a thousand links to it would be read a thousand times.
_MOST_TIMES: Final = 16


class FollowedLinks:
    """The links followed in one walk.

    Parameters
    ----------
    path : str
        Where the walk starts.
    """

    def __init__(self, path: str) -> None:
        self._top = path
        self._times: Counter[tuple[int, int]] = Counter()

    def leads_to_place(
        self, path: str, found: os.stat_result, rule: FolderRule | None, is_inside: bool
    ) -> bool:
        """Whether a link to a folder is followed.

        Parameters
        ----------
        path : str
            The link.
        found : stat_result
            The folder that it leads to.
        rule : FolderRule or None
            The rule for its name.
        is_inside : bool
            Whether no other cache root is expected there: deep in a place, or behind another link.
        """
        if rule is None:
            is_followed = not is_inside and not self._is_read_anyway(path) and is_linked_root(path)
        else:
            is_followed = rule.is_named or holds_file_of(path, rule.place)
        real = found.st_dev, found.st_ino
        if is_followed:
            self._times[real] += 1
        return is_followed and self._times[real] <= _MOST_TIMES

    def _is_read_anyway(self, path: str) -> bool:
        """Whether the link leads into the directory that is walked, or to a folder above it."""
        top, real = os.path.realpath(self._top), os.path.realpath(path)
        return os.path.commonpath([top, real]) in (top, real)


def shown_target(path: str) -> str:
    """The target of a link for a message."""
    try:
        return f"a link to {os.readlink(path)}"
    except OSError:
        return "a link"
