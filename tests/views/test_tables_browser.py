"""The tables and other widgets of the explorer in a real browser: folding, copying, the focus of the keyboard; and widgets without a kernel, from models of our own."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_lab import Opened, notebook

import cachescope
from cachescope.figures.palette import DARK, LIGHT
from cachescope.report.blocks import CardText, Group, WorkItems
from cachescope.report.html import blocks_html
from cachescope.views.controls import STYLE, Opens, script

# Choosing run 1 stands for a job that went on: it is read again a moment later.
CELL = """import asyncio, cachescope
scope = cachescope.read(cachescope.sample("tour"))
explorer = scope.explore()
def again():
    explorer.show(cachescope.read(cachescope.sample("tour")))
def chosen(change):
    if change["new"] == 1:
        asyncio.get_running_loop().call_later(5, again)
explorer.state.observe(chosen, "run")
explorer"""
IN_ONE_LINE = """([text, button]) => { const [one, other] = [text, button].map((at) => at.getBoundingClientRect());
  const middle = other.top + other.height / 2; return one.top < middle && middle < one.bottom; }"""
FOCUSED = "() => document.activeElement?.closest('tr')?.dataset.id ?? document.activeElement?.textContent"


@pytest.fixture(scope="module")
def opened(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    with notebook(browser, tmp_path_factory.mktemp("lab"), CELL) as found:
        found.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield found


def pane(page: Any, name: str) -> None:
    page.get_by_role("tab", name=name, exact=True).click()


def lookups(page: Any) -> Any:
    pane(page, "Lookups")
    table = page.get_by_role("treegrid", name="lookups")
    table.wait_for()
    return table


def has_focus(page: Any, what: str) -> None:
    page.wait_for_function(f"what => ({FOCUSED})() === what", arg=what)


def test_the_focus_goes_to_why_and_back_to_the_row(opened: Opened) -> None:
    page = opened.page
    lookups(page).locator("tr[data-id='18']").focus()
    page.keyboard.press("ArrowDown")
    has_focus(page, "20")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    has_focus(page, "Back to Lookups")
    page.keyboard.press("Enter")
    has_focus(page, "18")


def test_the_focus_goes_back_to_the_item_of_the_worklist(opened: Opened) -> None:
    page = opened.page
    pane(page, "Overview")
    page.get_by_role("button", name="Why: cpp_runtime_thread_count").focus()
    page.keyboard.press("Enter")
    has_focus(page, "Back to Overview")
    page.get_by_role("button", name="Next miss").click()
    page.get_by_role("button", name="Back to Overview").click()
    has_focus(page, "cpp_runtime_thread_count: 2 -> 1")


def test_why_opened_by_its_tab_leads_nowhere_back(opened: Opened) -> None:
    pane(opened.page, "Why")
    opened.page.get_by_role("button", name="Previous miss").wait_for()
    opened.page.locator(".cs-back").wait_for(state="hidden")


def test_lookups_of_graphs_are_folded_below_that_of_autograd(opened: Opened, tour: cachescope.Scope) -> None:
    page, table = opened.page, lookups(opened.page)
    ids = "rows => rows.map(row => [Number(row.dataset.id), Number(row.ariaLevel)])"
    rows = table.locator("tbody tr")
    on_top = tour.lookups["lookup"][tour.lookups["aot_lookup"].isna()].tolist()
    assert rows.evaluate_all(ids) == [[lookup, 1] for lookup in on_top]
    table.get_by_role("button", name="1 lookup below lookup 24").click()
    table.locator("tr[data-id='25']").wait_for()
    below = tour.lookups["lookup"][tour.lookups["aot_lookup"] == 24].tolist()
    assert [row for row in rows.evaluate_all(ids) if row[1] == 2] == [[lookup, 2] for lookup in below]
    # The keys of a tree.
    table.locator("tr[data-id='24']").focus()
    page.keyboard.press("ArrowLeft")
    table.locator("tr[data-id='25']").wait_for(state="detached")
    has_focus(page, "24")


def test_all_rows_are_copied_whole(opened: Opened, tour: cachescope.Scope, tmp_path: Path) -> None:
    page = opened.page
    lookups(page)
    page.get_by_role("button", name="Copy all lookups").click()
    page.get_by_text("48 rows copied").wait_for()
    pasted = page.evaluate("() => navigator.clipboard.readText()")
    rows = list(csv.DictReader(pasted.splitlines(), delimiter="\t"))
    with page.expect_download() as download:
        page.get_by_role("button", name="Keep all lookups as a CSV file").click()
    download.value.save_as(tmp_path / "lookups.csv")
    assert list(csv.DictReader((tmp_path / "lookups.csv").open(encoding="utf-8"))) == rows
    assert [int(row["lookup"]) for row in rows] == tour.lookups["lookup"].tolist()
    # The key in full, and not as it is shown.
    assert [row["cache_key"] for row in rows] == tour.lookups["cache_key"].tolist()


def test_filters_are_cleared_by_a_button_beside_their_result(opened: Opened) -> None:
    page, table = opened.page, lookups(opened.page)
    clear = page.get_by_role("button", name="Clear filters")
    assert clear.is_disabled()
    page.get_by_label("Outcome", exact=True).filter(visible=True).select_option("full_miss")
    said = page.get_by_text("26 of 48 lookups").filter(visible=True)
    said.wait_for()
    assert table.get_by_role("img", name="Outcome: full_miss: 26").count() == 1
    for width in (1400, 900):
        page.set_viewport_size({"width": width, "height": 1600})
        page.wait_for_function(IN_ONE_LINE, arg=[said.element_handle(), clear.element_handle()])
    clear.click()
    page.get_by_text("48 lookups", exact=True).filter(visible=True).wait_for()
    assert clear.is_disabled()


def test_the_focus_stays_though_the_job_is_read_again(opened: Opened) -> None:
    page, table = opened.page, lookups(opened.page)
    page.get_by_label("Run", exact=True).filter(visible=True).select_option(index=2)
    table.locator("tr[data-id='0']").wait_for(state="detached")
    before = table.locator("tr[data-id='12']").element_handle()
    before.focus()
    page.wait_for_function("row => !row.isConnected", arg=before)
    has_focus(page, "12")
    page.get_by_role("button", name="Clear filters").click()


def test_the_console_is_quiet(opened: Opened) -> None:
    """Stands last: of all that was done above."""
    assert (opened.errors, opened.beyond) == ([], [])


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
    page.set_content(f"<body><div class='cs-explorer'>{cards}<div id=place></div></div></body>")
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


WIDGETS_CELL = """from cachescope.figures.canvas import empty
from cachescope.views.plot import Plot
Plot(lambda: empty("nothing"), "a figure")"""
# To the browser, the theme is this attribute.
THEME = "dark => { document.body.dataset.jpThemeLight = String(!dark); }"


def test_a_change_of_the_theme_is_drawn_by_the_page(browser: Any, tmp_path: Path) -> None:
    with notebook(browser, tmp_path, WIDGETS_CELL) as opened:
        said = opened.page.locator(".cs-plot .cs-drawing text")
        for dark, colour in ((False, LIGHT.muted), (True, DARK.muted), (False, LIGHT.muted)):
            opened.page.evaluate(THEME, dark)
            said.and_(opened.page.locator(f"[fill='{colour}']")).wait_for()
        assert not opened.errors
