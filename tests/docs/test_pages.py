"""The docs: whatever the program has is in its reference, and what leads from page to page arrives."""

import json
import posixpath
import re
import tomllib
from pathlib import Path
from typing import Any

import make_gallery
import make_pages
import pytest
from described import KINDS, anchor_of
from field_page import keys_of

import cachescope
from cachescope import figures
from cachescope.catalogue.facts import fields
from cachescope.cli import COMMANDS, main
from cachescope.figures import palette
from cachescope.frames.described import FRAMES
from cachescope.rows import columns_of
from cachescope.terms import OUTCOMES
from cachescope.verdict_kinds import KINDS as VERDICT_KINDS
from cachescope.verdict_kinds import VERDICTS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
WRITTEN = {
    path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8")
    for path in DOCS.rglob("*.md")
    if not {"made", "_build"} & set(path.relative_to(DOCS).parts)
}
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
LINK = re.compile(r"\]\((?!https?:)(?P<page>[^)#\s]*)(?:#(?P<heading>[^)\s]+))?\)")


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return {f"made/{name}": text for name, text in make_pages.pages().items()}


@pytest.fixture(scope="module")
def every_page(made: dict[str, str]) -> dict[str, str]:
    """All pages of the site; of the notebooks and the gallery that they are there."""
    notebooks = {f"made/tutorials/{path.name}": "" for path in (ROOT / "notebooks").iterdir()}
    gallery = {"made/gallery.md": "\n".join(f"## {name}" for name in make_gallery.EXAMPLES)}
    return WRITTEN | made | notebooks | gallery | {"contributing.md": CONTRIBUTING}


def test_every_column_of_every_frame_is_there(made: dict[str, str]) -> None:
    columns = made["made/reference/columns.md"]
    for frame, kind in FRAMES.items():
        page = made[f"made/reference/frames/{frame}.md"]
        for column in columns_of(kind):
            row = f"| {{column}}`{frame}.{column.name}` | {column.dtype} |"
            assert row + (f" {column.unit} |" if column.unit else "") in page, (frame, column.name)
            link = f"{{column-link}}`{column.name} <{frame}.{column.name}>`"
            row = f"| {link} | [{frame}](frames/{frame}.md) | {column.dtype} | {column.unit} |"
            assert row in columns, (frame, column.name)


def test_every_frame_is_in_the_list_and_in_the_sidebar(made: dict[str, str]) -> None:
    page = made["made/reference/frames/index.md"]
    assert page.split("```{toctree}")[1].split() == [":hidden:", *sorted(FRAMES), "```"]
    assert sorted(re.findall(r"^\| \[(\w+)\]\(\1\.md\) \|", page, re.MULTILINE)) == sorted(FRAMES)


def test_every_frame_is_got_as_its_page_says(made: dict[str, str]) -> None:
    scope = cachescope.read(cachescope.sample("config_flip"))
    for frame, kind in FRAMES.items():
        page = made[f"made/reference/frames/{frame}.md"]
        (asked,) = re.findall(r"(?:In Python: |Printed by )`([^`]+)`", page)
        if asked == f"scope.{frame}":
            assert list(getattr(scope, frame).columns) == [column.name for column in columns_of(kind)]
        elif asked.startswith(("scope.", "cachescope.")):
            of, name = asked.split("(")[0].split(".")
            assert callable(getattr(scope if of == "scope" else cachescope, name)), asked
    assert set(make_pages.ASKED_BY) <= set(FRAMES)


def test_every_word_that_describe_defines_is_there(made: dict[str, str]) -> None:
    page = made["made/reference/words.md"]
    for name in make_pages.WORDS:
        for word in cachescope.describe(name).iloc[:, 0]:
            assert f"| {{word}}`{name}.{word}` |" in page, word
    # What describe takes beside the frames, it says itself where it is asked for something else.
    with pytest.raises(cachescope.NotFoundError, match=", ".join(make_pages.WORDS[:-1])):
        cachescope.describe("no such frame")


def test_every_field_is_there(made: dict[str, str]) -> None:
    page = made["made/reference/fields.md"]
    for field in fields()["field"]:
        assert f"| {{field}}`{field}` |" in page, field


def test_what_is_linked_by_its_name_is_described_once(made: dict[str, str]) -> None:
    every = "\n".join(made.values()) + "".join(WRITTEN.values())
    for kind in KINDS:
        places = re.findall(rf"\{{{kind}\}}`([^`]*)`", every)
        assert len(set(places)) == len(places) > 0
        linked = {one.split("<")[-1].rstrip(">") for one in re.findall(rf"\{{{kind}-link\}}`([^`]*)`", every)}
        assert linked <= set(places)
    for name, page in made.items():
        anchors = [anchor_of(kind, i) for kind in KINDS for i in re.findall(rf"\{{{kind}\}}`([^`]*)`", page)]
        # A heading of the page has its anchor as well.
        assert len(set(anchors) | _anchors(page)) == len(anchors) + len(_anchors(page)), name


@pytest.mark.parametrize("sample", ["tour", "training", "other_torch"])
def test_fields_are_in_the_keys_that_their_page_says(sample: str) -> None:
    scope = cachescope.read(cachescope.sample(sample))
    seen: dict[str, set[str]] = {"aotautograd": set(), "fxgraph": set()}
    for cache, found in seen.items():
        lookup = int(scope.lookups["lookup"][scope.lookups["cache"] == cache].iloc[0])
        found |= set(scope.hash_details(lookup=lookup)["field"])
    aot, fx = seen["aotautograd"], seen["fxgraph"]
    held = {"both": aot & fx, "AOTAutograd": aot - fx, "FX graph": fx - aot}
    # Inputs of the two differ in number.
    told = {name: {f for f in found if not f.startswith("example_inputs[")} for name, found in held.items()}
    for name, found in told.items():
        assert {field for field in found if keys_of(field) != name} == set()
        assert found


def test_every_command_is_there_with_its_help(made: dict[str, str]) -> None:
    page = made["made/reference/commands.md"]
    block = r"^## (\S+)\n\n:::\{container\} help\n```text\n(.*?)```"
    parts = dict(re.findall(block, page, re.DOTALL | re.MULTILINE))
    assert list(parts) == list(COMMANDS)
    for command, text in parts.items():
        assert text.startswith(f"usage: cachescope {command} ")


def test_commands_take_the_options_that_their_page_names(made: dict[str, str]) -> None:
    page = made["made/reference/commands.md"]
    (named,) = re.findall(r"^Every .*take (.*?);", page, re.MULTILINE)
    options = set(re.findall(r"`(--[a-z-]+)", named))
    assert len(options) == 3
    for command, text in re.findall(r"^## (\S+)\n\n```text\n(.*?)```", page, re.DOTALL | re.MULTILINE):
        there = set(re.findall(r"--[a-z-]+", text))
        usual = {"--help", "--json"} | (set() if command == "capture" else {"--redact"})
        assert there >= usual, command
        reads = command not in ("capture", "record", "preflight", "cache", "demo", "audit", "verify", "fix")
        assert there & options == (options if reads else set()), command


def test_every_public_name_is_there(made: dict[str, str]) -> None:
    page = made["made/reference/names.md"] + made["made/reference/scope.md"]
    # Its frames are those of the classes that it is made of.
    assert ":: cachescope.Scope\n   :members:\n   :inherited-members: Recording\n" in page
    for name in cachescope.__all__:
        assert name == "__version__" or re.search(rf":: cachescope\.{name}\n", page), name
    for name in figures.__all__:
        assert f":: cachescope.figures.{name}\n" in page


def test_every_figure_is_in_the_gallery() -> None:
    assert set(make_gallery.EXAMPLES) == set(figures.__all__)
    for name in figures.__all__:
        assert f"figures.{name}(" in make_gallery.code_of(name).splitlines()[-1]


@pytest.mark.parametrize("name", figures.__all__)
def test_the_lines_of_the_gallery_draw_something_in_light_and_dark(name: str) -> None:
    drawn = make_gallery.drawn(name)
    assert drawn["data"]
    assert (["layout", "font", "color"], palette.DARK.text) in drawn["dark"]


def test_guards_that_are_shown_are_as_torch_writes_them() -> None:
    shown = [i for text in WRITTEN.values() for i in re.findall(r"`(cachescope\.holds\(\"[^`]*\))`", text)]
    assert shown
    for code in shown:
        assert eval(code, {"cachescope": cachescope}) is True, code


def test_the_lines_of_a_figure_of_ones_own_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", WRITTEN["how-to/own-figure.md"], re.DOTALL)
    for block in blocks:
        exec(block, names)
    assert (tmp_path / "timeline.html").stat().st_size > 1000 and len(blocks) == 3


def test_every_verdict_and_outcome_is_explained() -> None:
    page = WRITTEN["explanation/knows-and-infers.md"]
    when_and_evidence, kinds = page.split("## Kinds of an entry that was not available")
    # When, and what it rests on; and below what kinds it has.
    assert _in_first_column(when_and_evidence) == sorted([*VERDICTS, *VERDICTS])
    of_other_verdicts = kinds.split("## Kinds of the other verdicts")[1]
    assert _in_first_column(of_other_verdicts) == sorted(set(VERDICTS) - {"entry_unavailable"})
    # What to do about it.
    assert set(_in_first_column(WRITTEN["how-to/explain.md"])) == set(VERDICTS)
    assert all(f"`{outcome}`" in WRITTEN["reference/glossary.md"] for outcome in OUTCOMES)


def test_every_kind_of_an_entry_that_was_not_available_is_explained() -> None:
    kinds = WRITTEN["explanation/knows-and-infers.md"].split("## Kinds of an entry")[1].split("\n## ")[0]
    explained = set(re.findall(r"^\| `([a-z ]+)` \|", kinds, re.MULTILINE)) - {"kind"}
    assert explained == {kind for verdict, kind in VERDICT_KINDS if verdict == "entry_unavailable" and kind}


def test_every_notebook_is_listed_by_its_question() -> None:
    row = re.compile(r"^\| \[(.*?)\]\(\.\./made/tutorials/(.*?)\)", re.MULTILINE)
    listed = row.findall(WRITTEN["tutorials/index.md"])
    titles = {
        path.name: json.loads(path.read_text())["cells"][0]["source"][0].strip().removeprefix("# ")
        for path in (ROOT / "notebooks").glob("*.ipynb")
    }
    assert {name: title for title, name in listed} == titles


def test_links_lead_to_pages_and_headings(every_page: dict[str, str]) -> None:
    broken = []
    # What the root of the repository links to in docs/ lies beside its page on the site.
    contributing = {"contributing.md": CONTRIBUTING.replace("](docs/", "](")}
    made_pages = {name: text for name, text in every_page.items() if name.startswith("made/")}
    for name, text in (WRITTEN | made_pages | contributing).items():
        for link in LINK.finditer(text):
            folder = posixpath.dirname(name)
            page = posixpath.normpath(posixpath.join(folder, link["page"])) if link["page"] else name
            if (page not in every_page and not (DOCS / page).is_file()) or (
                link["heading"] and link["heading"] not in _anchors(every_page[page])
            ):
                broken.append((name, link[0]))
    assert broken == []


def test_every_page_is_in_a_sidebar() -> None:
    listed = set()
    for name, text in WRITTEN.items():
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL):
            for line in tree.split():
                if not line.startswith(":"):
                    listed.add(posixpath.normpath(posixpath.join(posixpath.dirname(name), line)))
    assert {name.removesuffix(".md") for name in WRITTEN} - {"index"} <= listed


def test_the_files_that_contributing_names_are_there() -> None:
    texts = "".join([CONTRIBUTING, WRITTEN["testing.md"], WRITTEN["explanation/costs.md"]])
    named = set(re.findall(r"`((?:cachescope|tests|docs|notebooks|binder)/[\w./-]+)`", texts))
    assert len(named) > 20
    # Each is named by its whole path.
    assert set(re.findall(r"`([\w./-]+\.(?:py|json))`", texts)) <= named
    # Made, or the reader's own.
    not_kept = {"docs/made", "docs/_build", "tests/fuzz-failures/"}
    assert [name for name in sorted(named - not_kept) if not (ROOT / name).exists()] == []


def test_the_changelog_has_this_version_and_what_comes() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert re.findall(r"^## (\S+)", changelog, re.MULTILINE)[:2] == ["Unreleased", cachescope.__version__]


def test_lowest_versions_are_the_bounds_that_are_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    optional = ("views", "remote", "redis", "dask")
    declared = [*project["dependencies"], *(bound for name in optional for bound in extras[name])]
    bounds = dict(one.partition(";")[0].split(">=") for one in declared)
    lines = (ROOT / "tests" / "lowest.txt").read_text().splitlines()
    lowest = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert set(lowest) == set(bounds)
    for name, version in lowest.items():
        # 8.1 and 8.1.0 are one version.
        assert re.fullmatch(re.escape(bounds[name]) + r"(\.0)*", version), name


def _in_first_column(text: str) -> list[str]:
    """The words that are rows of tables, in order."""
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", text, re.MULTILINE)
    return sorted(word for row in rows for word in re.findall(r"\w+", row))


def _anchors(text: str) -> set[str]:
    titles = re.findall(r"^#{1,3} (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.replace("`", "").lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("sample", ["tour", "four_ranks", "vllm"])
def test_the_picture_of_a_report_is_described_by_its_headline(
    sample: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the headline has changed, ``make notebooks`` draws the picture anew."""
    (said,) = re.findall(
        rf"!\[(.+?)\]\(\.\./pictures/report-{sample}\.png\)",
        "".join(page.read_text(encoding="utf-8") for page in (DOCS / "how-to").glob("*.md")),
    )
    assert main(["report", str(cachescope.sample(sample)), "--markdown"]) == 0
    title = capsys.readouterr().out.splitlines()[0].removeprefix("### ")
    assert said == re.sub(r"\\(.)", r"\1", title)
    assert (DOCS / "pictures" / f"report-{sample}.png").stat().st_size > 50_000
