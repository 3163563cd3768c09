"""Python's garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collections() -> Iterator[None]:
    """Let Python collect no garbage meanwhile; what the program itself asks for is done."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def all_is_kept() -> Iterator[None]:
    """Let Python collect no garbage meanwhile, and take what was made for old: nearly all of it is kept."""
    with no_collections():
        yield
        # Counting what a program froze takes long: not for a few objects, which are soon gone through.
        if gc.get_count()[0] > 100_000 and not gc.get_freeze_count():
            # Moves all objects into the oldest generation, without going through them.
            gc.freeze()
            gc.unfreeze()
