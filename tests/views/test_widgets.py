"""The controls: tables in pages, figures made when they are seen, the tree of toggles. Callbacks run by setting traits."""

import json
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from cachescope.analysis.what_if.sensitivity import SafetyOfFields
from cachescope.figures.picture import Picture
from cachescope.report import blocks
from cachescope.report.blocks import Block, Column, Diff, Group, Numbers, Sorted
from cachescope.report.html import blocks_html
from cachescope.report.layout import Line
from cachescope.report.page.replay import toggle_groups
from cachescope.report.what_if_forms import NOTHING_ALONE
from cachescope.views import table
from cachescope.views.controls import markup
from cachescope.views.plot import Plot, Tabled
from cachescope.views.table import ListedRows, Table
from cachescope.views.what_if import Tree

HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m\u202e" + "A" * 1_000_000
COLUMNS = (Column("Name", "word", "name"), Column("Size", "number", "size"))


class File(NamedTuple):
    name: str
    size: object


def sized(count: int) -> ListedRows:
    return ListedRows(COLUMNS, [(i, File(f"row {i}", Sorted(f"{i} B", i))) for i in range(count)])


@pytest.mark.slow
def test_a_table_sends_one_page() -> None:
    shown = Table(sized(100_000), "rows", page_size=50)
    assert (shown.total, len(shown.rows), shown.ids[0]) == (100_000, 50, 0)
    shown.page = 1999
    assert (shown.ids[0], shown.ids[-1]) == (99_950, 99_999)


def test_a_table_sorts_by_values_and_goes_to_the_first_page() -> None:
    shown = Table(sized(120), "rows", page_size=50)
    shown.page = 2
    shown.sort = ["size", False]
    assert (shown.page, shown.ids[:2]) == (0, [119, 118])


def test_missing_values_come_last_either_way() -> None:
    rows = ListedRows(COLUMNS, [(0, File("a", None)), (1, File("b", 2)), (2, File("c", 1))])
    for ascending, expected in ((True, [2, 1, 0]), (False, [1, 2, 0])):
        rows.order("size", ascending)
        assert [row for row, _ in rows.page(0, 9)] == expected
    assert rows.page(2, 1) == [(0, ["a", "–"])]


def test_opening_the_same_row_twice_is_told_twice() -> None:
    opened: list[int] = []
    shown = Table(sized(3), "rows", on_choose=opened.append)
    shown.chosen = [2, 1]
    shown.chosen = [2, 2]
    assert opened == [2, 2]


def test_a_page_that_is_gone_becomes_the_last() -> None:
    shown = Table(sized(120), "rows", page_size=50)
    shown.page = 2
    shown.show(sized(10))
    assert (shown.page, shown.total, len(shown.ids)) == (0, 10, 10)


SCRIPTS = sorted(Path(table.__file__).parents[1].rglob("*.js"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_texts_reach_the_page_as_text_only(path: Path) -> None:
    # The name of SVG's elements is an address that nothing is fetched from.
    script = path.read_text().replace("http://www.w3.org/2000/svg", "")
    markup = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write")
    assert not any(unsafe in script for unsafe in (*markup, "eval(", "http:", "https:"))


def test_rows_without_a_value_come_last_whichever_way_they_are_sorted() -> None:
    sizes = {7: None, 8: 5, 9: 2000}
    size = Column("Size", "number", lambda row: row[1] and Sorted(f"{row[1]} B", row[1], "B"))
    columns = [Column("Name", "name", itemgetter(0)), size]
    rows = ListedRows(columns, [(row[0], row) for row in sizes.items()])
    assert rows.page(0, 2) == [(7, ["7", "–"]), (8, ["8", "5 B"])]
    for ascending, ordered in ((False, [9, 8, 7]), (True, [8, 9, 7])):
        rows.order("size", ascending)
        assert [row for row, _ in rows.page(0, 3)] == ordered
    names, values = rows.whole()
    assert names == ["Name", "Size (B)"] and next(iter(values)) == [8, 5]


def test_a_figure_is_made_when_somebody_looks() -> None:
    heights = iter((100, 200))
    plot = Plot(lambda: Picture({"height": next(heights)}), "a figure")
    plot.redraw()
    assert plot.figure == ""
    plot.seen = True
    assert json.loads(plot.figure)["layout"] == {"height": 100}
    plot.redraw()
    assert json.loads(plot.figure)["layout"] == {"height": 200}


def test_the_rows_of_a_figure_are_shown_when_they_are_asked_for() -> None:
    frames = [pd.DataFrame({"run": [0, 1], "time_taken_ns": [10**9, 1135 * 10**8], "hit_rate": [0.5, 1.0]})]
    tabled = Tabled(lambda: Picture({}), "a figure", lambda: frames[-1])
    assert tabled.table is None and len(tabled.children) == 2
    tabled.show.value = True
    assert tabled.table is not None and tabled.table.label == "a figure"
    assert tabled.table.rows == [["1", "0", "1.0 s", "50 %"], ["2", "1", "1 min 54 s", "100 %"]]
    assert [column["label"] for column in tabled.table.columns] == ["Row", "Run", "Time taken", "Hit rate"]
    frames.append(frames[0].iloc[:1])
    tabled.redraw()
    assert tabled.table.total == 1
    tabled.show.value = False
    assert tabled.table is None and len(tabled.children) == 2


def test_a_click_in_a_figure() -> None:
    clicks: list[dict[str, Any]] = []
    Plot(lambda: Picture({}), "a figure", clicks.append).clicked = {"data": 3}
    assert clicks == [3]


def test_a_figure_that_cannot_be_drawn_says_why() -> None:
    def fails() -> Picture:
        raise ValueError("no such colour")

    plot = Plot(fails, "a figure")
    plot.seen = True
    assert "could not be drawn: ValueError: no such colour" in plot.figure


def test_a_figure_is_drawn_by_what_comes_with_it() -> None:
    source = str(Plot(lambda: Picture({}), "a figure")._esm)
    assert "const drawFigure" in source and "Plotly" not in source and len(source) < 60_000


def test_the_tree_has_torchs_forms_and_what_varies_first() -> None:
    fields = ["gm", "inductor_config[a]", "inductor_config[b]", "torch_version", HOSTILE]
    savings = {"inductor_configs": "2 would hit", "gm": "1 would hit"}
    groups = toggle_groups(fields, ["inductor_config[b]", "gm"], SafetyOfFields([]), savings)
    by_name = {group.name: group for group in groups}
    names = [field.name for field in by_name["inductor_configs"].fields]
    assert names == ["inductor_config[b]", "inductor_config[a]"]
    assert by_name["inductor_configs"].note == "1 of 2 fields vary"
    assert by_name[""].fields[0].note == "keep it: it is what is compiled"
    assert "\x1b" not in by_name[""].fields[1].label
    assert by_name["inductor_configs"].saves == "2 would hit"
    assert by_name[""].fields[0].saves == "1 would hit"
    assert repr(Tree(groups)) == "Tree(0 off)"


def test_fields_of_the_program_that_save_nothing_are_idle() -> None:
    fields = [f"example_inputs[{at}]" for at in (10, 2, 0)] + ["cache_key_tag"]
    savings = dict.fromkeys(fields, NOTHING_ALONE) | {"example_inputs[0]": "1 would hit"}
    (group,) = (one for one in toggle_groups(fields, fields, SafetyOfFields([]), savings) if not one.is_form)
    assert [(one.name, one.idle) for one in group.fields] == [
        ("cache_key_tag", False), ("example_inputs[0]", False), ("example_inputs[2]", True),
        ("example_inputs[10]", True),
    ]  # fmt: skip


def test_many_fields_that_save_nothing_are_idle() -> None:
    """Two versions of torch differ in two hundred options."""
    fields = [f"inductor_config[option_{at}]" for at in range(12)]
    savings = {fields[3]: "1 would hit"}
    groups = toggle_groups(fields, fields, SafetyOfFields([]), savings)
    leaves = [leaf for group in groups for leaf in group.fields]
    assert [leaf.label for leaf in leaves if not leaf.idle] == ["option_3"]
    few = toggle_groups(fields[:4], fields[:4], SafetyOfFields([]), savings)
    assert not any(leaf.idle for group in few for leaf in group.fields)


def test_two_options_with_one_short_name_keep_their_whole_names() -> None:
    fields = ["fx_kwargs[cpp_wrapper]", "inductor_config[cpp_wrapper]", "inductor_config[debug]"]
    groups = toggle_groups(fields, fields, SafetyOfFields([]), {})
    assert sorted(leaf.label for group in groups for leaf in group.fields) == ["debug", *fields[:2]]


def test_no_field_no_tree() -> None:
    assert toggle_groups([], [], SafetyOfFields([]), {}) == []


BLOCKS = (
    Line(HOSTILE), Group("", HOSTILE, (Line(HOSTILE),)), Diff(HOSTILE, (f"+{HOSTILE}",)), Numbers(((HOSTILE,) * 3,)),
    blocks.Table(HOSTILE, (blocks.Head(HOSTILE), blocks.Head(HOSTILE, "long")), ((HOSTILE, HOSTILE),), HOSTILE),
)  # fmt: skip


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: type(block).__name__)
def test_blocks_are_escaped_and_cut(block: Block) -> None:
    shown = markup(block).value
    assert "<img" not in shown and "\x1b" not in shown and len(shown) < 25_000


def test_a_long_value_is_cut_with_more_on_demand() -> None:
    shown = blocks_html([blocks.Table("t", (blocks.Head("h", "long"),), ((HOSTILE,), ("True",)))])
    assert "more characters" in shown and "1.0\u00a0MB" in shown and "<code>True</code>" in shown
