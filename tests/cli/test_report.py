"""``cachescope report``: one file, and one line that says where it is; as Markdown short, whole, and commanding nothing."""

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import cachescope
from cachescope.report.page.file import document, page_of
from cachescope.report.page.markdown import markdown
from tests.cli.conftest import Run
from tests.conftest import Recording
from tests.hostile_texts import hostile_scope


@pytest.fixture
def flip() -> Path:
    return Path(cachescope.sample("config_flip"))


@pytest.mark.slow
def test_it_writes_the_file_and_says_so(run: Run, flip: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.html"
    done = run("report", flip, "-o", target)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("1.6 s of the 15.4 s compiled after misses were avoidable")
    assert str(target) in done.out
    assert "epilogue_fusion" in target.read_text()


@pytest.mark.slow
def test_as_json_it_names_the_file_and_its_bytes(run: Run, flip: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.html"
    done = run("report", flip, "-o", target, "--json", "--redact")
    assert done.json == {"report": str(target), "bytes": target.stat().st_size}
    assert str(flip) not in target.read_text()


_TAGS = {
    "h3", "p", "sub", "ol", "li", "ul", "strong", "em", "pre", "code", "br", "details", "summary", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip


def test_the_answer_is_short_and_leads(run: Run) -> None:
    done = run("report", cachescope.sample("tour"), "--markdown")
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert len(lines) < 60
    assert "\n".join(lines[:8]).count("avoidable") >= 2
    said = "4.0 s of the 18.4 s compiled after misses were avoidable: 2.0 s by epilogue\\_fusion"
    assert lines[0].startswith(f"### {said}")
    shown = MarkdownIt("gfm-like", {"linkify": False}).render(done.out)
    # What is pasted stands alone.
    assert shown.count("<li>") == 3
    assert "<pre><code>torch._inductor.config.epilogue_fusion = True\n</code></pre>" in shown
    assert shown.count("<tr>") == 7 and "<details><summary>Hit rates by run and cache</summary>" in shown


def test_it_is_one_of_two_forms(run: Run) -> None:
    assert run("report", cachescope.sample("tour")).status == 2
    assert run("report", cachescope.sample("tour"), "--markdown", "-o", "out.html").status == 2


def test_what_a_log_holds_is_text() -> None:
    text = markdown(hostile_scope(), redact=False)
    tags = set(re.findall(r"<[^>]*>", MarkdownIt("gfm-like", {"linkify": False}).render(text)))
    assert {tag.strip("</>").split(" ")[0] for tag in tags} <= _TAGS


def test_it_is_redacted_like_the_page(run: Run) -> None:
    shown = run("report", cachescope.sample("tour"), "--markdown", "--redact").out
    assert "record\\_programs.py" not in shown and "epilogue\\_fusion" in shown


def test_a_compile_that_failed_leads(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "failed_codegen"))
    said = "failed (torch ran these functions without compiling them, or raised)"
    page = document(page_of(scope)).partition("</section>")[0]
    assert said in markdown(scope, redact=False) and said in page
    assert said in scope.explore().pane("Overview").numbers.value


@pytest.mark.parametrize("sample", ["whole_directory", "four_ranks", "vllm"])
def test_every_kind_of_recording_has_an_answer(sample: str) -> None:
    text = markdown(cachescope.read(cachescope.sample(sample)), redact=False)
    assert text.startswith("### ") and len(text.splitlines()) < 60
