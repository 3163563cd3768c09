"""What the report says, as data: its sections answer the six questions, and large things are cut aloud. And its file: one document, bounded, harmless, without who and where when asked, and written as a whole."""

import base64
import getpass
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope import table as grain
from cachescope.answers.time_spent import TimeSpent
from cachescope.errors import CachescopeError
from cachescope.figures import palette
from cachescope.figures.datasheets import device_rates
from cachescope.figures.entry_files import entry_sizes
from cachescope.figures.picture import as_plotly, drawing_js
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.report import blocks
from cachescope.report.layout import Line
from cachescope.report.page.file import document, page_of
from cachescope.report.redact import Identities, Redaction
from cachescope.report.time_spent import time_blocks
from cachescope.report.what_if_forms import BY_CAUSE
from cachescope.scope import Scope
from tests.figures.frames import rows
from tests.made import fx, run, scope_of
from tests.report.conftest import PageOf, Written

pytestmark = pytest.mark.slow  # whole reports are written

# And how many figures each has at least.
SAMPLES = {"tour": 9, "config_flip": 6, "training": 6, "dynamic_guards": 5, "entry_truncated": 8}


@pytest.fixture(scope="module")
def tour(page: PageOf) -> blocks.Page:
    return page("tour")


@pytest.fixture(scope="module")
def directory(page: PageOf) -> blocks.Page:
    return page("entry_truncated")


@pytest.fixture(scope="module")
def nothing() -> blocks.Page:
    tables = cachescope.read(cachescope.sample("config_flip")).tables
    return page_of(Scope(replace(tables, lookups=grain.Table(LookupRow, []), runs=grain.Table(RunRow, []))))


def section(page: blocks.Page, anchor: str) -> blocks.Section:
    (found,) = (one for one in page.sections if one.anchor == anchor)
    return found


def parts_of(parts: Iterable[blocks.Block]) -> list[blocks.Block]:
    below = ((one, parts_of(one.blocks) if isinstance(one, blocks.Group) else ()) for one in parts)
    return [found for one, inner in below for found in (one, *inner)]


def table(page: blocks.Page, anchor: str, name: str) -> blocks.Table:
    tables = [part for part in parts_of(section(page, anchor).blocks) if isinstance(part, blocks.Table)]
    (found,) = (part for part in tables if part.name.startswith(name))
    return found


def texts(parts: Iterable[blocks.Block]) -> str:
    said = []
    for part in parts_of(parts):
        match part:
            case Line():
                said.append(part.text)
            case blocks.Group():
                said.append(part.title)
    return "\n".join(said)


def column(found: blocks.Table, title: str) -> list[Any]:
    (at,) = (i for i, head in enumerate(found.heads) if head.title == title)
    return [cell.text if isinstance(cell := row[at], blocks.Sorted) else cell for row in found.rows]


def test_the_hit_rates_are_those_that_were_recorded(tour: blocks.Page) -> None:
    # 6 runs of 4 graphs in 2 caches: the second and fifth hit, the third in three of four.
    numbers = {label: (value, note) for part in section(tour, "hits").blocks if isinstance(part, blocks.Numbers)
               for label, value, note in part.cells}  # fmt: skip
    assert numbers["Hit rate by count"] == ("46 %", "22 of 48 lookups")
    assert numbers["By run"][0] == "2 of 6"
    assert column(table(tour, "hits", "Hit rates"), "Hits") == [0, 0, 4, 4, 3, 3, 0, 0, 4, 4, 0, 0]


def test_outcomes_that_are_not_known_have_a_column_where_there_are_any(tour: blocks.Page) -> None:
    some = page_of(scope_of(run(fx("fone", "hit", at=0)), run(fx("fone", "unknown", at=9))))
    assert column(table(some, "hits", "Hit rates by run and cache"), "Unknown") == [0, 1]
    assert "Unknown" not in [head.title for head in table(tour, "hits", "Hit rates by run and cache").heads]


def test_each_cause_is_explained_from_what_to_what(tour: blocks.Page) -> None:
    works = [one for one in parts_of(section(tour, "causes").blocks) if isinstance(one, blocks.WorkItems)]
    cards = [card for part in works for card in part.cards]
    titles = [card.title for card in cards]
    assert titles[:2] == ["epilogue_fusion: True -> False", "cpp_runtime_thread_count: 2 -> 1"]
    (changed,) = (part for part in cards[0].evidence if isinstance(part, blocks.Table))
    assert changed.rows == (("inductor_config[epilogue_fusion]", "True -> False"),)
    assert "run 3" in texts(cards[0].evidence) and "because of it, fxgraph" in texts(cards[0].evidence)
    (code,) = (part for part in cards[2].evidence if isinstance(part, blocks.Diff))
    assert any(line.startswith("-") and "relu" in line for line in code.lines)
    assert any(line.startswith("+") and "tanh" in line for line in code.lines)


def test_every_lookup_is_listed_and_every_miss_with_its_reason(tour: blocks.Page) -> None:
    found = table(tour, "why", "Lookups, those that missed first")
    assert len(found.rows) == 48 and all(column(found, "Why")[:26]) and not any(column(found, "Why")[26:])
    assert sum(str(why).endswith("follows another miss") for why in column(found, "Why")) == 13


_OF_LOOKUPS = ["hits", "why", "time", "what-if"]


def test_every_section_explains_itself_and_none_is_empty(
    directory: blocks.Page, tour: blocks.Page, nothing: blocks.Page
) -> None:
    anchors = [
        "causes", "hits", "why", "time", "spent", "compiles", "what-if", "machines", "devices", "entries", "read", "words",
    ]  # fmt: skip
    assert [one.anchor for one in tour.sections] == anchors
    without = [anchor for anchor in anchors if anchor not in _OF_LOOKUPS]
    assert [one.anchor for one in nothing.sections] == without
    for page in (directory, tour, nothing):
        for one in page.sections:
            assert one.blocks and (one.sentence.endswith(".") or one.anchor == "causes"), one.anchor


def test_what_is_missing_is_said_with_what_to_do(tour: blocks.Page, nothing: blocks.Page) -> None:
    assert "TORCHINDUCTOR_CACHE_DIR" in texts(section(tour, "entries").blocks)
    assert "Read a cache directory as well" in texts(section(tour, "machines").blocks)
    assert "TORCH_TRACE" in nothing.headline
    # Where nothing was looked up, the headline says it alone.
    assert nothing.headline.startswith("no lookup") and "no lookup" not in nothing.about
    assert tour.about.startswith("48 lookups in 6 runs: ")


def test_a_directory_is_told_with_its_damage(directory: blocks.Page) -> None:
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
    shown = parts_of(section(directory, "entries").blocks)
    drawn = [one.name for one in shown if isinstance(one, blocks.Drawing)]
    names = ["Sizes by kind, folder and file", "When the files were written", "What refers to what"]
    assert drawn == names


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
    column = blocks.Column("Number", "number", abs)
    assert blocks.table("Numbers", [column], range(5), "numbers", "range(5)", most=5).note == ""
    lines, note = blocks.diff_lines("\n".join(["---", "+++", *("+x" for _ in range(200))]))
    assert (len(lines), note) == (120, "… and 80 more lines")
    assert blocks.shortened("x" * 1_000_000, 300).endswith("… (1.0 MB)")
    assert len(blocks.shortened("x" * 1_000_000, 300)) < 320


def test_where_the_time_went_is_told_as_in_the_terminal(page: PageOf) -> None:
    spent = TimeSpent.of(cachescope.read(cachescope.sample("training")))
    *told, drawing = section(page("training"), "spent").blocks
    assert told == time_blocks(spent) and isinstance(drawing, blocks.Drawing)
    assert "the slowest of 4, run 0" in texts(section(page("training"), "spent").blocks)


def test_what_was_compiled_again_is_told_with_its_guard(recording: Any) -> None:
    scope = cachescope.read(recording("2.13.0", "recompiles") / "trace")
    made = page_of(scope)
    said = texts(section(made, "compiles").blocks)
    assert len(scope.recompiles) and all(f"guard: {guard}" in said for guard in scope.recompiles["guard"])
    drawings = [part for part in section(made, "spent").blocks if isinstance(part, blocks.Drawing)]
    assert len(drawings) == 1 and len(drawings[0].rows[0]) == len(scope.compiles)


def test_no_two_causes_of_what_if_have_the_same_name(recording: Any) -> None:
    scope = cachescope.read(recording("2.13.0", "edited_model"))
    found = column(table(page_of(scope), "what-if", BY_CAUSE), "Cause")
    assert scope.cause_savings()["fields"].tolist() == [("gm",), ("gm",)]
    assert sorted(found) == ["code of <lambda>", "code of Ranker.forward"]


def test_without_a_trace_it_is_said_where_events_are(recording: Any) -> None:
    made = page_of(cachescope.read(recording("2.13.0", "training") / "text"))
    for anchor in ("spent", "compiles"):
        assert "TORCH_TRACE" in texts(section(made, anchor).blocks)


class Read(HTMLParser):
    """The tags, scripts, data and policy of a document, and whether it is balanced."""

    VOID = ("meta", "br", "wbr", "input", "img", "link")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.data: list[str] = []
        self.scripts: list[str] = []
        self.ids: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag == "script":
            self._is_data = ("type", "application/json") in attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            (self.data if self._is_data else self.scripts).append(data)


def without_drawing(text: str) -> str:
    return text.replace(drawing_js(), "")


def drawn_in(text: str) -> list[dict[str, Any]]:
    (found,) = re.findall(r"id='figures'>(.*?)</script>", text, re.DOTALL)
    figures_there: list[dict[str, Any]] = json.loads(found)
    return figures_there


@pytest.fixture(scope="module")
def truncated(scope_of: Callable[[str], Scope]) -> Scope:
    return scope_of("entry_truncated")


@pytest.mark.parametrize("sample", SAMPLES)
def test_samples_stay_small_and_hold_every_figure_and_one_drawing(sample: str, written: Written) -> None:
    text = written(sample).read_text()
    assert written(sample).stat().st_size < 1_500_000
    assert text.count(drawing_js()[:200]) == 1
    drawn = drawn_in(text)
    assert len(drawn) >= SAMPLES[sample] and all(figure["data"] for figure in drawn)


def test_it_loads_nothing_and_runs_only_its_own_script(written: Written) -> None:
    read = Read(written("entry_truncated").read_text())
    assert read.open == []
    assert {"link", "iframe", "object", "embed", "img", "base", "form"} & set(read.tags) == set()
    assert "src" not in dict(read.attributes)
    assert all(value.startswith("#") for name, value in read.attributes if name == "href" and value)
    assert not [name for name, _ in read.attributes if name.startswith("on")]
    (policy,) = (to for name, to in read.attributes if name == "content" and to and "default-src" in to)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'" and "connect-src" not in rules
    (run,) = read.scripts
    digest = base64.b64encode(hashlib.sha256(run.encode()).digest()).decode()
    assert rules["script-src"] == f"'sha256-{digest}'"
    assert all(json.loads(data) is not None for data in read.data)


def test_every_link_of_the_contents_has_its_heading(written: Written) -> None:
    read = Read(written("entry_truncated").read_text())
    assert len(read.ids) == len(set(read.ids))
    links = {value[1:] for name, value in read.attributes if name == "href" and value}
    assert links <= set(read.ids) and len(links) > 10


def patched(figure: dict[str, Any]) -> dict[str, Any]:
    copy = json.loads(json.dumps(figure))
    for path, value in figure["dark"]:
        at = copy
        for name in path[:-1]:
            at = at[name]
        at[path[-1]] = value
    return {"data": copy["data"], "layout": copy["layout"]}


def drawings_of(parts: Iterable[Any]) -> Iterator[blocks.Drawing]:
    """The figures in the order of the page."""
    for block in parts:
        if isinstance(block, blocks.Drawing):
            yield block
        elif isinstance(block, blocks.WorkItems):
            yield from (one for card in block.cards for one in drawings_of(card.evidence or ()))
        else:
            yield from drawings_of(getattr(block, "blocks", ()))


@pytest.mark.parametrize("sample", ["tour", "entry_truncated"])
def test_a_figure_comes_with_its_colours_in_the_dark(sample: str, page: PageOf, written: Written) -> None:
    drawings = [drawing for section in page(sample).sections for drawing in drawings_of(section.blocks)]
    for drawing, found in zip(drawings, drawn_in(written(sample).read_text()), strict=True):
        dark = as_plotly(drawing.draw)(*drawing.rows, dark=True)
        assert found["layout"]["font"]["color"] == palette.LIGHT.text
        assert patched(found)["layout"]["font"]["color"] == palette.DARK.text == dark.layout.font.color
        assert patched(found)["data"] == json.loads(dark.to_json())["data"], drawing.name


@pytest.mark.parametrize("sample", ["tour", "entry_truncated"])
def test_redacted_it_tells_neither_who_nor_where(
    sample: str, scope_of: Callable[[str], Scope], written: Written, tmp_path: Path
) -> None:
    scope = scope_of(sample)
    known = [*scope.runs["source"], *scope.runs["cache_dir"].dropna()]
    known += [*scope.entries["path"], *scope.entries["root"]]
    places = {str(cachescope.sample(sample)), str(Path.cwd()), "cachescope-recording"}
    secrets = {str(text) for text in known} | places
    # Where a name may wrap is no part of it.
    plain = without_drawing(written(sample).read_text()).replace("<wbr>", "")
    assert all(scope.runs["source"].map(os.path.basename).map(plain.__contains__))
    rest = without_drawing(scope.report(tmp_path / "hidden.html", redact=True).read_text())
    rest = rest.replace("<wbr>", "")
    assert [secret for secret in secrets if secret in rest] == []
    # The first stand-in may be in a figure, where it is written otherwise.
    assert re.search(r"<code>&lt;path-\d+&gt;", rest)
    if (user := getpass.getuser()) not in ("root", "user", "runner"):
        assert user not in rest


def test_one_stand_in_for_one_thing_in_tables_and_figures() -> None:
    uuid, path = "GPU-0123abcd-4567-89ab-cdef-0123456789ab", "/srv/secret place/" + "deep/" * 30 + "run.log"
    devices = rows("devices", [{"device": 0, "name": f"board {uuid}", "type": "cuda", "uuid": uuid,
                                 "pci": "0000:3b:00.0", "properties": "{}"}])  # fmt: skip
    entries = rows("entries", [{"entry": 0, "cache": "fxgraph", "path": path, "root": "/srv/secret place",
                                 "size_bytes": 9, "status": "ok"}])  # fmt: skip
    parts = (
        Line(f"read '{path}' of {uuid}"),
        blocks.Table("Boards", (blocks.Head("Board"),), ((uuid,), (f"'{path}'",))),
        blocks.Drawing("devices", device_rates, (devices,)),
        blocks.Drawing("sizes", entry_sizes, (entries,)),
    )
    page = blocks.Page("t", "h", "a", (blocks.Section("hits", "t", "s.", parts),))
    made = blocks.hidden(page, Redaction(Identities(paths=[path])))
    text = without_drawing(document(made))
    assert uuid not in text and "secret" not in text and "deep/" not in text and "3b:00" not in text
    reported = made.sections[0].blocks[0]
    assert isinstance(reported, Line) and reported.text == "read '<path-1>' of <uuid-1>"
    assert made.sections[0].blocks[1].rows[0] == ("<uuid-1>",)  # type: ignore[union-attr]
    assert page.sections[0].blocks[0] == parts[0]


def test_a_file_is_replaced_and_nothing_else_is_left(truncated: Scope, tmp_path: Path) -> None:
    target = tmp_path / "out.html"
    target.write_text("older")
    assert truncated.report(target) == target and target.read_text().startswith("<!DOCTYPE html>")
    assert [path.name for path in tmp_path.iterdir()] == ["out.html"]
    assert target.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_what_cannot_be_written_is_said_in_one_line(truncated: Scope, tmp_path: Path) -> None:
    for target, why in (
        (tmp_path, "is a directory"),
        (tmp_path / "none" / "out.html", "there is no directory"),
        (Path(truncated.entries["root"].iloc[0]) / "out.html", "belongs to what was read"),
        (Path(truncated.runs["source"].iloc[0]), "belongs to what was read"),
    ):
        before = target.read_bytes() if target.is_file() else None
        with pytest.raises(CachescopeError, match=re.escape(why)) as caught:
            truncated.report(target)
        assert "\n" not in str(caught.value)
        assert (target.read_bytes() if target.is_file() else None) == before
    assert list(tmp_path.iterdir()) == []


def test_it_needs_no_plotly(truncated: Scope, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    assert '"type":"heatmap"' in truncated.report(tmp_path / "out.html").read_text(encoding="utf-8")
