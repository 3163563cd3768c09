"""What to fix first, drawn in chromium from a model of our own: no kernel is needed."""

from __future__ import annotations

from typing import Any

import pytest

from cachescope.views.overview import WorklistView

MODEL = """([module, worklist]) => { window.set = [];
  const widget = new Function(module.replace('export default', 'return'))();
  const model = { get: (name) => (name === 'worklist' ? worklist : name), set: (...one) => set.push(one),
    save_changes: () => {}, on: () => {} };
  widget.render({ model, el: document.getElementById('place') }); }"""


@pytest.fixture(scope="module")
def page(browser: Any) -> Any:
    page = browser.new_page()
    page.set_content("<body><div id=place></div></body>")
    return page


def work(number: int) -> dict[str, Any]:
    return {
        "cause": number, "lookup": 10 + number, "title": f"cause {number}", "cost": "1 s", "share": 0.1, "changes": [],
        "where": f"in run {number}", "advice": f"advice {number}",
    }  # fmt: skip


def test_what_to_do_is_folded_away_from_the_sixth_cause_on(page: Any) -> None:
    works = {"works": [work(i) for i in range(8)], "apart": [work(8)], "apart_title": "Apart", "notes": []}
    page.evaluate(MODEL, [WorklistView._esm, works])
    titles = page.locator("button.cs-link")
    assert titles.all_text_contents() == [f"cause {i}" for i in range(9)]
    seen = [page.get_by_text(f"advice {i}", exact=True).is_visible() for i in range(9)]
    assert seen == [True] * 5 + [False] * 3 + [True]
    page.get_by_label("What to do: cause 6").click()
    page.get_by_label("Lookups of cause 6").click()
    assert page.get_by_text("advice 6", exact=True).is_visible()
    assert page.evaluate("set.map(([name, [pane, id]]) => [name, pane, id])") == [["opened", "Lookups", 6]]
