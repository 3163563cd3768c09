"""The explorer as a page of its own, without code cells: Voila, in a real browser."""

from pathlib import Path
from typing import Any

import pytest
from jupyter_lab import lab

CELL = "import cachescope\ncachescope.read(cachescope.sample('tour')).explore()"


def test_numbers_figures_and_clicks_work_in_voila(browser: Any, tmp_path: Path) -> None:
    pytest.importorskip("voila", reason="voila is missing: pip install voila")
    with lab(tmp_path, CELL) as url:
        page = browser.new_page(viewport={"width": 1400, "height": 1600})
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
