"""Plain values of answers, and their strict JSON text: nothing in it controls a terminal. Loads no pandas."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from cachescope.wording import is_shown, without_commands

# JSON itself escapes what is below a space, and a newline separates values. Of the rest, visible characters may stay.
_UNUSUAL: Final = re.compile("[^\n -~]")


def values_of(answer: object, *names: str) -> dict[str, Any]:
    """Some attributes of an answer, by their names."""
    return {name: getattr(answer, name) for name in names}


def json_text(value: object, *, ascii_only: bool = False) -> str:
    """Strict JSON, one line per key and list item, with nothing in it that controls a terminal or commands a CI system.

    Every text survives it, except for half of a surrogate pair, which most parsers refuse in any form: it becomes the
    six characters that would escape it.
    """
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    if not (text.isascii() and "\x7f" not in text):
        text = _UNUSUAL.sub(lambda match: _in_json(match[0], ascii_only), text)
    return without_commands(text, _escaped)


def _in_json(character: str, ascii_only: bool) -> str:
    if "\ud800" <= character <= "\udfff":
        return f"\\{_escaped(character)}"
    return character if is_shown(character) and not ascii_only else _escaped(character)


def _escaped(character: str) -> str:
    return json.dumps(character)[1:-1] if character > "~" else f"\\u{ord(character):04x}"
