"""The page that one drops files on, in a fresh browser: it answers as the terminal does, goes on after what it cannot read, and asks no other site."""

import io
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import partial
from html import unescape
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
PATIENCE_MS = 60_000


class Site(ThreadingHTTPServer):
    """The page on loopback, and which hosts it was asked by."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked = folder, set[str]()
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
    page.frame_locator("#report").locator("html[data-drawn]").wait_for()


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
def test_an_example_has_the_answers_of_the_command(page: Any, example: str, tmp_path: Path) -> None:
    path = f"cachescope/samples/{example}"
    press(page, example)
    printed("report", path, "-o", str(tmp_path / "report.html"))
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    page.uncheck("#redact")
    html, json = downloaded(page, "html"), downloaded(page, "json")
    page.check("#redact")
    assert alike(html) == alike(report)
    assert alike(json) == alike(printed("explain", path, "--json"))
    if example == "tour":
        assert (html, json) == (report, printed("explain", path, "--json"))
    shown = page.frame_locator("#report")
    assert f"<p class='headline'>{shown.locator('.headline').inner_text()}</p>" in unescape(report)
    shown.locator("figure.plot > div > svg").first.wait_for(state="attached")


def downloaded(page: Any, form: str) -> str:
    with page.expect_download() as download:
        page.click(f"#{form}")
    assert download.value.suggested_filename == f"cachescope.{form}"
    return Path(download.value.path()).read_text(encoding="utf-8")


def alike(text: str) -> str:
    """Without the folders where samples lie and the random name of one that an archive is unpacked to; a browser's files have times in milliseconds."""
    text = re.sub(r"(\.\d{3})\d+(?=[+])", r"\1", text.replace("<wbr>", ""))
    varies = r"(?<=data-order='\d{13})\d{6}(?=')|<script type='application/json' id='figures'>.*"
    text = re.sub(varies, "", text)
    text = re.sub(r"[\w./-]*(?=cachescope/samples/)", "", text)
    return re.sub(r"(?<=/cachescope-)\w{8}(?=/)", "", text)


def test_fields_can_be_left_out_in_the_frame(page: Any) -> None:
    press(page, "tour")
    shown = page.frame_locator("#report")
    shown.locator("nav a[href='#what-if']").click()
    shown.locator(".replay input[type=checkbox]:visible").first.uncheck()
    assert shown.locator(".replay [role=status] > p").inner_text().startswith("Without ")


def test_what_is_copied_or_kept_is_redacted(page: Any) -> None:
    press(page, "tour")
    page.click("#markdown")
    page.get_by_text("Copied.").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    shown = printed("report", "cachescope/samples/tour", "--markdown", "--redact")
    assert [line.rstrip() for line in copied.splitlines()] == shown.splitlines()
    assert "record\\_programs.py" not in copied and "record_programs.py" not in downloaded(page, "html")


def test_what_cannot_be_read_is_said_in_a_sentence_and_the_page_goes_on(page: Any) -> None:
    archive = ROOT / "cachescope" / "samples" / "vllm" / "recording.tar.xz"
    picture = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)) * 8
    with zipfile.ZipFile(bomb := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("zeros.log", bytes(60_000_000))
    given = {
        "cut.tar.xz": archive.read_bytes()[:9000],
        "empty.log": b"",
        "picture.png": picture,
        "bomb.zip": bomb.getvalue(),
    }
    for name, content in given.items():
        said = drop(page, name, content)
        assert said.startswith(f"{name}: ") and "\n" not in said and "Error" not in said, said
        assert not page.is_visible("#result")
    assert drop(page, "rank_0.log", log_of_tour()) == "Read: rank_0.log."
    assert "compiled" in page.frame_locator("#report").locator("main").inner_text()
    # Beside what can be read it is said too.
    both = {"picture.png": picture, "rank_0.log": log_of_tour()}
    page.set_input_files(
        "#files", [{"name": name, "mimeType": "", "buffer": content} for name, content in both.items()]
    )
    page.get_by_text("picture.png: this file holds no trace").wait_for()
    assert page.is_visible("#report")


def test_what_is_too_large_is_refused_before_it_is_read(page: Any) -> None:
    page.evaluate("given([{ path: 'huge.log', file: { size: 3e9 } }])")
    said = page.inner_text("#status")
    assert "3,000 MB" in said and said.endswith("cachescope explain huge.log")


def test_files_and_folders_can_be_dropped(page: Any, tmp_path: Path) -> None:
    (tmp_path / "runs" / "deep").mkdir(parents=True)
    for at, folder in enumerate(("runs", "runs/deep", ".")):
        (tmp_path / folder / f"rank_{at}.log").write_bytes(log_of_tour())
    devtools = page.context.new_cdp_session(page)
    area = page.locator("#drop").bounding_box()
    for given, said in ((["runs"], "Read: runs."), (["runs", "rank_2.log"], "Read: runs, rank_2.log.")):
        data = {"items": [], "files": [str(tmp_path / one) for one in given], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            at = {"x": area["x"] + 5, "y": area["y"] + 5}
            devtools.send("Input.dispatchDragEvent", {"type": kind, "data": data, **at})
        page.get_by_text(said).wait_for()
        sources = json.loads(downloaded_plain(page))["runs"]
        assert len(sources) == len(given) + 1


def downloaded_plain(page: Any) -> str:
    page.uncheck("#redact")
    text = downloaded(page, "json")
    page.check("#redact")
    return text


def test_texts_of_a_file_are_no_markup(page: Any) -> None:
    planted = b"<img src=x onerror=document.title='taken'>"
    said = drop(page, "rank_0.log", log_of_tour().replace(b"matmul_relu", planted))
    shown = page.frame_locator("#report")
    assert said == "Read: rank_0.log." and planted.decode() in shown.locator("main").text_content()
    assert shown.locator(":is(img, script[src])").count() == 0
    assert not shown.locator("html").evaluate("document.title").startswith("taken")


def test_neither_page_nor_worker_nor_report_may_ask_another_site(browser: Any, site: Site) -> None:
    context = browser.new_context()
    opened(page := context.new_page(), site)
    press(page, "tour")
    (worker,) = page.workers
    (frame,) = page.main_frame.child_frames
    other = f"http://localhost:{site.server_port}/index.html"
    asking = f"fetch('{other}', {{ mode: 'no-cors' }}).then(() => 'answered', (error) => String(error))"
    for place in (page, worker, frame):
        assert "Failed to fetch" in place.evaluate(asking)
    # Nor by a picture or by going there; and the report has no access to the page.
    loading = "new Promise((done) => {{ const one = new Image(); one.onload = one.onerror = (event) => done(event.type); one.src = '{}'; }})"
    assert frame.evaluate(loading.format(other)) == "error"
    assert "SecurityError" in frame.evaluate(
        "(() => { try { return parent.document.title } catch (error) { return error.name } })()"
    )
    frame.evaluate(f"location.href = '{other}'")
    page.wait_for_timeout(300)
    assert site.asked == {site.home}
    context.close()


def test_an_address_opens_an_example_at_a_cause(browser: Any, site: Site, page: Any) -> None:
    press(page, "tour")
    links = page.frame_locator("#report").locator(".cs-work-title a")
    first, second = (links.nth(at).get_attribute("href") for at in range(2))
    context = browser.new_context(viewport={"width": 600, "height": 900})
    at_cause = context.new_page()
    opened(at_cause, site, f"#tour/{second[1:]}")
    shown = at_cause.frame_locator("#report")
    shown.locator(
        f"{second} details[open], details[open]{second}, details[open]:has({second})"
    ).first.wait_for()
    assert shown.locator(second).evaluate("(one) => one.getBoundingClientRect().top") < 900
    # And from there another one.
    at_cause.evaluate(f"location.hash = 'tour/{first[1:]}'")
    shown.locator(f"{first} details[open], details[open]{first}, details[open]:has({first})").first.wait_for()
    context.close()


def test_the_second_visit_needs_no_network(browser: Any, site: Site) -> None:
    context = browser.new_context(viewport={"width": 600, "height": 900}, color_scheme="dark")
    opened(context.new_page(), site)
    context.set_offline(True)
    again = context.new_page()
    opened(again, site, "#tour")
    again.get_by_text("Read: tour.").wait_for()
    assert again.evaluate("document.documentElement.scrollWidth") == 600
    shown = again.frame_locator("#report")
    assert shown.locator("html").evaluate("(one) => one.scrollWidth") <= 600
    shown.locator(".cs-work-title a").first.click()
    shown.locator(".fold[open]").first.wait_for()
    context.close()


def test_it_is_no_larger_than_twelve_megabytes(site: Site) -> None:
    assert sum(one.stat().st_size for one in site.folder.iterdir()) < 12_000_000


def test_without_a_service_worker_it_works_too(browser: Any, site: Site) -> None:
    context = browser.new_context(service_workers="block")
    opened(context.new_page(), site)
    context.close()


def test_without_npm_the_page_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert make_try.write_try(tmp_path / "try").endswith("npm is not installed")
    assert not (tmp_path / "try").exists()
