"""One of the devices that the sources name."""

from __future__ import annotations

import pandas as pd

from cachescope.columns import plain_columns
from cachescope.errors import NotFoundError
from cachescope.wording import harmless


def one_device(devices: pd.DataFrame, which: int | str) -> pd.DataFrame:
    """The row of a device: by its number, its name or its uuid."""
    if not isinstance(which, str):  # a number from a frame is numpy's
        found = devices[devices["device"] == which]
    else:
        found = devices[(devices["name"] == which) | (devices["uuid"] == which)]
    if len(found) == 1:
        return found.reset_index(drop=True)
    first = plain_columns(devices.head(8), ["device", "name"])
    names = ", ".join(f"{number} {harmless(name)[:80]}" for number, name in zip(*first.values(), strict=True))
    several = "several devices are called" if len(found) else "no device"
    raise NotFoundError(f"{several} {which!r}; by number: {names or 'no source names a device'}")
