"""Replays of the report in a browser without a page around them, beside those of the package."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from cachescope.analysis.what_if.codes import ReplayCodes
from cachescope.columns import rows_of
from cachescope.frames.replay_rows import WhatIfRate
from cachescope.report.page.replay import codes_object
from cachescope.scope import Scope

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
    codes = ReplayCodes.of(scope.replayed)
    names = [form.name for form in codes.forms]
    chosen = [
        (
            [codes.fields.index(name) for name in without if name not in names],
            [names.index(name) for name in without if name in names],
        )
        for without in wanted
    ]
    text = json.dumps(codes_object(codes, scope.replayed.before))
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
        changed += one["hits"] > scope.replayed.before.hits or one["undecided"] > 0
    return changed
