"""Devices that the entries of cache directories name."""

from __future__ import annotations

import pandas as pd

from cachescope.columns import records
from cachescope.frames.recorded import DEVICES


def devices_frame(entries: pd.DataFrame) -> pd.DataFrame:
    """The frame devices, from the frame entries: the types of devices that stored graphs run on."""
    names = dict.fromkeys(name for row in records(entries, ["device_types"]) for name in row["device_types"])
    return DEVICES.build({"device": n, "name": name, "seen_in": ("entries",)} for n, name in enumerate(names))
