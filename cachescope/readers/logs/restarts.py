"""Where a new process begins in the log of one pid: in containers every process is pid 1, even after a restart.

``torch._dynamo.reset()`` restarts compile ids too, and a program may idle for hours: neither shows a new process.
These do: the clock goes back, torch is another build, or a function of torch has another address. The address is
printed for ``fx_kwargs[get_decomp_fn]`` (2.12 to 2.14). Without such a sign, the log stays one process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cachescope.details import HashDetails
from cachescope.readers.reading import Lookup

_FIRST_ID: Final = "0/0"
_BACK_US: Final = 60_000_000
# A clock that goes back by more than half a year has passed New Year.
_YEAR_US: Final = 183 * 86_400_000_000


def run_starts(lookups: Sequence[Lookup], clocks: Sequence[int | None], details: HashDetails) -> list[int]:
    """The positions at which a process begins, among lookups in the order of their lines; 0 is always one.

    Parameters
    ----------
    lookups : sequence of Lookup
    clocks : sequence of int or None
        When each of them began, by the clock of the log prefixes.
    details : HashDetails
        The store that the lookups' detail codes refer to.
    """
    begins = [at for at in range(1, len(lookups)) if _begins_first_compile(lookups, at)]
    if not begins:
        return [0]
    starts = {at for at in begins if _goes_back(clocks[at - 1], clocks[at])}
    for field, compares_texts in (("torch_version", False), ("fx_kwargs[get_decomp_fn]", True)):
        last, last_at = None, 0
        for at, lookup in enumerate(lookups):
            sign = _sign(lookup, field, details, compares_texts=compares_texts)
            if sign is None:
                continue
            if last is not None and sign != last:
                starts |= set([begin for begin in begins if last_at < begin <= at][-1:])
            last, last_at = sign, at
    return [0, *sorted(starts)]


def _begins_first_compile(lookups: Sequence[Lookup], at: int) -> bool:
    """Whether this lookup begins the first compile of a process, or the first after a reset."""
    one, before = lookups[at], lookups[at - 1]
    if one.compile_id != _FIRST_ID:
        return False
    # Without the AOTAutograd cache nothing distinguishes the lookups of two first compiles.
    return (one.compile_id, one.segment) != (before.compile_id, before.segment) or one.segment == 0


def _goes_back(before: int | None, now: int | None) -> bool:
    return before is not None and now is not None and _BACK_US < before - now < _YEAR_US


def _sign(lookup: Lookup, field: str, details: HashDetails, *, compares_texts: bool) -> int | None:
    """A number that all keys of a process share; None if the details do not contain it."""
    if lookup.details is None:
        return None
    component = details.component_of(lookup.details, field)
    return component if compares_texts or component is None else int(details.hash_codes[component])
