"""The demo without a server: every shipped recording can be chosen and looked at, and nothing leaves the page."""

from __future__ import annotations

from pathlib import Path

import make_demo
import pytest
from jupyter_lab import chromium, missing

from cachescope.samples import sample_names

pytestmark = pytest.mark.slow  # a report of every recording, and a browser


def test_every_recording_can_be_chosen(tmp_path: Path) -> None:
    if why := missing():
        pytest.skip(why)
    first = make_demo.write_demo(tmp_path / "demo")
    errors: list[str] = []
    beyond: list[str] = []
    with chromium() as browser:
        page = browser.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on(
            "request", lambda request: None if request.url.startswith("file:") else beyond.append(request.url)
        )
        page.goto(first.as_uri())
        names = page.locator("li > a").all_inner_texts()
        assert names == sample_names()
        for name in names:
            page.goto(first.as_uri())
            page.get_by_role("link", name=name, exact=True).click()
            page.wait_for_selector("html[data-drawn]")
            assert (
                page.locator("figure.plot").count()
                == page.locator("figure.plot:has(.cs-drawing)").count()
                > 0
            )
    assert (errors, beyond) == ([], [])
