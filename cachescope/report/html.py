"""The style of HTML for notebooks, and how a text gets into it: escaped, and nothing is loaded from elsewhere."""

from __future__ import annotations

from html import escape

from cachescope.wording import harmless_cut

STYLE = "font-family: var(--jp-ui-font-family, sans-serif); line-height: 1.5; max-width: 60em"
CODE_STYLE = (
    "margin: .3em 0; padding: .4em .6em; overflow-x: auto; white-space: pre; font-size: .9em; "
    "background: var(--jp-layout-color2, rgba(128,128,128,.12)); color: inherit"
)
FAINT_STYLE = "opacity: .75"


def safe(text: object) -> str:
    """Text from a log as HTML text; of a line that is too long, the beginning and the size."""
    return escape("\n".join(map(harmless_cut, str(text).split("\n"))), quote=True)
