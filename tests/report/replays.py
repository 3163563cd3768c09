"""Replays of the report in a browser, in its page or without one around them, beside those of the package."""

import json
from collections.abc import Collection, Iterator
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from cachescope.analysis.what_if.browser_replay import ReplayCodes
from cachescope.answers.cards import cause_titles
from cachescope.answers.chosen import Chosen
from cachescope.answers.names import short_field, short_fields
from cachescope.columns import rows_of
from cachescope.frames.replay_rows import WhatIfRate
from cachescope.report.blocks import shortened
from cachescope.report.page.replay import codes_object
from cachescope.report.what_if_forms import cause_lines, warning_lines
from cachescope.scope import Scope
from cachescope.wording import duration, percent

_RUN = """([codes, wanted]) => { const replay = replayOf(JSON.parse(codes));
return wanted.map(([fields, forms]) => replay.rates(replay.without(fields, forms))); }"""


def blank_page(browser: Any) -> Any:
    page = browser.new_page()
    script = files("cachescope.report.page").joinpath("replay.js").read_text(encoding="utf-8")
    page.set_content("<body></body>")
    page.add_script_tag(content=f"{script}window.replayOf = replayOf;")
    return page


def in_the_browser(page: Any, scope: Scope, wanted: Collection[Collection[str]]) -> list[dict[str, Any]]:
    """The rates after, for each set of fields and forms that do not count."""
    codes = ReplayCodes.of(scope.replay)
    names = [form.name for form in codes.forms]
    chosen = []
    for without in wanted:
        fields = [codes.fields.index(name) for name in without if name not in names]
        chosen.append((fields, [names.index(name) for name in without if name in names]))
    text = json.dumps(codes_object(codes, scope.replay.before))
    rates: list[dict[str, Any]] = page.evaluate(_RUN, [text, chosen])
    return rates


def in_the_package(scope: Scope, wanted: Collection[Collection[str]]) -> Iterator[dict[str, Any]]:
    for without in wanted:
        _, after = rows_of(scope.what_if(without=tuple(without)).rates, WhatIfRate)
        yield {name: value for name, value in asdict(after).items() if name != "when"}


def agree(page: Any, scope: Scope, wanted: Collection[Collection[str]]) -> int:
    """Hold one against the other; returns how many of the replays changed anything."""
    found = in_the_browser(page, scope, wanted)
    changed = 0
    for without, one, other in zip(wanted, found, in_the_package(scope, wanted), strict=True):
        assert one == other, without
        changed += one["hits"] > scope.replay.before.hits or one["undecided"] > 0
    return changed


def every_box(page: Any, scope: Scope) -> Iterator[tuple[str, Any]]:
    """The name and the box of whatever can be left out in an opened report, also where it is folded."""
    unfold(page)
    boxes = page.locator(".replay input[type=checkbox]")
    names = {label: name for name, label in short_fields(ReplayCodes.of(scope.replay).fields).items()}
    for own, label in boxes.evaluate_all(
        "all => all.map(one => [one.dataset.name, one.labels[0].textContent.trim()])"
    ):
        # By its own name: what is left out is no longer folded, and stands elsewhere. A field may be in several forms.
        yield names.get(label, label), page.locator(f".replay input[data-name={json.dumps(own)}]").first


def unfold(page: Any) -> None:
    """Show the fields that save nothing alone, too."""
    for line in page.locator(".replay summary").filter(has_text="saving nothing alone").all():
        if not line.evaluate("one => one.parentElement.open"):
            line.click()
        line.locator("xpath=..").locator("input").first.wait_for()


def box(page: Any, name: str) -> Any:
    return page.locator(".replay").get_by_label(short_field(name), exact=True)


def numbers(page: Any) -> list[str]:
    cells: list[str] = page.locator(".replay dd").evaluate_all(
        "cells => cells.map(cell => [...cell.children].map(one => one.textContent).join(', '))"
    )
    return cells


def expected(scope: Scope, *without: str) -> list[str]:
    before, after = rows_of(scope.what_if(without=without).rates, WhatIfRate)
    more = after.hits - before.hits

    def moved(one: str, other: str) -> str:
        return one if one == other else f"{one} → {other}"

    won = (after.time_saved_ns or 0) - (before.time_saved_ns or 0)
    saved = f"{duration(won)} saved" if won else "times not recorded"
    return [
        f"{moved(percent(before.hit_rate, '–'), percent(after.hit_rate, '–'))}, "
        f"{moved(str(before.hits), str(after.hits))} of {before.lookups} lookups",
        f"{moved(percent(before.time_hit_rate, '–'), percent(after.time_hit_rate, '–'))}, "
        f"{saved if more else 'nothing saved'}",
        f"{more}, of {before.misses} misses",
        f"{after.undecided}, {'no details of the key, or guards that no log has' if after.undecided else ''}",
    ]


def told(toggle: Any) -> list[str]:
    """What stands below a toggle, besides its note."""
    place = "xpath=ancestor::div[contains(@class, 'cs-leaf') or contains(@class, 'cs-form')][1]"
    return [note.inner_text() for note in toggle.locator(place).locator("> .cs-told").all()]


def told_of(scope: Scope, name: str, *, warnings_only: bool = False) -> list[str]:
    """The same of the package, as `what_if` prints it."""
    found = scope.what_if(without=name)
    lines = [*warning_lines(found)]
    lines += [] if warnings_only else cause_lines(found, cause_titles(Chosen(scope), scope.explained.rows))
    return [" ".join(shortened(line.text, 300).split()) for line in lines]
