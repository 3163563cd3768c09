"""The first notebook where no kernel and no script runs: in a browser, as nbviewer shows it, and without styles, as GitHub does."""

import re
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.answers.cards import Cards
from cachescope.answers.chosen import Chosen
from cachescope.answers.summary import counts_text
from cachescope.report.cards import title_of

NOTEBOOK = Path(__file__).parent.parent / "notebooks" / "01_why_did_it_miss.ipynb"
# What GitHub takes out of the HTML of an output.
_TAKEN_OUT = (
    re.compile(r"<(script|style)\b.*?</\1>", re.DOTALL),
    re.compile(r"""\s(?:class|style|id|role|tabindex|(?:data|aria)-[\w-]+)=(?:'[^']*'|"[^"]*")"""),
)


def page_html() -> str:
    """The notebook as nbconvert makes a page of it, for nbviewer and for GitHub."""
    nbconvert = pytest.importorskip("nbconvert", reason="nbconvert is missing: pip install nbconvert")
    made, _ = nbconvert.HTMLExporter(template_name="basic").from_filename(str(NOTEBOOK))
    return f"<!DOCTYPE html><meta charset='utf-8'><body>{made}</body>"


def without_styles(made: str) -> str:
    for pattern in _TAKEN_OUT:
        made = pattern.sub("", made)
    return made


@pytest.mark.parametrize("sanitized", [without_styles, str], ids=["GitHub", "nbviewer"])
def test_the_explorer_says_what_missed_and_what_to_fix(browser: Any, sanitized: Any) -> None:
    scope = cachescope.read(cachescope.sample("tour"))
    works = Cards.of(Chosen(scope), most=20).works
    beyond: list[str] = []
    context = browser.new_context(java_script_enabled=False, viewport={"width": 900, "height": 800})
    page = context.new_page()
    page.on("request", lambda request: beyond.append(request.url))
    page.set_content(sanitized(page_html()))
    # The summary of the scope has the same headline, and stands before it.
    still = page.locator("div", has_text="The explorer itself is here when the notebook runs.").last
    assert still.is_visible()
    said = " ".join(still.inner_text().split())
    assert counts_text(scope) in said
    bold = " ".join(" ".join(still.locator("b").all_inner_texts()).split())
    assert all(f"{number} {title_of(work)}" in bold for number, work in enumerate(works, 1))
    # Spaces at the beginning of a line of code stay.
    assert "\n-    relu" in still.locator("pre").first.inner_text()
    assert "torch._inductor.config.epilogue_fusion = True" in said
    assert [url for url in beyond if not url.startswith(("data:", "about:"))] == []
