"""The HTML file: one document that requests nothing from any network and runs no script but its own.

Its Content-Security-Policy names the script by its hash: any other script would not run.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from importlib.resources import files
from typing import Final

from cachescope.figures.palette import in_the_dark
from cachescope.figures.picture import drawing_js
from cachescope.json_types import JsonObject
from cachescope.report.html import json_html, safe
from cachescope.report.page.cuts import shortened
from cachescope.report.page.markup import contents_html, drawings_of, section_html
from cachescope.report.page.parts import Drawing, Page
from cachescope.report.scripts import shared_script
from cachescope.wording import harmless

_STYLES: Final = ("page.css", "lookups.css")
_SCRIPTS: Final = ("wording.js", "page.js", "replay.js", "toggles.js")
# What notebooks and reports share, and what uses it.
_SHARED: Final = ("make.js", "focus.js", "table.js")
_LOOKUPS: Final = "lookups.js"
_ABOUT: Final = 400


def document(page: Page) -> str:
    """The page as one HTML document."""
    style = shared_script("table.css") + "".join(map(_file, _STYLES))
    script = _as_parsed("".join([drawing_js(), *map(_file, _SCRIPTS), _lookups_js()]))
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {_named(script)}",
            # The marks of a figure carry their colours.
            "style-src 'unsafe-inline'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    drawings = [drawing for section in page.sections for drawing in drawings_of(section.parts)]
    # Markup is escaped when a text is inserted; what remains are characters that no browser shows.
    body = harmless("".join(section_html(section) for section in page.sections))
    return (
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>\n"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<meta name='color-scheme' content='light dark'><meta name='referrer' content='no-referrer'>"
        f"<title>{safe(page.title)}: {safe(page.headline)}</title>\n<style>{style}</style></head>\n"
        f"<body><a class='skip' href='#hits'>Skip to the answer</a>\n<header><h1>{safe(page.title)}</h1>"
        f"<p class='headline'>{safe(page.headline)}</p><p class='faint'>{safe(shortened(page.about, _ABOUT))}</p></header>\n"
        f"<div class='columns'>{contents_html(page.sections)}<main>{body}</main></div>\n"
        "<noscript><p class='warn'>Without JavaScript the figures are not drawn; the tables have it all.</p></noscript>\n"
        f"<script type='application/json' id='figures'>{json_html(figures_object(drawings))}</script>\n"
        f"<script>{script}</script></body></html>\n"
    )


def figures_object(drawings: Iterable[Drawing]) -> list[JsonObject]:
    """The figures in light colours, each with its differences in the dark: places and values."""
    drawn = []
    for one in drawings:
        light = json.loads(one.draw(*one.frames).to_json())
        drawn.append({"data": light["data"], "layout": light["layout"], "dark": list(in_the_dark(light))})
    return drawn


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _lookups_js() -> str:
    return f"(() => {{\n{''.join(map(shared_script, _SHARED))}{_file(_LOOKUPS)}}})();\n"


def _as_parsed(script: str) -> str:
    """A script as an HTML parser reads it, which is what the hash in the policy is compared with."""
    return script.replace("\r\n", "\n").replace("\r", "\n")


def _named(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
