"""The page that one drops files on, in a fresh browser: it answers as the terminal does, goes on after what it cannot read, and asks no other site."""

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import make_try
import pytest

import cachescope
from cachescope.readers.logs.byte_source import zstd

pytestmark = pytest.mark.slow  # Python is loaded in a browser

ROOT = Path(make_try.HERE).parent
PATIENCE_MS = 120_000


class Site(ThreadingHTTPServer):
    """The page on loopback, and which hosts it was asked by."""

    def __init__(self, folder: Path) -> None:
        self.asked: set[str] = set()
        super().__init__(("127.0.0.1", 0), partial(Files, directory=str(folder)))
        self.home = f"127.0.0.1:{self.server_port}"
        Thread(target=self.serve_forever, daemon=True).start()


class Files(SimpleHTTPRequestHandler):
    """Files, in silence."""

    def do_GET(self) -> None:
        self.server.asked.add(self.headers["Host"])  # type: ignore[attr-defined]
        super().do_GET()

    def log_message(self, *told: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    said = make_try.write_try(folder := tmp_path_factory.mktemp("try"))
    if not (folder / "index.html").exists():
        pytest.skip(said)
    served = Site(folder)
    yield served
    served.shutdown()


@pytest.fixture(scope="module")
def page(browser: Any, site: Site) -> Iterator[Any]:
    """The page with Python loaded, of which no script may fail and which may ask for nothing beyond its site."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    errors, beyond = [], []
    page = context.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    home = (f"http://{site.home}/", f"blob:http://{site.home}/", "data:")
    context.on("request", lambda one: None if one.url.startswith(home) else beyond.append(one.url))
    opened(page, site)
    yield page
    assert (errors, beyond, site.asked) == ([], [], {site.home})
    context.close()


def opened(page: Any, site: Site, at: str = "") -> None:
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"http://{site.home}/{at}")
    page.wait_for_selector("body[data-ready]")


def press(page: Any, example: str) -> None:
    page.click(f"[data-example={example}]")
    page.get_by_text(f"Read: {example}.").wait_for()


def drop(page: Any, name: str, content: bytes) -> str:
    """What the page says once it has read a file."""
    page.set_input_files("#files", {"name": name, "mimeType": "", "buffer": content})
    page.locator("progress").wait_for(state="hidden")
    return str(page.inner_text("#status"))


def printed(*arguments: str) -> str:
    command = [sys.executable, "-m", "cachescope", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout


def log_of_tour() -> bytes:
    trace = next(cachescope.sample("tour").rglob("*.log.zst"))
    return zstd.decompress(trace.read_bytes())


@pytest.mark.parametrize("example", make_try.EXAMPLES)
def test_an_example_has_the_answer_of_the_terminal(page: Any, example: str) -> None:
    path = f"cachescope/samples/{example}"
    press(page, example)
    headline = page.inner_text("#answer h2 >> nth=0")
    assert len(headline) > 30 and " ".join(printed("explain", path).split()).startswith(headline)
    page.uncheck("#redact")
    with page.expect_download() as download:
        page.click("#json")
    page.check("#redact")
    made = Path(download.value.path()).read_text(encoding="utf-8")
    assert alike(made) == alike(printed("explain", path, "--json"))
    if example == "tour":
        assert made == printed("explain", path, "--json")


def alike(text: str) -> str:
    """Without the random name of the folder that an archive is unpacked to; a browser's files have times in milliseconds."""
    return re.sub(r"(\.\d{3})\d+(?=[+])", r"\1", re.sub(r"(?<=/cachescope-)\w{8}(?=/)", "", text))


def test_what_is_copied_is_redacted(page: Any) -> None:
    press(page, "tour")
    page.click("#markdown")
    page.get_by_text("Copied.").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    shown = printed("report", "cachescope/samples/tour", "--markdown", "--redact")
    assert [line.rstrip() for line in copied.splitlines()] == shown.splitlines()
    assert "record\\_programs.py" not in copied


def test_what_cannot_be_read_is_said_in_a_sentence_and_the_page_goes_on(page: Any) -> None:
    archive = ROOT / "cachescope" / "samples" / "vllm" / "recording.tar.xz"
    picture = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)) * 8
    given = {"cut.tar.xz": archive.read_bytes()[:9000], "empty.log": b"", "picture.png": picture}
    for name, content in given.items():
        said = drop(page, name, content)
        assert said.startswith(f"{name}: ") and "\n" not in said and "Error" not in said, said
        assert not page.is_visible("#result")
    assert drop(page, "rank_0.log", log_of_tour()) == "Read: rank_0.log."
    assert "compiled" in page.inner_text("#answer")


def test_what_is_too_large_is_refused_before_it_is_read(page: Any) -> None:
    page.evaluate("given([{ path: 'huge.log', file: { size: 3e9 } }])")
    said = page.inner_text("#status")
    assert "3,000 MB" in said and said.endswith("cachescope explain huge.log")


def test_texts_of_a_file_are_no_markup(page: Any) -> None:
    planted = b"<img src=x onerror=document.title='taken'>"
    said = drop(page, "rank_0.log", log_of_tour().replace(b"matmul_relu", planted))
    assert said == "Read: rank_0.log." and planted.decode() in page.text_content("#answer")
    assert page.locator("#answer :is(img, script)").count() == 0 and page.title().startswith("Try")


def test_neither_page_nor_worker_may_ask_another_site(page: Any, site: Site) -> None:
    (worker,) = page.workers
    other = f"http://localhost:{site.server_port}/index.html"
    asking = f"fetch('{other}', {{ mode: 'no-cors' }}).then(() => 'answered', (error) => String(error))"
    for place in (page, worker):
        assert "Failed to fetch" in place.evaluate(asking)
    assert site.asked == {site.home}


def test_the_second_visit_needs_no_network(browser: Any, site: Site) -> None:
    context = browser.new_context(viewport={"width": 600, "height": 900}, color_scheme="dark")
    opened(context.new_page(), site)
    context.set_offline(True)
    again = context.new_page()
    opened(again, site, "#tour")
    again.get_by_text("Read: tour.").wait_for()
    assert again.evaluate("document.documentElement.scrollWidth") == 600
    again.locator("#answer .cs-work-title a").first.click()
    again.wait_for_selector("#answer .fold[open]")
    context.close()


def test_without_a_service_worker_it_works_too(browser: Any, site: Site) -> None:
    context = browser.new_context(service_workers="block")
    opened(context.new_page(), site)
    context.close()


def test_without_npm_the_page_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert make_try.write_try(tmp_path / "try").endswith("npm is not installed")
    assert not (tmp_path / "try").exists()
