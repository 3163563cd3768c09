"""The explorer as a page of its own, without code cells: Voila, in a real browser."""

from __future__ import annotations

from pathlib import Path

import jupyter_lab
import pytest
from jupyter_lab import chromium, missing

pytestmark = pytest.mark.slow  # a browser and a server

CELL = "import cachescope\ncachescope.read(cachescope.sample('tour')).explore()"


def test_numbers_figures_and_clicks_work_in_voila(tmp_path: Path) -> None:
    if why := missing():
        pytest.skip(why)
    pytest.importorskip("voila", reason="voila is missing: pip install voila")
    with jupyter_lab._lab(tmp_path, CELL, "JupyterLab Light") as url, chromium() as browser:
        page = browser.new_page(viewport={"width": 1400, "height": 1600})
        page.set_default_timeout(60_000)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{url}/voila/render/one.ipynb")
        page.wait_for_selector(".cs-plot .cs-drawing")
        assert page.get_by_text("22 of 48 lookups").first.is_visible()
        page.get_by_role("button", name="Why: epilogue_fusion").click()
        page.get_by_text("inductor_config[epilogue_fusion], True -> False").first.wait_for()
        page.get_by_role("tab", name="What-if", exact=True).click()
        page.get_by_role("checkbox", name="inductor_configs").uncheck()
        page.get_by_text("22 → 30 of 48 lookups").first.wait_for()
        assert errors == []
