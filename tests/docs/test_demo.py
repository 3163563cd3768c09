"""The demo without a server: every shipped recording can be chosen and looked at, and nothing leaves the page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import make_demo
import pytest

import cachescope
from cachescope.report.page.replay import replay_parts
from cachescope.samples import sample_names
from tests.report.replays import agree, blank_page, every_box, expected, numbers

pytestmark = pytest.mark.slow  # a report of every recording, and a browser

_BOXES = 12


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_demo.write_demo(tmp_path_factory.mktemp("site") / "demo")


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page of which nothing may go wrong or leave the disk."""
    errors: list[str] = []
    beyond: list[str] = []
    page = browser.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda one: None if one.url.startswith("file:") else beyond.append(one.url))
    yield page
    assert (errors, beyond) == ([], [])
    page.close()


def choose(page: Any, first: Path, name: str) -> None:
    page.goto(first.as_uri())
    page.get_by_role("link", name=name, exact=True).click()
    page.wait_for_selector("html[data-drawn]")
    page.get_by_role("button", name="Open all").click()


def test_every_recording_can_be_chosen(page: Any, first: Path) -> None:
    page.goto(first.as_uri())
    names = page.locator("li > a").all_inner_texts()
    assert names == sample_names()
    for name in names:
        choose(page, first, name)
        assert page.locator("figure.plot").count() == page.locator("figure.plot:has(.cs-drawing)").count() > 0


def test_its_numbers_are_those_of_kernel_and_script_alone(browser: Any, page: Any, first: Path) -> None:
    alone = blank_page(browser)
    tried = set()
    for name in sample_names():
        scope = cachescope.read(cachescope.sample(name))
        choose(page, first, name)
        boxes = list(every_box(page, scope))
        assert bool(boxes) == bool(replay_parts(scope))
        assert not boxes or numbers(page) == expected(scope)
        for field, toggle in boxes[:: max(1, len(boxes) // _BOXES)]:
            toggle.uncheck()
            assert numbers(page) == expected(scope, field), (name, field)
            agree(alone, scope, [(field,)])
            toggle.check()
            tried.add(name)
    assert len(tried) > 5
