"""A page without what tells who and where: every text and every frame of a figure goes through one redaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, Final, TypeVar

import pandas as pd

T = TypeVar("T")
Replace = Callable[[str, str], str]
# Words of the page itself, which its style and its links go by.
_OURS: Final = frozenset({"anchor", "kind"})


def hidden(page: T, redaction: Callable[[Any], Any]) -> T:
    """The same page with stand-ins; equal texts get equal ones, in figures and tables alike.

    Parameters
    ----------
    page : Page or a part of one
    redaction : function
        Given a list of dictionaries of name and text, gives it back with stand-ins in the texts.
    """
    found: dict[tuple[str, str], str] = {}

    def note(name: str, text: str) -> str:
        return found.setdefault((name, text), text)

    _rebuilt(page, note, "")
    given: list[Any] = redaction([{name: text} for name, text in found])
    for (name, text), made in zip(list(found), given, strict=True):
        found[name, text] = made[name]
    rebuilt: T = _rebuilt(page, lambda name, text: found[name, text], "")
    return rebuilt


def _rebuilt(value: Any, replace: Replace, name: str) -> Any:
    if isinstance(value, str):
        return value if name in _OURS else replace(name, value)
    if isinstance(value, tuple | list):
        return type(value)(_rebuilt(item, replace, name) for item in value)
    if isinstance(value, pd.DataFrame):
        return _rebuilt_frame(value, replace)
    if is_dataclass(value) and not isinstance(value, type):
        values = {f.name: _rebuilt(getattr(value, f.name), replace, f.name) for f in fields(value)}
        return type(value)(**values)
    return value


def _rebuilt_frame(frame: pd.DataFrame, replace: Replace) -> pd.DataFrame:
    changed = {}
    for name in frame.columns:
        column = frame[name]
        if column.dtype == object or isinstance(column.dtype, pd.StringDtype):
            values = [_rebuilt(value, replace, name) for value in column.tolist()]
            changed[name] = pd.Series(values, index=frame.index, dtype=column.dtype)
    return frame.assign(**changed)
