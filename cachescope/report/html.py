"""How texts get into HTML for notebooks and pages: escaped, long ones cut and open on demand; nothing is loaded from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from typing import Final

from cachescope.report.layout import Line
from cachescope.wording import file_size, harmless_cut

STYLE = "font-family: var(--jp-ui-font-family, sans-serif); line-height: 1.5; max-width: 60em"
CODE_STYLE = (
    "margin: .3em 0; padding: .4em .6em; overflow-x: auto; white-space: pre; font-size: .9em; "
    "background: var(--jp-layout-color2, rgba(128,128,128,.12)); color: inherit"
)
FAINT_STYLE = "opacity: .75"
# Text that would end a script, or begin a comment in it.
_ESCAPED: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}

_LINE: Final = 240


def safe(text: object) -> str:
    """Text from a log as HTML text; of a line that is too long, the beginning and the size."""
    return escape("\n".join(map(harmless_cut, str(text).split("\n"))), quote=True)


def json_html(value: object) -> str:
    """Plain values as JSON within a script element."""
    text = json.dumps(value, separators=(",", ":"))
    for character, escaped in _ESCAPED.items():
        text = text.replace(character, escaped)
    return text


def value_html(text: str, short: int, most: int) -> str:
    """A value; if it is long, its beginning and size, which open to as much as is kept.

    Examples
    --------
    >>> value_html("a < b", 20, 100)
    '<code>a &lt; b</code>'
    """
    if len(text) <= short and "\n" not in text:
        return f"<code>{safe(text)}</code>"
    beginning = " ".join(text[: 4 * short].split())[:short]
    beyond = "" if len(text) <= most else f"\n… {len(text) - most:,} more characters"
    size = file_size(len(text.encode("utf-8", "replace"))).replace(" ", "\u00a0")
    return (
        f"<details class='cs-long'><summary><code>{safe(beginning)}…</code>"
        f" <span class='cs-faint'>({size})</span></summary>"
        f"<pre tabindex='0'>{safe(text[:most])}{beyond}</pre></details>"
    )


def diff_html(lines: Iterable[str], name: str) -> str:
    r"""The lines of a unified diff; their signs are in the text: no colour is needed to read it.

    Examples
    --------
    >>> diff_html(["+a"], "code")
    "<pre class='cs-diff' tabindex='0' role='region' aria-label='code'><span class='cs-new'>+a\n</span></pre>"
    """
    body = "".join(_diff_line(line) for line in lines)
    return f"<pre class='cs-diff' tabindex='0' role='region' aria-label='{safe(name)}'>{body}</pre>"


def line_html(line: Line, text: str, right: str, faint: str) -> str:
    """A line of a report, with its indentation; its texts are HTML already, and `faint` is a class of the page."""
    text = f"<b>{text}</b>" if "bold" in line.style else text
    beside = f" <span class='{faint}'>{right}</span>" if right else ""
    kind = f" class='{faint}'" if line.style == "dim" else ""
    return f"<div style='margin-left: {line.indent / 2}em'{kind}>{text or '&nbsp;'}{beside}</div>"


def text_html(text: str, below: str = "") -> str:
    """The text repr of an answer as HTML: the first line is its headline."""
    first, _, rest = text.partition("\n")
    lines = safe(rest).strip("\n")
    return f"<div style='{STYLE}'><p><b>{safe(first)}</b></p><pre style='{CODE_STYLE}'>{lines}</pre>{below}</div>"


def _diff_line(line: str) -> str:
    kind = {"+": "cs-new", "-": "cs-old", "@": "cs-faint"}.get(line[:1], "cs-same")
    cut = line if len(line) <= _LINE else f"{line[: _LINE - 1]}…"
    return f"<span class='{kind}'>{safe(cut)}\n</span>"
