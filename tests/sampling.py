"""How many of the cases that chance makes, and of the slowest tests, are tried: some, or all that there are."""

import os
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


def drawn(cases: Iterable[tuple[Hashable, str]], seed: str, one_in: int) -> set[str]:
    """One in so many names, drawn by a seed and spread evenly over the groups; of a small group perhaps none."""
    ordered = sorted(set(cases), key=lambda case: (str(case[0]), Random(f"{seed} {case[1]}").random()))
    return {name for _, name in ordered[Random(seed).randrange(one_in) :: one_in]}
