"""What is drawn in the browser without plotly.js: every figure of the gallery, mark by mark."""

import html
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from cachescope import figures
from cachescope.figures.picture import drawing_js
from docs.make_gallery import drawn

pytestmark = pytest.mark.slow  # every figure is drawn

# All that the drawing knows of plotly's attributes; what it leaves out on purpose stands last.
KNOWN = {
    "bar": "base cliponaxis customdata hoverinfo hovertext insidetextanchor legendgroup marker.color marker.line.color "
    "marker.line.width marker.opacity name orientation showlegend text textangle textfont.color textfont.size textposition "
    "type width x xaxis y",
    "heatmap": "colorscale customdata hoverinfo hoverongaps showscale text type xaxis xgap ygap z zmax zmin",
    "scatter": "cliponaxis customdata hoverinfo hovertext legendgroup marker.color marker.size marker.symbol mode name "
    "showlegend type x xaxis y yaxis",
    "treemap": "branchvalues customdata hoverinfo hovertext ids labels marker.colors marker.line.color marker.line.width maxdepth "
    "parents pathbar.visible sort textfont.color textfont.size textinfo tiling.packing type values marker.cornerradius tiling.pad",
    "axis": "domain dtick gridcolor nticks range rangemode showgrid tickangle tickfont.size tickformat ticks ticksuffix ticktext "
    "tickvals title.font.size title.standoff title.text type visible zeroline automargin ticklabelstandoff",
    "annotation": "align font.color font.size showarrow text x xanchor xref xshift y yanchor yref yshift",
    "layout": "bargap barmode font height hoverlabel margin legend modebar paper_bgcolor plot_bgcolor template uniformtext annotations",
}


def attributes(part: dict[str, Any], before: str = "") -> Iterator[str]:
    for name, value in part.items():
        if isinstance(value, dict):
            yield from attributes(value, f"{before}{name}.")
        else:
            yield before + name


@pytest.mark.parametrize("name", figures.__all__)
def test_nothing_is_asked_for_that_is_not_drawn(name: str) -> None:
    figure = drawn(name)
    for trace in figure["data"]:
        assert {*attributes(trace)} <= {*KNOWN[trace["type"]].split()}
        # Lists as lists: plotly packs what comes from numpy.
        assert "bdata" not in json.dumps(trace)
    layout = figure["layout"]
    axes = {key for key in layout if re.fullmatch(r"[xy]axis\d*", key)}
    assert {*layout} - axes <= {*KNOWN["layout"].split()}
    for axis in axes:
        assert {*attributes(layout[axis])} <= {*KNOWN["axis"].split()}
    for one in layout.get("annotations", []):
        assert {*attributes(one)} <= {*KNOWN["annotation"].split()} and one["showarrow"] is False


@pytest.fixture(scope="module")
def page(browser: Any) -> Any:
    page = browser.new_page(viewport={"width": 900, "height": 800})
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.set_content("<body><div id=place></div></body>")
    page.add_script_tag(content=f"{drawing_js()}window.drawFigure = drawFigure;")
    return page


def draw(page: Any, figure: dict[str, Any], width: int = 700) -> Any:
    page.evaluate(
        """([figure, width]) => { window.clicks = []; window.zooms = [];
        drawFigure(document.getElementById('place'), figure,
          { width, onClick: (point) => clicks.push(point), onZoom: (range) => zooms.push(range) }); }""",
        [figure, width],
    )
    return page.locator("#place svg")


def plain(markup: str) -> str:
    return html.unescape(re.sub(r"</?(b|span)[^>]*>", "", markup.replace("<br>", "\n")))


def points(figure: dict[str, Any]) -> list[str]:
    """The hover texts of all marks, by plotly's rules: a value that is missing has no mark."""
    found: list[str] = []
    for trace in figure["data"]:
        if trace["type"] == "heatmap":
            found += [t for row, texts in zip(trace["z"], trace["text"], strict=True)
                      for z, t in zip(row, texts, strict=True) if z is not None]  # fmt: skip
        elif trace["type"] == "treemap":
            # Boxes without a size, and those below the fourth level, are not drawn.
            found += [t for t, size in zip(trace["hovertext"], trace["values"], strict=True) if size]
        elif trace.get("hoverinfo") == "text":
            found += trace["hovertext"]
    return sorted(plain(text) for text in found)


@pytest.mark.parametrize("name", figures.__all__)
def test_every_mark_is_reached_by_keyboard_and_says_what_it_is(page: Any, name: str) -> None:
    figure = drawn(name)
    svg = draw(page, figure, 880)
    wanted = points(figure)
    told = page.evaluate(
        """(count) => { const svg = document.querySelector('#place svg'); const said = [];
        const box = document.querySelector('#place [role=status]');
        for (let i = 0; i < count; i += 1) {
          svg.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
          if (box.style.display !== 'none') said.push(box.textContent);
        } return said; }""",
        len(wanted),
    )
    if figure["data"] and figure["data"][0]["type"] == "treemap":
        # A box that is too small to open is told, and not what is in it.
        trace = figure["data"][0]
        least, sizes = trace["values"][0] / 100, zip(trace["hovertext"], trace["values"], strict=True)
        large = {plain(text) for text, size in sizes if size > least}
        assert large <= {*told} <= {*wanted}
    else:
        assert sorted(told) == wanted
    texts = "\n".join(svg.locator("text").all_text_contents())
    for one in figure["layout"].get("annotations", []):
        assert plain(one["text"]).replace("\n", "")[:20] in texts
    assert page.errors == []


def boxes(page: Any) -> list[dict[str, float]]:
    found: list[dict[str, float]] = page.evaluate(
        """() => [...document.querySelectorAll('#place path.mark')].map(one => { const box = one.getBBox();
        return { x: box.x, width: box.width, y: box.y, height: box.height, fill: one.getAttribute('fill') }; })"""
    )
    return found


def test_stacked_bars_end_where_the_next_begins_and_are_as_long_as_their_numbers(page: Any) -> None:
    from cachescope.figures.canvas import stacked_rows

    made = stacked_rows(["a", "b"], 30, xaxis={"range": [0, 10], "nticks": 5})
    for name, colour, x in (("hit", "#009E73", [2, 4]), ("miss", "#D55E00", [3, None])):
        marker = {"color": colour, "line": {"width": 0}}
        made.add("bar", x=x, y=[0, 1], orientation="h", marker=marker, name=name)
    draw(page, made.drawn())
    first, second = boxes(page)[-2:]
    # Both bars of the first trace are one path: it is as wide as the longer.
    assert second["x"] - first["x"] == pytest.approx(first["width"] / 2, abs=0.1)
    assert second["width"] == pytest.approx(first["width"] * 3 / 4, abs=0.1)
    ticks = page.locator("#place svg text").all_text_contents()
    assert [t for t in ticks if t.isdigit()] == ["0", "2", "4", "6", "8", "10"]


def test_a_drag_zooms_and_a_double_click_shows_all_again(page: Any) -> None:
    svg = draw(page, drawn("timeline"))
    ticks = svg.locator("text").all_text_contents()
    box = svg.bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 120)
    page.mouse.down()
    page.mouse.move(box["x"] + 260, box["y"] + 130, steps=4)
    page.mouse.up()
    near = page.locator("#place svg text").all_text_contents()
    assert near != ticks
    ((first, last),) = page.evaluate("zooms")
    # In seconds, as the axis counts: what was dragged over, and no more.
    shown = [float(text.removesuffix(" s")) for text in near if re.fullmatch(r"[\d.]+ s", text)]
    assert 0 < first < min(shown) and max(shown) < last < 14
    page.mouse.dblclick(box["x"] + 300, box["y"] + 20)
    assert page.locator("#place svg text").all_text_contents() == ticks
    assert page.evaluate("zooms[1]") is None and page.evaluate("clicks.length") <= 1


def told_by_keys(page: Any, *keys: str) -> list[str]:
    """What stands beside the mark after each key."""
    said = []
    for key in keys:
        page.keyboard.press(key)
        said.append(page.locator("#place [role=status]").inner_text())
    return said


def test_shift_and_arrow_keys_zoom_and_escape_shows_all_again(page: Any) -> None:
    svg = draw(page, drawn("timeline"))
    ticks = svg.locator("text").all_text_contents()
    svg.focus()
    marks = list(dict.fromkeys(told_by_keys(page, *["ArrowRight"] * 100)))
    # Back to the third, and from there to the fifth.
    page.evaluate("document.activeElement.blur()")
    svg = draw(page, drawn("timeline"))
    svg.focus()
    told_by_keys(page, *["ArrowRight"] * 3)
    told_by_keys(page, "Shift+ArrowRight", "Shift+ArrowRight")
    page.keyboard.press("Enter")
    ((first, last),) = page.evaluate("zooms")
    assert first < last and page.evaluate("clicks") == []
    # The focus stays on the figure, which still has these marks, and not all others.
    assert page.evaluate("document.activeElement.matches('#place svg')")
    assert {*marks[2:5]} <= {*told_by_keys(page, *["ArrowRight"] * len(marks))} < {*marks}
    page.keyboard.press("Escape")
    assert page.evaluate("zooms[1]") is None
    assert page.locator("#place svg text").all_text_contents() == ticks


def test_escape_drops_a_span_before_it_zooms(page: Any) -> None:
    svg = draw(page, drawn("timeline"))
    shown = page.locator("#place svg > rect").count()
    svg.focus()
    told_by_keys(page, "ArrowRight", "Shift+ArrowRight")
    assert page.locator("#place svg > rect").count() == shown + 1
    page.keyboard.press("Escape")
    assert page.locator("#place svg > rect").count() == shown
    page.keyboard.press("Enter")
    assert (page.evaluate("zooms"), page.evaluate("clicks.length")) == ([], 1)


def test_a_click_names_the_point(page: Any) -> None:
    figure = drawn("outcomes")
    draw(page, figure)
    page.locator("#place svg").get_by_text("3", exact=True).last.click()
    (point,) = page.evaluate("clicks")
    trace = figure["data"][point["curve"]]
    assert trace["customdata"][point["index"]] == point["data"] and trace["x"][point["index"]] == 3


def test_a_box_opens_and_closes(page: Any) -> None:
    draw(page, drawn("entry_sizes"))
    page.locator("#place svg").get_by_text("fxgraph").click()
    texts = page.locator("#place svg text").all_text_contents()
    assert texts[0].startswith("fxgraph") and not [t for t in texts if t.startswith("code")]
    page.locator("#place svg").get_by_text("fxgraph").first.click()
    assert page.locator("#place svg text").all_text_contents()[0].startswith("all files")


def test_copies_of_the_script_in_one_page_do_not_cut_each_others_marks(page: Any) -> None:
    # In a notebook, each figure has a copy.
    page.add_script_tag(content=f"window.copied = (() => {{ {drawing_js()} return drawFigure; }})();")
    figure = drawn("runs_by_graph")
    clips = page.evaluate(
        """(figure) => { const places = [drawFigure, copied].map((draw, at) => {
          const place = document.createElement('div'); document.body.append(place);
          draw(place, figure, { width: 300 + 400 * at }); return place; });
        const ids = places.flatMap((place) => [...place.querySelectorAll('clipPath')].map((one) => one.id));
        for (const place of places) place.remove();
        return ids; }""",
        figure,
    )
    assert len(clips) == len(set(clips)) > 1


@pytest.mark.parametrize("width", [700, 420, 300])
def test_a_number_at_an_axis_is_whole_or_left_out(page: Any, width: int) -> None:
    figure = drawn("what_if_rates")
    for trace in figure["data"]:
        trace["x"] = [None if value is None else 50_000 * value for value in trace["x"]]
    draw(page, figure, width)
    texts = page.locator("#place svg text").evaluate_all(
        "all => all.map(one => { const box = one.getBoundingClientRect(); return [box.left, box.right, one.textContent]; })"
    )
    labels = sorted(one for one in texts if re.fullmatch(r"[\d,…]+", one[2]))
    assert len(labels) > 1 and not any("…" in text for _, _, text in labels)
    for (_, right, _), (left, _, _) in itertools.pairwise(labels):
        assert right < left


@pytest.mark.parametrize("factor", [2, 3, 5, 60, 1000])
def test_a_number_at_an_axis_ends_within_the_figure(page: Any, factor: int) -> None:
    figure = drawn("what_if_rates")
    for trace in figure["data"]:
        trace["x"] = [None if value is None else factor * value for value in trace["x"]]
    for width in range(300, 700, 40):
        draw(page, figure, width)
        beyond = page.locator("#place svg").evaluate(
            """svg => [...svg.querySelectorAll("text")].filter((one) =>
                one.getBoundingClientRect().right > svg.getBoundingClientRect().right + 1).map((one) => one.textContent)"""
        )
        assert [text for text in beyond if text[:1].isdigit()] == []


def test_a_title_that_is_too_long_ends_with_an_ellipsis_within_the_figure(page: Any) -> None:
    figure = drawn("autotune_margins")
    assert any("<" in note["text"] for note in figure["layout"]["annotations"])
    draw(page, figure, 200)
    edge = page.locator("#place svg").bounding_box()
    texts = page.locator("#place svg text")
    boxes = [text.bounding_box() for text in texts.all()]
    assert all(box["x"] + box["width"] <= edge["x"] + edge["width"] + 1 for box in boxes)
    assert any(text.endswith("…") for text in texts.all_text_contents())


def test_names_in_bars_are_cut_to_fit_and_equally_large(page: Any) -> None:
    figure = drawn("compiles")
    spans, name = [100, 30, 22], "forward_of_the_model (model.py:88) [0/0]"
    bar = {"x": spans, "y": [0, 1, 2], "base": [0] * 3, "width": [0.8] * 3, "text": [name] * 3}
    figure["data"] = [{**figure["data"][0], **bar}]
    figure["layout"]["xaxis"]["range"], figure["layout"]["height"] = [0, 100], 300
    names = draw(page, figure).locator("text", has_text="forward")
    texts = names.all_text_contents()
    assert len(texts) == len(spans)
    assert sorted(text.endswith("…") for text in texts) == [False, True, True]
    assert len({one.get_attribute("font-size") for one in names.all()}) == 1


def test_texts_from_logs_stay_texts(page: Any) -> None:
    from cachescope.figures.canvas import empty

    svg = draw(page, empty("<img src=x onerror=alert(1)> & </text><script>").drawn())
    assert page.locator("#place img, #place script").count() == 0
    assert "<img src=x" in "".join(svg.locator("text").all_text_contents())


def test_ticks_of_seconds_are_said_as_texts_say_durations(page: Any) -> None:
    def ticks(longest: float, suffix: str = " s") -> list[str]:
        figure = drawn("compiles")
        figure["data"] = [{**figure["data"][0], "x": [longest], "y": [0], "base": [0], "text": [""]}]
        figure["layout"]["xaxis"] |= {"range": [0, longest], "ticksuffix": suffix}
        texts = draw(page, figure).locator("text").all_text_contents()
        found = [text for text in texts if re.fullmatch(r"[\d.,]+( (s|min|h))?( \d+ (s|min))?", text)]
        return list(dict.fromkeys(found))

    assert ticks(40)[:3] == ["0 s", "5 s", "10 s"]
    assert ticks(280) == ["0 s", "1 min", "2 min", "3 min", "4 min"]
    assert ticks(100)[-3:] == ["1 min", "1 min 15 s", "1 min 30 s"]
    assert ticks(4 * 3600)[:3] == ["0 s", "30 min", "1 h"]
    # What is no duration stays a number.
    assert ticks(280, "")[:2] == ["0", "50"]
