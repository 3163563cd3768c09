"""How many of the cases that chance makes are tried: some, the same in every run, or all that there are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from random import Random
from typing import TypeVar

_Case = TypeVar("_Case")


def sampled(cases: Sequence[_Case], often: int, seed: str) -> list[_Case]:
    """So many of them, drawn by a seed; `CACHESCOPE_DAMAGES` says another number, or ``all``."""
    wanted = os.environ.get("CACHESCOPE_DAMAGES", str(often))
    if wanted == "all":
        return list(cases)
    return Random(seed).sample(cases, min(int(wanted), len(cases)))
