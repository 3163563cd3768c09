"""How many of the cases that chance makes, and of the slowest tests, are tried: some, or all that there are."""

import os
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from random import Random
from typing import TypeVar

_Case = TypeVar("_Case")


def sampled(cases: Sequence[_Case], often: int, seed: str) -> list[_Case]:
    """So many of them, drawn by a seed; `CACHESCOPE_DAMAGES` says another number, or ``all``."""
    wanted = os.environ.get("CACHESCOPE_DAMAGES", str(often))
    if wanted == "all":
        return list(cases)
    return Random(seed).sample(cases, min(int(wanted), len(cases)))


def quarter(cases: Iterable[tuple[Hashable, str]], seed: str) -> set[str]:
    """A quarter of the names of each group, drawn by a seed: one at least."""
    groups: dict[Hashable, list[str]] = defaultdict(list)
    for group, name in cases:
        groups[group].append(name)
    return {
        name
        for group, names in groups.items()
        for name in Random(f"{seed} {group}").sample(names, -(-len(names) // 4))
    }
