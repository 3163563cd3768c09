"""Some of the slowest tests, drawn by chance, and the same again for the same seed."""

from collections.abc import Hashable, Iterable
from random import Random


def drawn(cases: Iterable[tuple[Hashable, str]], seed: str, one_in: int) -> set[str]:
    """One in so many names, drawn by a seed and spread evenly over the groups; of a small group perhaps none."""
    ordered = sorted(set(cases), key=lambda case: (str(case[0]), Random(f"{seed} {case[1]}").random()))
    return {name for _, name in ordered[Random(seed).randrange(one_in) :: one_in]}
