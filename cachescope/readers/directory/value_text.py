"""An inert value as a short text: bounded in every respect, whatever the pickle contained."""

from __future__ import annotations

import reprlib
from typing import Final

from cachescope.readers.checked_file import well_formed
from cachescope.readers.pickles.inert_pickle import Stub, global_name

_MOST: Final = 2_000


class _Text(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 8
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = 50
        self.maxstring = self.maxlong = self.maxother = 200

    def repr1(self, x: object, level: int) -> str:
        if not isinstance(x, Stub):
            return super().repr1(x, level)
        if level <= 0:
            return f"{global_name(x)}(...)"
        parts = [self.repr1(part, level - 1) for part in (*x.args, *x.items)[: self.maxlist]]
        named = {**x.state, **x.keywords} if isinstance(x.state, dict) else {}
        parts += [f"{key}={self.repr1(part, level - 1)}" for key, part in list(named.items())[: self.maxdict]]
        return f"{x.name}({', '.join(parts)})"


def value_text(value: object) -> str:
    """The value as Python would print it, shortened if it is long; objects as their class and contents."""
    try:
        text = well_formed(_Text().repr(value))
    except (RecursionError, ValueError):  # an int of more digits than Python prints
        return f"({type(value).__name__})"
    return text if len(text) <= _MOST else text[: _MOST - 1] + "…"
