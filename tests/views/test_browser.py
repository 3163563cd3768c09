"""The explorer in a real browser, used as a person would: chromium, JupyterLab, and the samples."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from jupyter_lab import Opened, notebook

CELL = """import cachescope
scope = cachescope.read(cachescope.sample("{sample}"))
scope.explore()"""

# The same cell with another sample, and another theme: JupyterLab takes long to start.
DARK = """async (code) => {
  const { commands, shell } = window.jupyterapp;
  await commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' });
  shell.currentWidget.content.widgets[0].model.sharedModel.setSource(code);
  await commands.execute('notebook:run-all-cells'); }"""

# What reaches beyond the output of the cell and cannot be scrolled to.
OVERFLOWING = """() => { const edge = document.querySelector('.jp-OutputArea-output').getBoundingClientRect().right + 2;
    return [...document.querySelectorAll('.cs *')].filter(one => { const box = one.getBoundingClientRect();
      return box.width && box.right > edge && !one.closest('.cs-scroll, svg, pre, .cs-tree'); })
      .map(one => `${one.tagName}.${one.className}`); }"""


@pytest.fixture(scope="module")
def tour(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    with notebook(browser, tmp_path_factory.mktemp("lab"), CELL.format(sample="tour")) as opened:
        opened.page.wait_for_selector(".cs-plot .cs-drawing")
        yield opened


def pane(page: Any, name: str) -> None:
    page.get_by_role("tab", name=name, exact=True).click()


def is_shown(page: Any, text: str) -> None:
    page.get_by_text(text, exact=False).filter(visible=True).first.wait_for()


def click_through(what: Any, to: Any) -> None:
    """Click until what it leads to is there: on a busy machine a table is drawn anew under the mouse, and the click is lost."""
    from playwright.sync_api import TimeoutError as NotThere

    while True:
        what.click()
        try:
            to.wait_for(timeout=10_000)
            return
        except NotThere:
            continue


def assert_nothing_overflows(page: Any, *where: Any) -> None:
    """At once, or a moment later: figures take their new width in the frame after."""
    from playwright.sync_api import TimeoutError as NotThere

    with suppress(NotThere):
        page.wait_for_function(f"() => !({OVERFLOWING})().length")
    assert page.evaluate(OVERFLOWING) == [], where


def test_from_the_largest_cause_to_the_changed_field(tour: Opened) -> None:
    page = tour.page
    pane(page, "Overview")
    # The costliest; the cold start is below the list.
    costliest = page.get_by_role("list", name="what to fix first").get_by_role("listitem").first
    costliest.get_by_role("button", name="Lookups of epilogue_fusion").click()
    is_shown(page, "8 of 48 lookups")
    pane(page, "Overview")
    costliest.get_by_role("button", name="Why: epilogue_fusion").click()
    said = "the same graph, and one field of the key differs: inductor_config[epilogue_fusion], True -> False"
    is_shown(page, said)
    fields = page.get_by_role("table").filter(has_text="FieldChange").filter(visible=True)
    cells = fields.locator("tbody tr").first.inner_text().split()
    assert cells == ["inductor_config[epilogue_fusion]", "True", "->", "False"]


def test_a_bar_can_be_clicked(tour: Opened) -> None:
    page = tour.page
    pane(page, "Overview")
    # The number on a bar; the ticks of the axis come first.
    page.get_by_role("figure", name="outcomes by cache and run").get_by_text("4", exact=True).last.click()
    is_shown(page, "4 of 48 lookups")
    page.get_by_role("button", name="Clear filters").filter(visible=True).click()
    page.get_by_text("48 lookups", exact=True).filter(visible=True).wait_for()


def test_the_run_of_a_bar_is_chosen_where_the_time_went(tour: Opened) -> None:
    page = tour.page
    pane(page, "Time")
    is_shown(page, "took 12.3 s longer than the quickest")
    # The first bar, by keyboard.
    figure = page.get_by_role("figure", name="self time of each phase, by run")
    figure.locator("svg").focus()
    page.keyboard.press("ArrowRight")
    figure.get_by_role("status").filter(has_text="run 0").wait_for()
    page.keyboard.press("Enter")
    # No other run is left.
    page.get_by_role("figure", name="compiles over time").get_by_text("run 1").wait_for(state="detached")
    pane(page, "Lookups")
    is_shown(page, "8 of 48 lookups")
    page.get_by_label("Run", exact=True).filter(visible=True).select_option("all")


def test_a_form_switched_off_gives_the_hit_rate_at_once(tour: Opened) -> None:
    page = tour.page
    pane(page, "What-if")
    page.get_by_role("checkbox", name="inductor_configs").uncheck()
    # What scope.what_if(without="inductor_configs") says: 30 of 48.
    is_shown(page, "46 % → 62 %")
    is_shown(page, "22 → 30 of 48 lookups")
    page.get_by_role("button", name="Undo").click()
    is_shown(page, "22 → 22 of 48 lookups")
    leaf = page.get_by_role("checkbox", name="cpp_runtime_thread_count")
    leaf.uncheck()
    is_shown(page, "22 → 30 of 48 lookups")
    leaf.check()
    is_shown(page, "22 → 22 of 48 lookups")
    search = page.get_by_label("Search the fields of the keys")
    search.fill("max_autotune")
    is_shown(page, "max_autotune_gemm_backends")
    search.fill("")


def test_the_keyboard_is_enough(tour: Opened) -> None:
    page = tour.page
    page.get_by_role("tab", name="Lookups", exact=True).focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    is_shown(page, "What to fix first")
    page.get_by_role("button", name="Why: epilogue_fusion").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    is_shown(page, "8 of 48 lookups")
    page.get_by_role("button", name="Sort by Compile time").focus()
    page.keyboard.press("Enter")
    is_shown(page, "Compile time ▲")
    page.get_by_role("button", name="Clear filters").filter(visible=True).press("Enter")
    page.get_by_text("48 lookups", exact=True).filter(visible=True).wait_for()


def test_two_runs_are_compared_with_two_clicks(tour: Opened) -> None:
    """Of the run of an edited program and the last one that hit everything: which graph, and what in it."""
    page = tour.page
    pane(page, "Compare")
    for name in ("A: run 1,", "B: run 2,"):
        page.get_by_role("button", name=name).click()
        # The list is drawn anew once the kernel has answered, and a click meanwhile may be lost.
        page.get_by_role("button", name=name, pressed=True).wait_for()
    is_shown(page, "100 % → 75 %")
    is_shown(page, "tanh = torch.tanh(p_0)")
    page.get_by_role("button", name="Regressed 2").click()
    rows = page.get_by_role("grid", name="lookups of A and B, aligned").locator("tbody tr")
    page.get_by_text("2 rows").filter(visible=True).first.wait_for()
    assert rows.locator("td:first-child").all_inner_texts() == ["Regressed"] * 2
    click_through(rows.first, page.get_by_text("Changed fields").filter(visible=True).first)
    pane(page, "Compare")


def test_runs_are_picked_with_the_keyboard(tour: Opened) -> None:
    page = tour.page
    pane(page, "Compare")
    page.get_by_role("button", name="B: run 3,").focus()
    page.keyboard.press("Enter")
    is_shown(page, "B: run 3 (pid")
    page.get_by_role("button", name="B: run 3,", pressed=True).wait_for()
    # The focus stays, and Shift adds what is between.
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Shift+Enter")
    is_shown(page, "B: 3 runs")
    picked = page.get_by_role("table", name="runs to compare").locator("button[aria-pressed=true]")
    assert [name[0] for name in picked.evaluate_all("all => all.map(one => one.ariaLabel)")] == list("BBBA")
    assert "run 5" in page.evaluate("document.activeElement.ariaLabel")


def test_a_span_that_is_dragged_narrows_every_pane(tour: Opened) -> None:
    page = tour.page
    pane(page, "Overview")
    page.get_by_role("button", name="Time of day", exact=True).click()
    figure = page.get_by_role("figure", name="lookups over time").locator("svg")
    figure.get_by_text("time of day (UTC)").wait_for()
    figure.scroll_into_view_if_needed()
    figure.focus()
    drag(page, figure)
    chip = page.locator(".cs-span")
    chip.get_by_text("of 48 lookups").wait_for()
    count = int(chip.inner_text().split(" UTC, ")[1].split(" of ")[0])
    assert 0 < count < 48
    # The headline counts these alone, and the figure that was dragged over keeps the focus, also once the span is cleared.
    is_shown(page, f"of {count} lookups")
    focused = "document.activeElement.closest('[role=figure]')?.ariaLabel === 'lookups over time'"
    assert page.evaluate(focused)
    chip.get_by_role("button", name="Clear").press("Enter")
    chip.wait_for(state="hidden")
    page.wait_for_function(focused)
    drag(page, figure)
    chip.get_by_text("of 48 lookups").wait_for()
    pane(page, "Lookups")
    chip.get_by_text("of 48 lookups").wait_for()
    page.get_by_text("of 48 lookups").filter(visible=True).nth(1).wait_for()
    pane(page, "Why")
    is_shown(page, "Misses to step through")
    page.get_by_role("button", name="Next miss").click()
    chip.get_by_role("button", name="Clear").focus()
    page.keyboard.press("Enter")
    chip.wait_for(state="hidden")
    pane(page, "Lookups")
    page.get_by_text("48 lookups", exact=True).filter(visible=True).wait_for()
    pane(page, "Overview")
    is_shown(page, "22 of 48 lookups")


def drag(page: Any, figure: Any) -> None:
    figure.scroll_into_view_if_needed()
    box = figure.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.62 * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.8 * box["width"], y, steps=5)
    page.mouse.up()


def test_nothing_reaches_beyond_the_page(tour: Opened) -> None:
    for width in (1400, 900):
        tour.page.set_viewport_size({"width": width, "height": 1600})
        for name in ("Overview", "Lookups", "Why", "Compare", "Time", "What-if", "Machines", "Entries"):
            pane(tour.page, name)
            tour.page.get_by_role("tab", name=name, exact=True, selected=True).wait_for()
            tour.page.wait_for_timeout(300)
            assert_nothing_overflows(tour.page, width, name)


def test_a_narrow_page_has_one_row_of_tabs_and_room_for_the_reason(tour: Opened) -> None:
    page = tour.page
    page.set_viewport_size({"width": 900, "height": 1600})
    page.evaluate(DARK, CELL.format(sample="four_ranks"))
    page.get_by_text("8 of 16 lookups").filter(visible=True).first.wait_for()
    tabs = page.locator(".cs-explorer [role=tab]")
    tops = tabs.evaluate_all("all => all.map(one => one.getBoundingClientRect().top)")
    assert len(tops) == 9 and len(set(tops)) == 1
    pane(page, "Lookups")
    reasons = page.get_by_role("treegrid", name="lookups").locator("td.cs-at-reason")
    reasons.filter(has_text="still compiling").first.wait_for()
    edge = page.locator(".jp-OutputArea-output").bounding_box()
    box = reasons.last.bounding_box()
    assert box["width"] > 120 and box["x"] + box["width"] <= edge["x"] + edge["width"]


def test_an_entry_is_opened_in_the_dark(tour: Opened) -> None:
    page = tour.page
    page.set_viewport_size({"width": 900, "height": 1600})
    page.evaluate(DARK, CELL.format(sample="entry_truncated"))
    page.locator("body[data-jp-theme-light=false]").wait_for(state="attached")
    # The explorer of the cell before goes once this one is there.
    is_shown(page, "4 of 9 lookups")
    pane(page, "Entries")
    is_shown(page, "damaged: truncated")
    row = page.get_by_role("grid", name="entries").locator("tbody tr").first
    source = page.get_by_text("Generated source")
    click_through(row, source)
    source.click()
    is_shown(page, "AOT ID")
    assert_nothing_overflows(page)


def test_nothing_left_the_machine_and_the_console_is_quiet(tour: Opened) -> None:
    """Stands last: of all that was done above."""
    assert (tour.errors, tour.beyond) == ([], [])
    assert not tour.page.locator(".jp-OutputArea-output[data-mime-type*=stderr]").count()
