"""One of the devices that the sources name."""

from __future__ import annotations

import pandas as pd

from cachescope.columns import records
from cachescope.errors import NotFoundError
from cachescope.wording import harmless


def one_device(devices: pd.DataFrame, which: int | str) -> pd.DataFrame:
    """The row of a device: by its number, its name or its uuid.

    Raises
    ------
    NotFoundError
        If there is no such device, or several are called so.
    """
    if not isinstance(which, str):  # a number from a frame is numpy's
        found = devices[devices["device"] == which]
    else:
        found = devices[(devices["name"] == which) | (devices["uuid"] == which)]
    if len(found) == 1:
        return found.reset_index(drop=True)
    names = ", ".join(f"{row['device']} {harmless(row['name'])[:80]}" for row in records(devices.head(8)))
    several = "several devices are called" if len(found) else "no device"
    raise NotFoundError(f"{several} {which!r}; by number: {names or 'no source names a device'}")
