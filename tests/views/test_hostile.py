"""Texts from logs that hold HTML, control characters or a megabyte: shown, and harmless."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope.scope import Scope
from cachescope.views.explorer import Explorer, Failed
from cachescope.views.state import PANES

MARK = "<script>alert(1)</script><img src=x onerror=alert(2)>"
HOSTILE = f"{MARK}\x1b[31m\u202e\x00" + "A" * 1_000_000


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    tables = cachescope.read(cachescope.sample("entry_truncated")).tables
    lookups, entries, runs, problems = (
        frame.copy() for frame in (tables.lookups, tables.entries, tables.runs, tables.problems)
    )
    lookups.loc[0, "compile_id"] = HOSTILE
    lookups.loc[5, "load_error"] = HOSTILE
    lookups.loc[6, ["outcome", "bypass_reason"]] = ["bypass", HOSTILE]
    entries.loc[0, ["name", "guards_expr", "detail"]] = HOSTILE
    entries.loc[1, "damage"] = HOSTILE
    runs.loc[:, "torch_version"] = HOSTILE
    problems.loc[0, ["kind", "source", "message"]] = HOSTILE
    changed = replace(tables, lookups=lookups, entries=entries, runs=runs, problems=problems)
    return Scope(changed).explore()


def htmls(widget: Any) -> list[str]:
    mine = [widget.value] if type(widget).__name__ == "HTML" else []
    return mine + [text for child in getattr(widget, "children", ()) for text in htmls(child)]


def cells(widget: Any) -> list[str]:
    mine = [cell for row in widget.rows for cell in row] if hasattr(widget, "page_size") else []
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
    assert explorer.state.error == ""
    for text in htmls(explorer):
        assert "<script" not in text and "<img" not in text
        assert not {"\x1b", "\x00", "\u202e"} & set(text)
    for cell in cells(explorer):
        assert len(cell) <= 301 and not {"\x1b", "\x00", "\u202e"} & set(cell)


def test_a_search_for_a_hostile_text(explorer: Explorer) -> None:
    explorer.state.show_lookups(text=MARK)
    assert explorer.state.error == ""
    assert "<script" not in explorer._line.value
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
