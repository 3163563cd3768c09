"""The demo without a server: the report of every shipped recording, and a page to choose from.

``python docs/make_demo.py FOLDER`` writes it; the docs site has it too. It asks nothing of any network.
"""

from __future__ import annotations

import html
import json
import sys
from importlib.resources import files
from pathlib import Path

import cachescope
from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import headline
from cachescope.samples import sample_names

_SAMPLES = Path(str(files("cachescope.samples")))
_PAGE = """<!DOCTYPE html>
<html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width, initial-scale=1'>
<meta name='color-scheme' content='light dark'><title>cachescope: recordings to explore</title>
<style>body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }}
li {{ margin: 0 0 1rem; }} a {{ font-weight: 600; }}</style></head>
<body><h1>Why did torch.compile compile again?</h1>
<p>Each is a real run of torch, read by cachescope {version}. Choose one: its report opens offline, and its What-if works in the page.</p>
<ul>{items}</ul></body></html>
"""


def write_demo(folder: Path) -> Path:
    """Write the demo into a folder; the result is the page to begin with."""
    folder.mkdir(parents=True, exist_ok=True)
    items = []
    for name in sample_names():
        scope = cachescope.read(cachescope.sample(name))
        scope.report(folder / f"{name}.html")
        about = json.loads((_SAMPLES / name / "provenance.json").read_text(encoding="utf-8"))["summary"]
        said = f"{html.escape(about)}.<br>{html.escape(headline(Chosen(scope)))}."
        items.append(f"<li><a href='{name}.html'>{name}</a><br>{said}</li>")
    page = folder / "index.html"
    page.write_text(_PAGE.format(version=cachescope.__version__, items="\n".join(items)), encoding="utf-8")
    return page


if __name__ == "__main__":
    print(write_demo(Path(sys.argv[1])))
