"""Which of the covered versions of torch stands for another one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_RELEASE: Final = re.compile(r"(\d{1,9})\.(\d{1,9})")


def nearest(version: str, covered: Sequence[str]) -> str | None:
    """The covered version of the same release, else the last one before it; None if there is none."""
    if not _RELEASE.match(version):
        return None
    before = [read for read in covered if release(read) <= release(version)]
    return before[-1] if before else None


def release(version: str) -> tuple[int, int]:
    """The numbers of a release: ``2.10.1`` is one of (2, 10)."""
    found = _RELEASE.match(version)
    assert found
    return int(found[1]), int(found[2])
