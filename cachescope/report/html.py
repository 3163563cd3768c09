"""Answers as HTML, for notebooks and pages: texts are escaped, long ones cut or opened on demand; nothing is loaded from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from itertools import groupby
from operator import attrgetter
from typing import Final

from cachescope.report.layout import Line, wrapped
from cachescope.wording import file_size, harmless_cut

STYLE = "font-family: var(--jp-ui-font-family, sans-serif); line-height: 1.5; max-width: 60em"
CODE_STYLE = (
    "margin: .3em 0; padding: .4em .6em; overflow-x: auto; white-space: pre; font-size: .9em; "
    "background: var(--jp-layout-color2, rgba(128,128,128,.12)); color: inherit"
)
FAINT_STYLE = "opacity: .75"
_WRAPPED: Final = "white-space: pre-wrap; overflow-wrap: anywhere"
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


class Reprs:
    """The text and the HTML repr of an answer: its lines."""

    __slots__ = ()

    def _lines(self) -> Iterable[Line]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return wrapped(self._lines())

    def _repr_html_(self) -> str:
        return answer_html(self._lines())


def answer_html(lines: Iterable[Line], below: str = "") -> str:
    """The lines of an answer for a notebook, and what is folded away below them."""
    return f"<div style='{STYLE}'>{lines_html(lines)}{below}</div>"


def lines_html(lines: Iterable[Line]) -> str:
    """Lines below each other; lines of code are one block, whose spaces stay where styles are taken out, as on GitHub."""
    groups = ((is_code, list(group)) for is_code, group in groupby(lines, attrgetter("verbatim")))
    return "".join(
        _code_html(group) if is_code else "".join(map(_line_html, group)) for is_code, group in groups
    )


def _code_html(lines: list[Line]) -> str:
    texts = (
        f"<b>{safe(line.text)}</b>" if line.text.startswith(("+", "-")) else safe(line.text) for line in lines
    )
    body = "\n".join(texts)
    return f"<pre style='{CODE_STYLE}; margin-left: {lines[0].indent / 2}em'>{body}</pre>"


def _line_html(line: Line) -> str:
    """A line of an answer: weight and shade say what colours say in a terminal."""
    text = safe(line.text) or "&nbsp;"
    if "bold" in line.style:
        text = f"<b>{text}</b>"
    if line.label:
        label = f"<span style='flex: 0 0 {line.hang / 2}em; {FAINT_STYLE}'>{safe(line.label)}</span>"
        text = f"{label}<span>{text}</span>"
    if line.right:
        text += f"<span style='{FAINT_STYLE}; margin-left: 1em'>{safe(line.right)}</span>"
    shade = f"; {FAINT_STYLE}" if line.style == "dim" else ""
    flex = "; display: flex" if line.label else ""
    return f"<div style='margin-left: {line.indent / 2}em; {_WRAPPED}{flex}{shade}'>{text}</div>"


def _diff_line(line: str) -> str:
    kind = {"+": "cs-new", "-": "cs-old", "@": "cs-faint"}.get(line[:1], "cs-same")
    cut = line if len(line) <= _LINE else f"{line[: _LINE - 1]}…"
    return f"<span class='{kind}'>{safe(cut)}\n</span>"
