"""How many of the cases that chance makes, and of the recordings, are tried: some, or all that there are."""

from __future__ import annotations

import os
from collections import defaultdict
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


def quarter(recordings: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """All, by folder and name; or, where `CACHESCOPE_QUARTER` is a seed, the quarter of each folder that it draws."""
    seed = os.environ.get("CACHESCOPE_QUARTER")
    if not seed:
        return list(recordings)
    folders: dict[str, list[str]] = defaultdict(list)
    for folder, name in recordings:
        folders[folder].append(name)
    return [
        (folder, name)
        for folder, names in folders.items()
        for name in sorted(Random(f"{seed} {folder}").sample(names, -(-len(names) // 4)))
    ]
