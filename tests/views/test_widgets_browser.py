"""Widgets drawn in chromium without a kernel, from models of our own: what to fix first, and the list of runs.

A figure has the colours of the page, however quickly its theme changes and however busy the kernel is.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_lab import notebook

from cachescope.figures.palette import DARK, LIGHT
from cachescope.report.blocks import CardText, Group, WorkItems
from cachescope.report.html import blocks_html
from cachescope.views.controls import STYLE, script
from cachescope.views.overview import Opens

MODEL = """([module, cards]) => { window.set = [];
  const widget = new Function(module.replace('export default', 'return'))();
  const model = { get: (name) => (name in cards ? cards[name] : name), set: (...one) => set.push(one),
    save_changes: () => {}, on: () => {} };
  widget.render({ model, el: document.getElementById('place') }); }"""


@pytest.fixture(scope="module")
def page(browser: Any) -> Any:
    page = browser.new_page()
    page.set_content("<body><div id=place></div></body>")
    return page


def work(at: int) -> CardText:
    return CardText(at, 10 + at, f"cause {at}", "1 s", f"in run {at}", (), None, (), (), f"advice {at}")


def test_further_cards_are_folded_away(page: Any) -> None:
    works = [work(i) for i in range(9)]
    later = Group("", "5 more", (WorkItems("Later", tuple(works[3:8]), 4),), is_folded=True)
    cards = blocks_html([WorkItems("First", tuple(works[:3])), later, WorkItems("Apart", tuple(works[8:]))])
    page.set_content(f"<body><div class='cs-opening'>{cards}<div id=place></div></div></body>")
    page.evaluate(MODEL, [Opens._esm, {}])
    assert page.locator("button.cs-link").all_text_contents() == [f"cause {i}" for i in range(9)]
    seen = [page.get_by_text(f"advice {i}", exact=True).is_visible() for i in range(9)]
    assert seen == [True] * 3 + [False] * 5 + [True]
    page.get_by_text("5 more", exact=True).click()
    page.get_by_label("Lookups of cause 6").click()
    assert page.get_by_text("advice 6", exact=True).is_visible()
    assert page.evaluate("set.map(([name, [pane, id]]) => [name, pane, id])") == [["opened", "Lookups", 6]]


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
def picker(browser: Any) -> Iterator[Any]:
    source = script("make.js", "run_picker.js").replace("export default", "window.widget =")
    model = _MODEL % (COUNT, COUNT, COUNT)
    shown = browser.new_page()
    shown.set_content(
        f"<style>{STYLE}</style><div id='here'></div><script>{source}{model}"
        "widget.render({ model, el: document.getElementById('here') });</script>"
    )
    yield shown
    shown.close()


def picked(picker: Any) -> list[Any]:
    return list(picker.evaluate("model.get('picked').slice(0, 3)"))


def test_what_is_picked_is_seen_without_scrolling_within(picker: Any) -> None:
    rows = picker.locator("tbody tr")
    # The newest, and the older one that is picked.
    assert rows.count() == 13 and rows.last.inner_text().split()[-1] == "20"
    assert rows.last.get_by_role("button", name="A: run 20").get_attribute("aria-pressed") == "true"
    picker.get_by_role("button", name="Show 27 older").click()
    assert rows.count() == COUNT
    assert (
        picker.evaluate(
            "[...document.querySelectorAll('*')].filter(one => one.scrollHeight > one.clientHeight + 2"
            " && /auto|scroll/.test(getComputedStyle(one).overflowY) && one.closest('#here')).length"
        )
        == 0
    )
    picker.get_by_role("button", name="Show the newest").click()
    assert rows.count() == 13


def test_a_click_on_a_row_picks_it_for_the_side_that_its_time_says(picker: Any) -> None:
    rows = picker.locator("tbody tr")
    rows.nth(5).get_by_text("run 34").click()
    assert picked(picker) == ["A", [34], False]
    picker.evaluate("model.answer('sides', [[34], [36]])")
    rows.first.get_by_text("run 39").click()
    assert picked(picker) == ["B", [39], False]
    # The cells say which, and Ctrl adds.
    rows.nth(1).get_by_role("button", name="A: run 38").click(modifiers=["Control"])
    assert picked(picker) == ["A", [38], True]
    rows.nth(6).get_by_text("run 33").click(modifiers=["Control"])
    assert picked(picker) == ["A", [33], True]
    rows.nth(8).get_by_text("run 31").click(modifiers=["Shift"])
    assert picked(picker) == ["A", [33, 32, 31], True]


CELL = """from cachescope.figures.canvas import empty
from cachescope.views.plot import Plot
Plot(lambda: empty("nothing"), "a figure")"""
# To the browser, the theme is this attribute.
THEME = "dark => { document.body.dataset.jpThemeLight = String(!dark); }"


def test_a_change_of_the_theme_is_drawn_by_the_page(browser: Any, tmp_path: Path) -> None:
    with notebook(browser, tmp_path, CELL) as opened:
        said = opened.page.locator(".cs-plot .cs-drawing text")
        for dark, colour in ((False, LIGHT.muted), (True, DARK.muted), (False, LIGHT.muted)):
            opened.page.evaluate(THEME, dark)
            said.and_(opened.page.locator(f"[fill='{colour}']")).wait_for()
        assert not opened.errors
