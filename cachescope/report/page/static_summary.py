"""The answer in short as plain HTML, for pages that run no kernel and no script: GitHub, nbviewer, a notebook in print."""

from __future__ import annotations

from dataclasses import replace

from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import headline
from cachescope.answers.read import Read
from cachescope.answers.why import counts_beside
from cachescope.report.html import safe
from cachescope.report.page.markup import parts_html
from cachescope.report.page.outcomes import outcomes_section
from cachescope.report.page.parts import Drawing, Part, Section, WorkItems
from cachescope.report.page.reasons import causes_section


def still_html(scope: Read) -> str:
    """Hit rates, what to fix first, and the rates by run; without figures, styles, links and scripts."""
    hits, causes = outcomes_section(scope), causes_section(scope)
    sections = (hits, causes) if scope.facts.lookups else (hits,)
    body = "".join(f"<h4>{safe(one.title)}</h4>{parts_html(_plain(one))}" for one in sections)
    said = headline(Chosen(scope))
    return f"<div><p><b>{safe(said)}</b><br>{safe(counts_beside(scope, said))}</p>{body}<p>The explorer itself is here when the notebook runs.</p></div>"


def _plain(section: Section) -> list[Part]:
    return [_unlinked(part) for part in section.parts if not isinstance(part, Drawing)]


def _unlinked(part: Part) -> Part:
    """A worklist whose explanations are not on the same page."""
    if isinstance(part, WorkItems):
        return replace(part, items=tuple(replace(item, anchor=None) for item in part.items))
    return part
