"""What a notebook shows, and the report: texts of a source are texts in them, read by a parser of HTML as browsers have."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree.ElementTree import Element

import html5lib
import pytest

import cachescope
from cachescope.report.page.file import document, page_of
from tests.conftest import Recording
from tests.hostile_texts import hostile_scope
from tests.output_gates import acting_in, unseen_in
from tests.planted import SHORT, plant_in_columns
from tests.report.test_page import without_drawing

pytestmark = pytest.mark.slow  # whole pages are made and parsed

RUNS_OR_LOADS = {"script", "img", "iframe", "object", "embed", "link", "base", "form", "svg", "math", "video"}


def elements_of(html: str) -> list[Element]:
    """The elements of a document or a piece of one; a parser of browsers' rules finds nothing wrong in it."""
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    whole = html.startswith("<!DOCTYPE")
    tree = parser.parse(html) if whole else parser.parseFragment(html, container="div")
    assert [code for _, code, _ in parser.errors if code in ("invalid-codepoint", "eof-in-script")] == []
    return list(tree.iter())


def assert_only_text(elements: list[Element], scripts: int = 0) -> None:
    """Nothing that came from a source became an element, an attribute that acts, or a character that is not seen."""
    tags = [element.tag for element in elements if isinstance(element.tag, str)]
    assert tags.count("script") == scripts
    assert set(tags) & RUNS_OR_LOADS <= ({"script"} if scripts else set())
    for element in elements:
        for name, value in element.attrib.items():
            assert not name.startswith("on") and unseen_in(value) == []
            assert name not in ("href", "src") or re.match(r"#|https://", value)
        if element.tag not in ("script", "style"):
            text = (element.text or "") + (element.tail or "")
            assert unseen_in(text) == [] and max(map(len, text.split("\n"))) < 25_000


@pytest.fixture(scope="module")
def planted(recording: Recording) -> Callable[[int], cachescope.Scope]:
    whole = cachescope.read(recording("2.13.0", "config_flip"))
    return lambda turn: plant_in_columns(whole, turn)


def shown_objects(scope: cachescope.Scope) -> Iterator[Any]:
    yield scope
    for lookup in scope.lookups["lookup"].tolist():
        yield scope.explain(lookup)
    yield scope.check(0.9, 0, scope)
    yield scope.what_if(without=["gm"])
    for entry in scope.entries["entry"].tolist()[:4]:
        yield scope.entry(entry)
    for device in scope.devices["device"].tolist():
        yield scope.device_card(device)
    yield cachescope.compare("run:0", "run:1", within=scope)


@pytest.mark.parametrize("turn", [*range(0, len(SHORT), 5), None])
def test_what_a_notebook_shows_is_text(turn: int | None, planted: Callable[[int], cachescope.Scope]) -> None:
    shown = [*shown_objects(hostile_scope() if turn is None else planted(turn))]
    for one in shown:
        html = one._repr_html_()
        assert acting_in(repr(one)) == [], type(one)
        assert_only_text(elements_of(html))
        # A megabyte is cut, and its length told.
        assert len(html) < 150_000
    kinds = {"Scope", "Explanation", "Check", "WhatIf", "OneEntry", "DeviceCard", "Comparison"}
    assert {type(one).__name__ for one in shown} == kinds


@pytest.mark.parametrize("turn", [*range(0, len(SHORT), 6), None])
def test_a_report_is_text(turn: int | None, planted: Callable[[int], cachescope.Scope]) -> None:
    page = document(page_of(hostile_scope() if turn is None else planted(turn)))
    page.encode("utf-8")
    assert turn is not None or len(without_drawing(page)) < 300_000
    elements = elements_of(page)
    # The figures, the lookups, the codes of a replay where there is one, and the script itself.
    parts = ("<div class='lookups'", "<div class='replay cs'")
    assert_only_text(elements, scripts=2 + sum(part in page for part in parts))
    (figures,) = (element.text for element in elements if element.get("id") == "figures")
    assert figures and unseen_in(figures) == [] and unseen_in(texts_of(json.loads(figures))) == []


def texts_of(value: object) -> str:
    if isinstance(value, dict):
        return "".join(map(texts_of, value.values()))
    if isinstance(value, list):
        return "".join(map(texts_of, value))
    return value if isinstance(value, str) else ""
