"""Texts from logs that hold HTML, control characters or a megabyte: shown, and harmless."""

from typing import Any

import ipywidgets
import pandas as pd
import pytest

from cachescope.views.explorer import Explorer, Failed
from cachescope.views.state import PANES
from tests.hostile_texts import MARK, hostile_scope
from tests.output_gates import unseen_in

pytestmark = pytest.mark.slow  # whole explorers are built


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    return hostile_scope().explore()


def htmls(widget: Any) -> list[str]:
    mine = [widget.value] if isinstance(widget, ipywidgets.HTML) else []
    return mine + [text for child in getattr(widget, "children", ()) for text in htmls(child)]


def figures(widget: Any) -> list[str]:
    """What the page is given to draw, to name and to choose from."""
    state = widget.get_state()
    mine = [state[name] for name in ("figure", "value", "label", "description", "tooltip") if name in state]
    mine = [*filter(lambda text: isinstance(text, str), mine), *state.get("_options_labels", ())]
    return mine + [text for child in getattr(widget, "children", ()) for text in figures(child)]


def cells(widget: Any) -> list[str]:
    mine = [cell for row in widget.rows for cell in row] if hasattr(widget, "page_size") else []
    mine += [cell for row in widget.rows for cell in row["cells"]] if hasattr(widget, "sides") else []
    return mine + [text for child in getattr(widget, "children", ()) for text in cells(child)]


@pytest.mark.parametrize("name", PANES)
def test_every_pane_is_harmless(name: str, explorer: Explorer) -> None:
    explorer.state.pane = name
    pane = explorer.pane(name)
    assert not isinstance(pane, Failed), pane._reason
    for lookup in (0, 5, 6):
        explorer.state.lookup = lookup
    for entry in (0, 1):
        explorer.state.entry = entry
    assert explorer.state.error == "" and htmls(explorer)
    for text in htmls(explorer):
        assert "<script" not in text and "<img" not in text
        assert unseen_in(text) == []
    for text in figures(explorer):
        assert unseen_in(text) == []
    for cell in cells(explorer):
        assert len(cell) <= 301 and unseen_in(cell) == []


def test_a_search_for_a_hostile_text(explorer: Explorer) -> None:
    explorer.state.show_lookups(text=MARK)
    assert explorer.state.error == "" and "<script" not in explorer._line.value
    found = eval(explorer.query, {"scope": explorer._scope})
    pd.testing.assert_frame_equal(found, explorer.frame())
    assert len(found) > 0


def test_an_error_is_shown_escaped_and_goes_away(explorer: Explorer) -> None:
    def fails() -> None:
        raise ValueError(MARK)

    explorer.state.guarded(fails)()
    assert "&lt;script&gt;" in explorer._error.value and "role='alert'" in explorer._error.value
    explorer.state.guarded(lambda: None)()
    assert explorer._error.layout.display == "none"
