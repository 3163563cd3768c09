"""Redacts a page: every text and every frame of a figure goes through one redaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, Final, TypeVar

import pandas as pd

T = TypeVar("T")
Redaction = Callable[[Any, str], Any]
# Words of the page itself, which its style and its links depend on.
_OURS: Final = frozenset({"anchor", "kind"})


def hidden(page: T, redaction: Redaction) -> T:
    """The same page with stand-ins; equal texts get equal ones, in figures and tables alike.

    Parameters
    ----------
    page : Page or a part of one
    redaction : function
        Takes a value and the name of its column; returns it with stand-ins in its texts.
    """
    if isinstance(page, str):
        return redaction(page, "")  # type: ignore[no-any-return]
    if isinstance(page, tuple | list):
        return type(page)(hidden(item, redaction) for item in page)
    if isinstance(page, pd.DataFrame):
        return _hidden_frame(page, redaction)  # type: ignore[return-value]
    if is_dataclass(page) and not isinstance(page, type):
        values = {field.name: getattr(page, field.name) for field in fields(page)}
        made = {name: value if name in _OURS else hidden(value, redaction) for name, value in values.items()}
        return type(page)(**made)
    return page


def _hidden_frame(frame: pd.DataFrame, redaction: Redaction) -> pd.DataFrame:
    changed = {}
    for name in frame.columns:
        column = frame[name]
        if column.dtype == object or isinstance(column.dtype, pd.StringDtype):
            values = [redaction(value, name) for value in column.tolist()]
            changed[name] = pd.Series(values, index=frame.index, dtype=column.dtype)
    return frame.assign(**changed)
