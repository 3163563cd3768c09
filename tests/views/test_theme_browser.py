"""A figure has the colours of the page, however quickly its theme changes and however busy the kernel is."""

from pathlib import Path
from typing import Any

from jupyter_lab import notebook

CELL = """import time
from cachescope.figures.canvas import empty
from cachescope.views.plot import Plot
def make(dark):
    time.sleep(2)
    return empty("dark figure" if dark else "light figure", dark)
Plot(make, "slow")"""
BUSY = """() => { window.jupyterapp.shell.currentWidget.sessionContext.session.kernel
  .requestExecute({ code: 'time.sleep(2)' }); }"""
# To the browser, the theme is this attribute.
THEME = "dark => { document.body.dataset.jpThemeLight = String(!dark); }"


def test_the_last_of_quick_changes_of_the_theme_is_drawn(browser: Any, tmp_path: Path) -> None:
    with notebook(browser, tmp_path, CELL) as opened:
        page, drawn = opened.page, opened.page.locator(".cs-plot .cs-drawing")
        drawn.get_by_text("light figure").wait_for()
        page.evaluate(BUSY)
        page.evaluate(THEME, True)
        page.evaluate(THEME, False)
        # The kernel has answered the first change and draws for it; the second waits in the page.
        page.wait_for_timeout(3000)
        page.evaluate(THEME, True)
        # Whatever is still drawn for the first two.
        page.wait_for_timeout(8000)
        drawn.get_by_text("dark figure").wait_for()
        assert not opened.errors
