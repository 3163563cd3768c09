"""The style of HTML for notebooks, and how a text gets into it: escaped, and nothing is loaded from elsewhere."""

from __future__ import annotations

import json
from html import escape
from typing import Final

from cachescope.wording import harmless_cut

STYLE = "font-family: var(--jp-ui-font-family, sans-serif); line-height: 1.5; max-width: 60em"
CODE_STYLE = (
    "margin: .3em 0; padding: .4em .6em; overflow-x: auto; white-space: pre; font-size: .9em; "
    "background: var(--jp-layout-color2, rgba(128,128,128,.12)); color: inherit"
)
FAINT_STYLE = "opacity: .75"
# Text that would end a script, or begin a comment in it.
_ESCAPED: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def safe(text: object) -> str:
    """Text from a log as HTML text; of a line that is too long, the beginning and the size."""
    return escape("\n".join(map(harmless_cut, str(text).split("\n"))), quote=True)


def json_html(value: object) -> str:
    """Plain values as JSON within a script element."""
    text = json.dumps(value, separators=(",", ":"))
    for character, escaped in _ESCAPED.items():
        text = text.replace(character, escaped)
    return text
