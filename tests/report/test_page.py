"""What the report says, as data: its sections answer the six questions, and large things are cut aloud."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope import table as grain
from cachescope.answers.time_spent import TimeSpent
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.report import blocks
from cachescope.report.blocks import (
    Block,
    Column,
    Diff,
    Drawing,
    Group,
    Numbers,
    Page,
    Section,
    Sorted,
    Table,
    WorkItems,
    diff_lines,
    shortened,
)
from cachescope.report.layout import Line
from cachescope.report.page.file import page_of
from cachescope.report.time_spent import time_blocks
from cachescope.report.what_if_forms import BY_CAUSE
from cachescope.scope import Scope
from tests.made import fx, run, scope_of
from tests.report.conftest import PageOf

pytestmark = pytest.mark.slow  # whole reports are written

SAMPLES = ("tour", "config_flip", "training", "dynamic_guards", "entry_truncated")


@pytest.fixture(scope="module")
def tour(page: PageOf) -> Page:
    return page("tour")


@pytest.fixture(scope="module")
def directory(page: PageOf) -> Page:
    return page("entry_truncated")


@pytest.fixture(scope="module")
def nothing() -> Page:
    tables = cachescope.read(cachescope.sample("config_flip")).tables
    return page_of(Scope(replace(tables, lookups=grain.Table(LookupRow, []), runs=grain.Table(RunRow, []))))


def section(page: Page, anchor: str) -> Section:
    (found,) = (one for one in page.sections if one.anchor == anchor)
    return found


def parts_of(parts: Iterable[Block]) -> list[Block]:
    return [i for one in parts for i in (one, *(parts_of(one.blocks) if isinstance(one, Group) else ()))]


def table(page: Page, anchor: str, name: str) -> Table:
    tables = [part for part in parts_of(section(page, anchor).blocks) if isinstance(part, Table)]
    (found,) = (part for part in tables if part.name.startswith(name))
    return found


def texts(parts: Iterable[Block]) -> str:
    said = []
    for part in parts_of(parts):
        match part:
            case Line():
                said.append(part.text)
            case Group():
                said.append(part.title)
    return "\n".join(said)


def column(found: Table, title: str) -> list[Any]:
    (at,) = (i for i, head in enumerate(found.heads) if head.title == title)
    return [cell.text if isinstance(cell := row[at], Sorted) else cell for row in found.rows]


def test_the_hit_rates_are_those_that_were_recorded(tour: Page) -> None:
    # 6 runs of 4 graphs in 2 caches: the second and fifth hit, the third in three of four.
    numbers = {label: (value, note) for part in section(tour, "hits").blocks if isinstance(part, Numbers)
               for label, value, note in part.cells}  # fmt: skip
    assert numbers["Hit rate by count"] == ("46 %", "22 of 48 lookups")
    assert numbers["By run"][0] == "2 of 6"
    assert column(table(tour, "hits", "Hit rates"), "Hits") == [0, 0, 4, 4, 3, 3, 0, 0, 4, 4, 0, 0]


def test_outcomes_that_are_not_known_have_a_column_where_there_are_any(tour: Page) -> None:
    some = page_of(scope_of(run(fx("fone", "hit", at=0)), run(fx("fone", "unknown", at=9))))
    assert column(table(some, "hits", "Hit rates by run and cache"), "Unknown") == [0, 1]
    assert "Unknown" not in [head.title for head in table(tour, "hits", "Hit rates by run and cache").heads]


def test_each_cause_is_explained_from_what_to_what(tour: Page) -> None:
    cards = [
        card
        for part in parts_of(section(tour, "causes").blocks)
        if isinstance(part, WorkItems)
        for card in part.cards
    ]
    titles = [card.title for card in cards]
    assert titles[:2] == ["epilogue_fusion: True -> False", "cpp_runtime_thread_count: 2 -> 1"]
    (changed,) = (part for part in cards[0].evidence if isinstance(part, Table))
    assert changed.rows == (("inductor_config[epilogue_fusion]", "True -> False"),)
    assert "run 3" in texts(cards[0].evidence) and "because of it, fxgraph" in texts(cards[0].evidence)
    (code,) = (part for part in cards[2].evidence if isinstance(part, Diff))
    assert any(line.startswith("-") and "relu" in line for line in code.lines)
    assert any(line.startswith("+") and "tanh" in line for line in code.lines)


def test_every_lookup_is_listed_and_every_miss_with_its_reason(tour: Page) -> None:
    found = table(tour, "why", "Lookups, those that missed first")
    assert len(found.rows) == 48 and all(column(found, "Why")[:26]) and not any(column(found, "Why")[26:])
    assert sum(str(why).endswith("follows another miss") for why in column(found, "Why")) == 13


def test_every_section_explains_itself_and_none_is_empty(directory: Page, tour: Page, nothing: Page) -> None:
    for page in (directory, tour, nothing):
        assert [one.anchor for one in page.sections] == [
            "causes", "hits", "why", "time", "spent", "compiles", "what-if", "machines", "devices", "entries", "read", "words",
        ]  # fmt: skip
        for one in page.sections:
            assert one.blocks and (one.sentence.endswith(".") or one.anchor == "causes"), one.anchor


def test_what_is_missing_is_said_with_what_to_do(tour: Page, nothing: Page) -> None:
    assert "TORCHINDUCTOR_CACHE_DIR" in texts(section(tour, "entries").blocks)
    assert "Read a cache directory as well" in texts(section(tour, "machines").blocks)
    assert "TORCH_TRACE" in texts(section(nothing, "hits").blocks)
    assert "No lookup was read" in texts(section(nothing, "why").blocks)


def test_a_directory_is_told_with_its_damage(directory: Page) -> None:
    files = table(directory, "entries", "Files, those")
    damage = "truncated; content hash differs from the name"
    remarks = column(files, "Remarks")
    # What has a remark comes first; of these the newest, which the checkout decides.
    at = column(files, "Entry").index(1)
    assert at < 2 and f"{damage}; can go: damaged: {damage}" in remarks[at]
    said = texts(section(directory, "entries").blocks)
    assert "1 damaged:" in said and "2 keys hold several entries:" in said
    found = column(table(directory, "machines", "Predictions"), "Would be found")
    assert found == ["no", "yes", "yes", "yes"]
    assert len(table(directory, "read", "What could not be read").rows) == 1
    drawn = [
        part.name for part in parts_of(section(directory, "entries").blocks) if isinstance(part, Drawing)
    ]
    names = ["Sizes by kind, folder and file", "When the files were written", "What refers to what"]
    assert drawn == names


@pytest.mark.parametrize("sample", SAMPLES)
def test_figures_come_with_the_rows_they_are_drawn_from(sample: str, page: PageOf) -> None:
    drawings = [i for one in page(sample).sections for i in parts_of(one.blocks) if isinstance(i, Drawing)]
    assert len(drawings) >= 5
    for drawing in drawings:
        assert drawing.draw(*drawing.rows).data, drawing.name


def test_long_tables_are_cut_and_it_is_said_where_the_rest_is() -> None:
    tables, misses = cachescope.read(cachescope.sample("tour")).tables, []
    for part in range(43):
        misses.append(tables.lookups.frame.assign(lookup=tables.lookups.frame["lookup"] + 48 * part))
    many = replace(tables, lookups=grain.Table(LookupRow, frame=pd.concat(misses, ignore_index=True)))
    found = table(page_of(Scope(many)), "why", "Lookups, those that missed first")
    assert len(found.rows) == 2000
    assert found.note.startswith("The first 2,000 of ") and found.note.endswith("scope.lookups has all.")
    # The costliest are kept.
    assert column(found, "Compile time")[0] == "10.9 s"


def test_cuts_say_what_they_cut() -> None:
    column = Column("Number", "number", abs)
    assert blocks.table("Numbers", [column], range(5), "numbers", "range(5)", most=5).note == ""
    lines, note = diff_lines("\n".join(["---", "+++", *("+x" for _ in range(200))]))
    assert (len(lines), note) == (120, "… and 80 more lines")
    assert (
        shortened("x" * 1_000_000, 300).endswith("… (1.0 MB)") and len(shortened("x" * 1_000_000, 300)) < 320
    )


def test_where_the_time_went_is_told_as_in_the_terminal(page: PageOf) -> None:
    spent = TimeSpent.of(cachescope.read(cachescope.sample("training")))
    *told, drawing = section(page("training"), "spent").blocks
    assert told == time_blocks(spent) and isinstance(drawing, Drawing)
    assert "the slowest of 4, run 0" in texts(section(page("training"), "spent").blocks)


def test_what_was_compiled_again_is_told_with_its_guard(recording: Any) -> None:
    scope = cachescope.read(recording("2.13.0", "recompiles") / "trace")
    made = page_of(scope)
    said = texts(section(made, "compiles").blocks)
    assert len(scope.recompiles) and all(f"guard: {guard}" in said for guard in scope.recompiles["guard"])
    drawings = [part for part in section(made, "spent").blocks if isinstance(part, Drawing)]
    assert len(drawings) == 1 and len(drawings[0].rows[0]) == len(scope.compiles)


def test_no_two_causes_of_what_if_have_the_same_name(recording: Any) -> None:
    scope = cachescope.read(recording("2.13.0", "edited_model"))
    found = column(table(page_of(scope), "what-if", BY_CAUSE), "Cause")
    assert scope.cause_savings()["fields"].tolist() == [("gm",), ("gm",)]
    assert len(set(found)) == 2 and all("gm" in name for name in found)


def test_without_a_trace_it_is_said_where_events_are(recording: Any) -> None:
    made = page_of(cachescope.read(recording("2.13.0", "training") / "text"))
    for anchor in ("spent", "compiles"):
        assert "TORCH_TRACE" in texts(section(made, anchor).blocks)
