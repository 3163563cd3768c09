"""One entry as HTML, its generated source highlighted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from cachescope.report.html import safe
from cachescope.report.one_entry_forms import one_entry_lines_html
from cachescope.views import html
from cachescope.wording import harmless, plural

if TYPE_CHECKING:
    from cachescope.answers.one_entry import OneEntry

# Highlighting makes every token an element; longer sources are shown plain.
_MOST_HIGHLIGHTED: Final = 100_000
_MOST_SHOWN: Final = 400_000


def entry_html(one: OneEntry) -> str:
    """All that is known about an entry: guards, links, kernels, and the source folded away."""
    source = one.source
    lines = one_entry_lines_html(one)
    if source.text is None:
        return lines + html.paragraph(f"no source: {source.why_not}", "faint")
    count = plural(len(source.text.splitlines()), "line")
    return f"{lines}<details><summary>Generated source ({count})</summary>{_source(source.text, source.language)}</details>"


def _source(text: str, language: str | None) -> str:
    shown = harmless(text[:_MOST_SHOWN])
    more = (
        html.paragraph(f"… and {len(text) - _MOST_SHOWN:,} more characters", "faint")
        if len(text) > _MOST_SHOWN
        else ""
    )
    return f"<pre class='cs-code' tabindex='0' aria-label='generated source'>{_coloured(shown, language)}</pre>{more}"


def _coloured(text: str, language: str | None) -> str:
    if language is None or len(text) > _MOST_HIGHLIGHTED:
        return safe(text)
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return safe(text)
    coloured: str = highlight(text, lexer, HtmlFormatter(nowrap=True))
    return coloured
