"""A toggle in the report, in a browser: from the click to the numbers.

Aim of the design: under 100 ms at 10,000 lookups, made as made_lookups.py says. What the file carries for it is bounded.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.made_lookups import LEAK, made_scope

from cachescope.report.page.file import document
from cachescope.report.page.parts import Group, Page, Replayable, Section
from cachescope.report.page.replay import MOST_BYTES, replay_parts

LOOKUPS = 10_000
# A click, as a person's; the numbers are there when it returns.
_CLICK = "one => { const before = performance.now(); one.click(); return performance.now() - before; }"


@pytest.mark.benchmark(group="report")
@pytest.mark.parametrize("kind", ["varied", "mixed"])
def test_toggle(kind: str, browser: Any, tmp_path: Path, benchmark: Any) -> None:
    (group,) = replay_parts(made_scope(kind, LOOKUPS))
    assert isinstance(group, Group) and isinstance(group.parts[0], Replayable)
    size = len(json.dumps(group.parts[0].codes, separators=(",", ":")))
    assert size < MOST_BYTES
    section = Section("what-if", "What if a field did not count?", "", (group,))
    path = tmp_path / "report.html"
    path.write_text(document(Page("Report", "", "", (section,))), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    names = ["gm", *([LEAK] if kind == "varied" else [])]
    boxes = [page.locator(".replay").get_by_label(name, exact=True) for name in names]
    times: list[float] = []
    benchmark(lambda: times.extend(box.evaluate(_CLICK) for box in boxes))
    benchmark.extra_info |= {"lookups": LOOKUPS, "bytes": size, "slowest_click_ms": max(times)}
    page.close()
