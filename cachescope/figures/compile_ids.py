"""Compile ids in torch's order: frame, then compile of that frame, then attempt (torch/_guards.py, `CompileId`)."""

from __future__ import annotations

import re
from typing import Final

_NUMBER: Final = re.compile(r"\d{1,9}")


def compile_order(compile_id: str) -> tuple[tuple[int, ...], str]:
    """A sort key: ``0/10`` comes after ``0/9``, an id without a number first.

    Examples
    --------
    >>> sorted(["0/10", "0/9", "-"], key=compile_order)
    ['-', '0/9', '0/10']
    """
    return tuple(int(part) for part in _NUMBER.findall(compile_id)[:6]), compile_id
