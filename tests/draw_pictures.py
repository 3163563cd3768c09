"""Draw the plotly figures of executed notebooks as PNG beside them, the explorer, and reports, for pages that run no JavaScript, such as GitHub.

``make notebooks`` runs it. Where plotly.js is there, the figure itself is shown; nbval compares the figure, not the PNG.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from jupyter_lab import chromium, notebook
from plotly.offline import get_plotlyjs

import cachescope

FIGURE = "application/vnd.plotly.v1+json"
WIDTH = 900
# The background of a figure is that of its page; a PNG brings its own, so that it can be read on a dark page as well.
_DRAW = """async ([figure, width]) => { const layout = {...figure.layout, paper_bgcolor: 'white'};
  const url = await Plotly.toImage({data: figure.data, layout}, {format: 'png', width, height: layout.height || 450});
  return url.split(',')[1]; }"""

# Of the README, the documentation and the third notebook.
EXPLORER = Path(__file__).parent.parent / "notebooks" / "explorer.png"
_CELL = """import cachescope
explorer = cachescope.read(cachescope.sample("tour")).explore()
explorer.state.without = ("inductor_configs",)
explorer.state.pane = "What-if"
explorer"""

# Of the documentation: the first screen of the report of a sample. What is written below each is its headline (tests/docs/test_pages.py).
REPORTS = Path(__file__).parent.parent / "docs" / "pictures"
_SCREENS: Final = {"tour": (1400, "light"), "four_ranks": (1400, "dark"), "vllm": (900, "light")}


def figures_of(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """The data of every output that is a figure."""
    outputs = (output for cell in notebook["cells"] for output in cell.get("outputs", []))
    return [output["data"] for output in outputs if FIGURE in output.get("data", {})]


def draw(paths: list[Path]) -> None:
    """Add a PNG to every figure."""
    with chromium() as browser:
        page = browser.new_page()
        page.add_script_tag(content=get_plotlyjs())
        for path in paths:
            notebook = json.loads(path.read_text())
            for data in figures_of(notebook):
                data["image/png"] = page.evaluate(_DRAW, [data[FIGURE], WIDTH])
            path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def draw_explorer(target: Path) -> None:
    """The pane What-if of the sample tour in JupyterLab, with a form switched off."""
    with (
        chromium() as browser,
        TemporaryDirectory() as folder,
        notebook(browser, Path(folder), _CELL, width=1500) as opened,
    ):
        opened.page.locator(".cs-plot .cs-drawing").filter(visible=True).first.wait_for()
        opened.page.locator("[aria-label='lookups that would have hit'] [data-id]").first.wait_for()
        opened.page.locator(".cs-explorer").screenshot(path=target)


def draw_reports(folder: Path) -> None:
    """The first screens of reports of samples."""
    with chromium() as browser, TemporaryDirectory() as place:
        for name, (width, scheme) in _SCREENS.items():
            report = cachescope.read(cachescope.sample(name)).report(Path(place, f"{name}.html"))
            size: Any = {"width": width, "height": 900}
            page = browser.new_page(viewport=size, color_scheme=scheme)
            page.goto(report.as_uri())
            page.screenshot(path=folder / f"report-{name}.png")
            page.close()


if __name__ == "__main__":
    draw([Path(name) for name in sys.argv[1:]])
    draw_explorer(EXPLORER)
    draw_reports(REPORTS)
