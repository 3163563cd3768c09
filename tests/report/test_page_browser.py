"""The report opened from disk in a real browser, without a network: drawn, sorted, searched, printed, harmless."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from jupyter_lab import Opened

import cachescope
from tests.conftest import Archive, Recording
from tests.hostile_texts import TEXTS, hostile_scope
from tests.planted import SHORT, plant_in_columns
from tests.report.conftest import Written


@contextmanager
def opened(
    browser: Any,
    path: Path,
    width: int = 1400,
    scheme: str = "light",
    *,
    is_folded: bool = False,
    anchor: str = "",
) -> Iterator[Opened]:
    """The file in a window that has no network, with all that is folded opened; what it asks for all the same is noted."""
    window = {"viewport": {"width": width, "height": 1000}, "color_scheme": scheme}
    context = browser.new_context(**window, offline=True, service_workers="block")
    shown = Opened(context.new_page())
    shown.page.on(
        "console", lambda m: shown.errors.append(m.text) if m.type in ("error", "warning") else None
    )
    shown.page.on("pageerror", lambda error: shown.errors.append(str(error)))
    shown.page.on("dialog", lambda dialog: (shown.errors.append("a dialog"), dialog.dismiss()))
    home = ("file:", "data:", "blob:")
    shown.page.on("request", lambda r: None if r.url.startswith(home) else shown.beyond.append(r.url))
    shown.page.goto(path.as_uri() + anchor)
    shown.page.wait_for_selector("html[data-drawn]")
    if not is_folded:
        shown.page.get_by_role("button", name="Open all").click()
    yield shown
    assert (shown.errors, shown.beyond) == ([], [])
    context.close()


@pytest.fixture(scope="module")
def tour(written: Written) -> Path:
    return written("tour")


def column(table: Any, at: int) -> list[str]:
    return [text.strip() for text in table.locator(f"tbody tr:visible td:nth-child({at})").all_inner_texts()]


def test_the_first_screen_is_the_answer(browser: Any, tour: Path) -> None:
    """Above the fold of 1400 x 900: what was avoidable, what each start spent its time on, and what to do about the first causes."""
    with opened(browser, tour, is_folded=True) as shown:
        page = shown.page
        page.set_viewport_size({"width": 1400, "height": 900})
        said = "4.0 s of the 18.4 s compiled after misses were avoidable"
        assert page.locator(".headline").inner_text().startswith(said)
        setting = page.get_by_text("torch._inductor.config.epilogue_fusion = True")
        seen = [page.locator("figure.plot .cs-drawing").first, setting]
        changed = page.get_by_text("992 ms changed code · 2 misses", exact=True)
        seen += [page.get_by_text("torch.set_num_threads(2)"), changed]
        for one in seen:
            box = one.bounding_box()
            assert box["y"] + box["height"] <= 900
        assert pages(page.pdf(format="A4")) <= 3
        # All else is a line each, and opens for a link to what is in it.
        sections = page.locator("main section > details")
        assert sections.count() == 11 and page.locator("main section > details[open]").count() == 0
        page.locator(".cs-worklist a").first.click()
        page.get_by_role("table", name="Changed fields of the key").wait_for()
        address = page.url.rpartition("#")[2]
        page.get_by_role("link", name="When and where did it miss?").click()
        page.locator("figure[aria-label='Lookups over time'] .cs-drawing").wait_for()
    with opened(browser, tour, is_folded=True, anchor=f"#{address}") as shown:
        shown.page.get_by_role("table", name="Changed fields of the key").wait_for()


def test_the_first_screen_of_many_runs_has_room_for_the_causes(
    browser: Any, archive: Archive, tmp_path: Path
) -> None:
    scope = cachescope.read(archive("releases/2.14.1"))
    assert len(scope.runs) == 16
    with opened(browser, scope.report(tmp_path / "runs.html"), is_folded=True) as shown:
        shown.page.set_viewport_size({"width": 1400, "height": 900})
        cards = shown.page.locator(".cs-worklist > li")
        for one in (cards.nth(0), cards.nth(1), cards.nth(2).get_by_text("epilogue_fusion = True")):
            box = one.bounding_box()
            assert box["y"] + box["height"] <= 900
        # Every run is in its section.
        shown.page.get_by_role("link", name="Where did the time go?").click()
        shown.page.locator("figure[aria-label='Self time of each phase, every run'] .cs-drawing").wait_for()


@pytest.mark.parametrize("width", [700, 1400])
def test_no_table_is_a_box_that_scrolls(browser: Any, tour: Path, width: int) -> None:
    with opened(browser, tour, width) as shown:
        widths = "of => of.map((one) => [one.scrollWidth, one.clientWidth])"
        sizes = shown.page.locator(".cs-scroll").evaluate_all(widths)
        assert len(sizes) > 10 and not [wide for wide, seen in sizes if wide > seen]


def test_figures_are_drawn_and_tables_sort_and_search(browser: Any, tour: Path) -> None:
    with opened(browser, tour) as shown:
        page = shown.page
        figures = page.locator("figure.plot").count()
        assert figures > 5 and page.locator("figure.plot:has(.cs-drawing)").count() == figures
        rates = page.get_by_role("table", name="Hit rates by run and cache")
        # No row is hidden in a box that scrolls.
        tall = "[...document.querySelectorAll('.cs-scroll')].filter(one => one.scrollHeight > one.clientHeight + 2).length"
        assert page.evaluate(tall) == 0
        search = page.get_by_label("Search 12 rows")
        search.fill("fxgraph 3")
        assert column(rates, 2) and set(column(rates, 2)) == {"fxgraph"}
        assert page.get_by_role("status").filter(has_text="of 12 rows").count() == 1
        search.fill("")
        assert len(column(rates, 1)) == 12
        heads = rates.get_by_role("columnheader")
        # By the keyboard alone.
        rates.get_by_role("button", name="Hits").first.focus()
        page.keyboard.press("Enter")
        assert column(rates, 4) == sorted(column(rates, 4), key=int, reverse=True)
        assert heads.nth(3).get_attribute("aria-sort") == "descending"
        rates.get_by_role("button", name="Time lost").click()
        times = column(rates, 7)
        # What has no time comes last whichever way it is sorted.
        assert times[0] != "–" and times[-1] == "–"
        rates.get_by_role("button", name="Time lost").click()
        assert column(rates, 7)[0] != "–" and column(rates, 7)[-1] == "–"


def test_every_lookup_is_searched_and_a_card_leads_to_its_evidence(browser: Any, tour: Path) -> None:
    scope = cachescope.read(cachescope.sample("tour"))
    with opened(browser, tour) as shown:
        page = shown.page
        found = page.get_by_role("table", name="Lookups, those that missed first")
        page.get_by_label("Search 48 rows").fill("full_miss fxgraph")
        lookups = scope.lookups.query("outcome == 'full_miss' and cache == 'fxgraph'")["lookup"]
        assert sorted(map(int, column(found, 1))) == lookups.tolist()
        found.get_by_role("cell", name="gated_tanh").first.click()
        functions = scope.lookups.set_index("lookup")["function"]
        assert {functions[int(lookup)] for lookup in column(found, 1)} == {"gated_tanh"}
    with opened(browser, tour, is_folded=True) as shown:
        page = shown.page
        page.get_by_role("link", name="epilogue_fusion: True -> False").focus()
        page.keyboard.press("Enter")
        page.get_by_role("table", name="Changed fields of the key").wait_for()
        # By what it says: in another recording it may have another number.
        assert re.search("#cause-[0-9a-f]{8}$", page.url)


def test_the_contents_lead_to_the_sections(browser: Any, tour: Path) -> None:
    with opened(browser, tour, is_folded=True) as shown:
        page = shown.page
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the answer"
        page.get_by_role("link", name="What if a field did not count?").click()
        assert page.url.endswith("#what-if")
        assert page.get_by_role("heading", name="What if a field did not count?").is_visible()
        page.get_by_role("button", name="Open all").click()
        details = page.locator("details.cs-long").first
        details.locator("summary").focus()
        page.keyboard.press("Enter")
        assert details.get_by_text("GraphModule").first.is_visible()


@pytest.mark.parametrize(("width", "scheme"), [(1400, "dark"), (900, "light")])
def test_nothing_reaches_beyond_the_page(browser: Any, tour: Path, width: int, scheme: str) -> None:
    with opened(browser, tour, width, scheme) as shown:
        assert shown.page.evaluate("document.documentElement.scrollWidth") == width
        wide = shown.page.evaluate(
            """() => [...document.querySelectorAll('main *')].filter(one => { const box = one.getBoundingClientRect();
            return box.width && box.right > innerWidth + 1 && !one.closest('.cs-scroll, svg, pre'); }).map(one => one.outerHTML.slice(0, 80))"""
        )
        assert wide == []
        text, back = shown.page.evaluate(
            "[document.querySelector('.cs-drawing text').getAttribute('fill'), getComputedStyle(document.body).backgroundColor]"
        )
        light = ("#333333", "rgb(255, 255, 255)")
        assert ((text, back) == light) == (scheme == "light")


def test_it_prints_in_light_and_nothing_is_cut_off(browser: Any, tour: Path) -> None:
    with opened(browser, tour, scheme="dark") as shown:
        page = shown.page
        page.emulate_media(media="print", color_scheme="dark")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate("document.querySelector('.cs-drawing text').getAttribute('fill')") == "#333333"
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        cut = page.evaluate(
            "[...document.querySelectorAll('.cs-scroll, pre')].filter(one => one.scrollHeight > one.clientHeight + 2).length"
        )
        assert cut == 0


def test_paper_has_the_first_rows_and_says_how_many_more_there_are(
    browser: Any, recording: Recording, tmp_path: Path
) -> None:
    names = ("tour", "four_graphs", "two_services", "recompiles")
    scope = cachescope.read(*(recording("2.13.0", name) for name in names))
    with opened(browser, scope.report(tmp_path / "out.html")) as shown:
        page = shown.page
        few = page.pdf(format="A4")
        page.emulate_media(media="print")
        misses = page.locator(".cs-tabled", has_text="Lookups, those that missed first")
        assert misses.locator("tbody tr:visible").count() == 20
        more = misses.locator(".unfold").evaluate("one => getComputedStyle(one, '::after').content")
        assert more == f'"{len(scope.lookups) - 20} more in the page"'
        # What someone opened is printed whole.
        page.evaluate("document.querySelectorAll('.unfold').forEach(one => one.click())")
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        assert pages(few) < 0.8 * pages(page.pdf(format="A4"))


def pages(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


def test_hostile_texts_do_nothing(browser: Any, tmp_path: Path) -> None:
    path = hostile_scope().report(tmp_path / "hostile.html")
    with opened(browser, path) as shown:
        assert shown.page.get_by_text("<script>alert(1)</script>").count() > 0
        assert shown.page.locator("img[src='x']").count() == 0
        # Were such a script to come in, the policy would not run it.
        shown.page.evaluate(
            "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s)"
        )
        assert shown.page.evaluate("window.ran") is None
        assert len(shown.errors) == 1 and "Content Security Policy" in shown.errors.pop()


@pytest.mark.parametrize("first", ["markup", "formulas"])
def test_markup_in_a_column_is_text(browser: Any, recording: Recording, tmp_path: Path, first: str) -> None:
    scope = cachescope.read(recording("2.13.0", "config_flip"))
    path = plant_in_columns(scope, SHORT.index(TEXTS[first]), turns=1).report(tmp_path / "planted.html")
    with opened(browser, path) as shown:
        page = shown.page
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        for figure in page.locator("figure.plot .cs-drawing").all()[:6]:
            figure.hover(position={"x": 80, "y": 60}, force=True)
        assert page.locator("script").count() == 3
        assert page.locator("main img, main [onerror], main iframe, [href^='javascript']").count() == 0
        assert page.locator("mjx-container, .MathJax").count() == 0
        # Figures have the texts as well, and link to nothing.
        assert page.locator("svg a").count() == 0
        sought = {"markup": "<script>alert(1)</script>", "formulas": "<a href='javascript:alert(1)'>"}[first]
        assert page.get_by_text(sought).count() > 0
