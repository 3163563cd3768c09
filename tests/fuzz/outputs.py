"""What commands say of an input: none ends in a traceback, nothing in it acts, and of what is planted nothing comes out under --redact."""

import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path

from cachescope.cli import main
from cachescope.figures.picture import drawing_js
from tests.output_gates import acting_in, strict_json
from tests.redaction.planted import Planted, leaks

SECRETS = (
    "/home/zquill/vanterra/run.log", "C:\\Users\\zquill\\vanterra", "zquill@vanterra.com", "gpu-kestrel.prod.example.com:8080", "kestrel",
    "10.1.22.133:29500", "fe80::1ff:fe23:4567:890a", "ghp_" + "a1B2" * 9, "password=hunter2zq", "--token hunter2zq", "GPU-0123abcd-4567-89ab-cdef-0123456789ab",
    "triton_poi_fused_zquill_0", "L['self'].zquill", "USER=zquill", "s3://zquill/vanterra", "redis://:hunter2zq@kestrel:6379/0",
)  # fmt: skip
MARKUP = (
    "<zqtag zqattr=1>", "'\" zqattr=1 x='", "</script><zqtag>", "</style><zqtag>", "--><zqtag>", "]]><zqtag>", "</textarea><zqtag zqattr>", "&#60;zqtag&#62;",
    "a\u202eb\u2066c", "\x1b[2J\x1b]0;t\x07", "\x9b31m", "a\u2028::error::b", "\n::set-output name=x::y", "##vso[task.complete]", "\r##[group]x", "a\x00\x7f\x85\u200b",
)  # fmt: skip
PLANTED = (*SECRETS, *MARKUP)
_CORES = Planted("", (
    "zquill", "vanterra", "kestrel", "10.1.22.133", "fe80::1ff:fe23:4567:890a", "ghp_" + "a1b2" * 9, "hunter2zq", "0123abcd-4567-89ab-cdef-0123456789ab",
))  # fmt: skip
_MOST_OF_A_LEAK = 2_000_000


class _Tags(HTMLParser):
    """Notes tags and attributes that a text brought."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attrs}
        if "zqtag" in tag or any("zqattr" in name or name.startswith("on") for name in names):
            self.wrong.append(self.get_starttag_text() or tag)


@contextmanager
def _said() -> Iterator[list[str]]:
    """All that is written to the two streams, when it is over."""
    streams, said = (sys.stdout, sys.stderr), [""]
    written = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    sys.stdout = sys.stderr = written
    try:
        yield said
    finally:
        sys.stdout, sys.stderr = streams
        said[0] = written.buffer.getvalue().decode()  # type: ignore[attr-defined]


def run(*words: object) -> tuple[int, str]:
    """The status of a command, and what it says, in which nothing acts."""
    with _said() as said:
        status = main([*map(str, words)])
    # A line of JSON may be as long as what it holds.
    acts = [one for one in acting_in(said[0]) if "--json" not in words or not one.startswith("a line of")]
    assert not acts, f"{words[0]}: {acts[:3]}"
    assert status in (0, 3) or said[0].strip(), f"{words[0]}: {status} without a word"
    return status, said[0]


def check_outputs(path: Path, folder: Path, which: int) -> None:
    """One of the commands, as numbers choose, as it is and hidden."""
    page = folder / "page.html"
    forms: tuple[tuple[object, ...], ...] = (
        ("explain", path), ("explain", path, "--json"), ("report", path, "-o", page),
        ("report", path, "--markdown"), ("entries", path), ("entries", path, "--json"), ("time", path),
        ("contexts", path, "--json"), ("audit", path), ("compiles", path, "--json"),
    )  # fmt: skip
    words = forms[which % len(forms)]
    for hides in ((), ("--redact",)):
        page.unlink(missing_ok=True)
        status, said = run(*words, *hides)
        if "--json" in words and status in (0, 3):
            # Problems are told beside it.
            strict_json(said[said.index("{") : said.rindex("}") + 1])
        written = page.read_text() if page.exists() else ""
        if written:
            written = written.replace(drawing_js(), "")
            assert not (wrong := _Tags(written).wrong), f"markup of a source: {wrong[:3]}"
        if hides:
            found = leaks((said + written)[:_MOST_OF_A_LEAK], _CORES)
            assert not found, f"{words[0]}: {found} in {_beside(said + written, found[0])!r}"


def _beside(text: str, found: str) -> str:
    at = text.casefold().find(found)
    return text[max(at - 200, 0) : at + 100]


def planted_json() -> tuple[str, ...]:
    return tuple(json.dumps(text) for text in PLANTED)
