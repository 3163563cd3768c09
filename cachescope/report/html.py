"""The HTML forms for notebooks: every text from a log is escaped, nothing is loaded from elsewhere."""

from __future__ import annotations

from html import escape

from cachescope.answers.facts import Row
from cachescope.answers.names import lookups_of_cause
from cachescope.answers.read import Read
from cachescope.answers.struck import miss_lines
from cachescope.answers.summary import cause_rows, footer, headline
from cachescope.wording import duration, harmless_cut, plural

_CAUSES_SHOWN = 5
STYLE = "font-family: var(--jp-ui-font-family, sans-serif); line-height: 1.5; max-width: 60em"
CODE_STYLE = (
    "margin: .3em 0; padding: .4em .6em; overflow-x: auto; white-space: pre; font-size: .9em; "
    "background: var(--jp-layout-color2, rgba(128,128,128,.12)); color: inherit"
)
FAINT_STYLE = "opacity: .75"


def safe(text: object) -> str:
    """Text from a log as HTML text; of a line that is too long its beginning and its size."""
    return escape("\n".join(map(harmless_cut, str(text).split("\n"))), quote=True)


def summary_html(scope: Read) -> str:
    """The HTML repr of a Scope: the rates first, then the costliest causes, then what is left over."""
    parts = [f"<p><b>{safe(headline(scope))}</b></p>"]
    causes = cause_rows(scope)
    for number, cause in enumerate(causes[:_CAUSES_SHOWN], 1):
        misses = lookups_of_cause(cause["verdict"], cause["misses"])
        where = "".join(f"<li>{safe(line)}</li>" for line in miss_lines(scope, cause["cause"], 3))
        advice = (
            ""
            if not isinstance(cause["advice"], str)
            else f"<div style='{FAINT_STYLE}'>{safe(cause['advice'])}</div>"
        )
        parts.append(
            f"<details {'open' if number == 1 else ''}><summary>{number}. <code>{safe(cause['summary'])}</code> "
            f"{_first_change(scope, cause)}({safe(cause['verdict'])}) · {misses} · {duration(cause['time_lost_ns'])}</summary>"
            f"<ul>{where}</ul>{advice}</details>"
        )
    if len(causes) > _CAUSES_SHOWN:
        parts.append(
            f"<p>… and {plural(len(causes) - _CAUSES_SHOWN, 'more cause')}, see <code>scope.causes</code></p>"
        )
    parts.append(f"<p style='{FAINT_STYLE}'>{safe(footer(scope).replace('    ', ' · '))}</p>")
    return f"<div style='{STYLE}'>{''.join(parts)}</div>"


def _first_change(scope: Read, cause: Row) -> str:
    """Old and new value, where one field alone made the cause."""
    roots = scope.facts.roots_of(cause["cause"])
    changes = scope.changes(roots[0]["lookup"]) if roots else ()
    return f"{safe(changes[0].summary)} " if len(changes) == 1 else ""
