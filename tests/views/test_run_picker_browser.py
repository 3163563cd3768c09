"""The list of runs in chromium, without a kernel: the script of the widget with a model that only remembers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cachescope.views.widget_base import STYLE, script

COUNT = 40
_MODEL = """
const heard = {};
const values = { label: "runs to compare", columns: ["Run"], sides: [[20], [39]], picked: [],
  rows: Array.from({ length: %d }, (_, at) => ({ runs: [%d - 1 - at], job: null, cells: [`run ${%d - 1 - at}`] })) };
window.model = { get: (name) => values[name], set: (name, value) => { values[name] = value; }, save_changes() {},
  on: (name, act) => { (heard[name] ??= []).push(act); }, off() {},
  answer: (name, value) => { values[name] = value; (heard[`change:${name}`] ?? []).forEach((act) => act()); } };
"""


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    source = script("make.js", "run_picker.js").replace("export default", "window.widget =")
    model = _MODEL % (COUNT, COUNT, COUNT)
    shown = browser.new_page()
    shown.set_content(
        f"<style>{STYLE}</style><div id='here'></div><script>{source}{model}"
        "widget.render({ model, el: document.getElementById('here') });</script>"
    )
    yield shown
    shown.close()


def picked(page: Any) -> list[Any]:
    return list(page.evaluate("model.get('picked').slice(0, 3)"))


def test_what_is_picked_is_seen_without_scrolling_within(page: Any) -> None:
    rows = page.locator("tbody tr")
    # The newest, and the older one that is picked.
    assert rows.count() == 13
    assert rows.last.inner_text().split()[-1] == "20"
    assert rows.last.get_by_role("button", name="A: run 20").get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="Show 27 older").click()
    assert rows.count() == COUNT
    assert (
        page.evaluate(
            "[...document.querySelectorAll('*')].filter(one => one.scrollHeight > one.clientHeight + 2"
            " && /auto|scroll/.test(getComputedStyle(one).overflowY) && one.closest('#here')).length"
        )
        == 0
    )
    page.get_by_role("button", name="Show the newest").click()
    assert rows.count() == 13


def test_a_click_on_a_row_picks_it_for_the_side_that_its_time_says(page: Any) -> None:
    rows = page.locator("tbody tr")
    rows.nth(5).get_by_text("run 34").click()
    assert picked(page) == ["A", [34], False]
    page.evaluate("model.answer('sides', [[34], [36]])")
    rows.first.get_by_text("run 39").click()
    assert picked(page) == ["B", [39], False]
    # The cells say which, and Ctrl adds.
    rows.nth(1).get_by_role("button", name="A: run 38").click(modifiers=["Control"])
    assert picked(page) == ["A", [38], True]
    rows.nth(6).get_by_text("run 33").click(modifiers=["Control"])
    assert picked(page) == ["A", [33], True]
    rows.nth(8).get_by_text("run 31").click(modifiers=["Shift"])
    assert picked(page) == ["A", [33, 32, 31], True]
