"""Committed notebooks are executed in order, small, and readable where no code and no script runs; strict nbval runs them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from draw_pictures import FIGURE, figures_of

import cachescope
from cachescope.answers.cards import Cards
from cachescope.answers.chosen import Chosen
from cachescope.answers.summary import counts_text
from cachescope.report.why_missed import title_of

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
# Checked in lax mode, as its outputs have times and process numbers of their own; the only one that needs torch.
LIVE = "08_watch_a_live_compile"
WIDGET = "application/vnd.jupyter.widget-view+json"
# Folders that differ from machine to machine. Recordings name the folder that each of them was made in; labels break it.
RECORDED = re.compile(r"/tmp/cachescope-(?:<br>)?recording/[^\s\"]*")
LOCAL_PATH = re.compile(r"/(?:tmp|home|root|work|Users|private|usr|opt)/")

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path: Path) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(path.read_text())
    return notebook


def cells(path: Path, kind: str) -> list[dict[str, Any]]:
    return [cell for cell in read(path)["cells"] if cell["cell_type"] == kind]


def text(path: Path, kind: str) -> str:
    return "\n".join("".join(cell["source"]) for cell in cells(path, kind))


def test_they_are_numbered_without_a_gap() -> None:
    assert [path.stem[:3] for path in NOTEBOOKS] == [f"{number:02}_" for number in range(1, 13)]


@each
def test_a_notebook_is_executed_in_order_and_small(path: Path) -> None:
    code = cells(path, "code")
    # A notebook that never ran passes strict nbval: it has nothing to be compared with.
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(cell["outputs"] for cell in code) or path.stem == LIVE
    assert not any(output["output_type"] == "error" for cell in code for output in cell["outputs"])
    assert len(read(path)["cells"]) <= 25 and path.stat().st_size < 500_000


@each
def test_it_holds_no_widget_state_and_nothing_of_the_machine_that_ran_it(path: Path) -> None:
    notebook = read(path)
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert notebook["metadata"]["language_info"] == {"name": "python"}
    assert not any(cell["metadata"] for cell in notebook["cells"])
    outputs = json.dumps([cell["outputs"] for cell in cells(path, "code")])
    assert LOCAL_PATH.findall(RECORDED.sub("", outputs)) == []
    assert not re.search(r"\b0x[0-9a-f]{8,}", outputs)


@each
def test_there_is_a_figure_and_a_picture_of_it_where_no_javascript_runs(path: Path) -> None:
    figures = figures_of(read(path))
    assert figures
    assert all(data.get("image/png", "").startswith("iVBORw0KGgo") for data in figures)


@each
def test_a_widget_is_followed_by_the_plain_frame_or_figure(path: Path) -> None:
    mimes = [{mime for o in cell["outputs"] for mime in o.get("data", {})} for cell in cells(path, "code")]
    for shown, following in zip(mimes, [*mimes[1:], set()], strict=True):
        assert WIDGET not in shown or following & {FIGURE, "text/html"}


@each
def test_a_marker_is_a_whole_comment_as_nbval_wants_it(path: Path) -> None:
    lines = [line for line in text(path, "code").splitlines() if "nbval" in line.lower()]
    assert all(re.fullmatch(r"# NBVAL_[A-Z_]+", line) for line in lines)


@each
def test_only_the_live_one_needs_torch(path: Path) -> None:
    assert bool(re.search(r"^import torch$", text(path, "code"), re.MULTILINE)) == (path.stem == LIVE)


@each
def test_it_asks_a_question_says_what_to_try_and_leads_on(path: Path) -> None:
    prose = [str("".join(cell["source"])) for cell in cells(path, "markdown")]
    assert re.match(r"# .*\?\n", prose[0])
    last = "\n".join(prose[-2:])
    assert "**Try it on your own" in last
    linked = re.findall(r"\]\((\w+\.(?:ipynb|png))\)", "\n".join(prose))
    assert linked and all((FOLDER / name).exists() for name in linked)
    following = NOTEBOOKS[(NOTEBOOKS.index(path) + 1) % len(NOTEBOOKS)]
    assert f"]({following.name})" in last


def test_the_samples_they_read_are_under_2_mb_together() -> None:
    samples = FOLDER.parent / "cachescope" / "samples"
    files = [path for path in samples.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    assert 1_000_000 < sum(path.stat().st_size for path in files) < 2_000_000


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
