"""Pages and tables as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

# An underscore within a word is none.
_MARKUP = re.compile(r"\*|(?<!\w)_|_(?!\w)")


class Markup(str):
    """A text that is Markdown already."""


def page(title: str, *parts: str) -> str:
    """A page of parts, one below the other."""
    return "\n\n".join([f"# {title}", *parts]) + "\n"


def table(heads: Iterable[str], rows: Iterable[Iterable[Any]], *, drop_empty: bool = False) -> str:
    """A table; without the columns that are empty all the way down, if these are to be dropped."""
    lines = [[cell(value) for value in row] for row in rows]
    heads = list(heads)
    kept = [at for at in range(len(heads)) if not drop_empty or any(line[at] for line in lines)]
    shown = [heads, ["---"] * len(heads), *lines]
    return "\n".join("| " + " | ".join(line[at] for at in kept) + " |" for line in shown)


def cell(value: Any) -> str:
    """A value for a cell of a table: markup within code stays as it is, and elsewhere it is no markup."""
    if isinstance(value, Markup):
        return value
    text = str(value) if is_there(value) else ""
    parts = text.replace("``", "`").replace("|", "\\|").replace("\n", " ").split("`")
    if len(parts) % 2 == 0:
        parts = [text.replace("`", "'")]
    parts[::2] = [_MARKUP.sub(r"\\\g<0>", part.replace("<", "&lt;")) for part in parts[::2]]
    return "`".join(parts)


def is_there(value: Any) -> bool:
    """Whether it is no missing value."""
    return value is not None and value == value
