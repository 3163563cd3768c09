"""The report as a file: one document, bounded, harmless, without who and where when asked, and written as a whole."""

import base64
import getpass
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope import figures
from cachescope.errors import CachescopeError
from cachescope.figures.picture import drawing_js
from cachescope.report.blocks import Drawing, Head, Page, Section, Table, hidden
from cachescope.report.layout import Line
from cachescope.report.page.file import document, drawings_of
from cachescope.report.redact import Identities, Redaction
from cachescope.scope import Scope
from tests.figures.frames import rows
from tests.report.conftest import PageOf, Written

pytestmark = pytest.mark.slow  # whole reports are written


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


@pytest.mark.parametrize("sample", ["tour", "config_flip", "training", "dynamic_guards", "entry_truncated"])
def test_samples_stay_small_and_hold_every_figure_and_one_drawing(sample: str, written: Written) -> None:
    text = written(sample).read_text()
    assert written(sample).stat().st_size < 1_500_000
    assert text.count(drawing_js()[:200]) == 1
    drawn = drawn_in(text)
    assert len(drawn) >= 5 and all(figure["data"] for figure in drawn)


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


@pytest.mark.parametrize("sample", ["tour", "entry_truncated"])
def test_a_figure_in_the_dark_is_the_dark_figure(sample: str, page: PageOf, written: Written) -> None:
    drawings = [drawing for section in page(sample).sections for drawing in drawings_of(section.blocks)]
    for drawing, found in zip(drawings, drawn_in(written(sample).read_text()), strict=True):
        assert found["dark"], drawing.name
        assert patched(found) == json.loads(drawing.draw(*drawing.rows, dark=True).to_json())


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
        Table("Boards", (Head("Board"),), ((uuid,), (f"'{path}'",))),
        Drawing("devices", figures.device_rates, (devices,)),
        Drawing("sizes", figures.entry_sizes, (entries,)),
    )
    page = Page("t", "h", "a", (Section("hits", "t", "s.", parts),))
    made = hidden(page, Redaction(Identities(paths=[path])))
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
