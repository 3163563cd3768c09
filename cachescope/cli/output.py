"""Writing to standard output: JSON, or lines that are coloured on a terminal and plain in a pipe."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from cachescope.cli.streams import discard
from cachescope.errors import CachescopeError
from cachescope.report.json_text import json_text
from cachescope.report.layout import Line, laid_out
from cachescope.wording import harmless_cut, without_commands

if TYPE_CHECKING:
    from cachescope.report.redact import Redaction

_WIDTH_OF_A_PIPE: Final = 100
_WIDEST: Final = 120


def write_json(value: object, redaction: Redaction | None = None) -> None:
    """One JSON object on standard output."""
    if redaction is not None:
        value = redaction(value)
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    _write(json_text(value, ascii_only=not is_utf8) + "\n")


def write_lines(lines: Sequence[Line], redaction: Redaction | None = None) -> None:
    """Lines on standard output, as wide as the terminal."""
    if redaction is not None:
        texts: list[Any] = redaction([[line.text, line.right] for line in lines])
        lines = [line.with_texts(*text) for line, text in zip(lines, texts, strict=True)]
    is_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size((_WIDTH_OF_A_PIPE, 24)).columns if is_terminal else _WIDTH_OF_A_PIPE
    rows = list(laid_out(lines, min(width, _WIDEST)))
    if _is_coloured():
        _write_styled(rows)
    else:
        _write("".join(f"{text}\n" for text, _ in rows))


def write_source(text: str, language: str, redaction: Redaction | None = None) -> None:
    """Generated code on standard output: all its lines, highlighted on a terminal, nothing in it that acts."""
    lines = (text if redaction is None else redaction(text)).split("\n")
    shown = without_commands("\n".join(map(harmless_cut, lines))).rstrip("\n")
    if not _is_coloured():
        _write(f"{shown}\n")
        return
    from rich.console import Console
    from rich.syntax import Syntax

    # The terminal's own sixteen colours, on its own background.
    syntax = Syntax("", language, theme="ansi_dark", background_color="default")
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True)
    with _output():
        console.print(syntax.highlight(_encodable(shown)), end="")


def _is_coloured() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def write_plain(texts: Iterable[str]) -> None:
    """Texts as they are, one per line: for other programs, so neither wrapped nor coloured, and harmless already."""
    _write("".join(f"{text}\n" for text in texts))


def _write_styled(rows: Sequence[tuple[str, str]]) -> None:
    from rich.console import Console
    from rich.text import Text

    # soft_wrap: the rows are laid out already. Text objects: nothing in a log is taken for markup.
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True)
    with _output():
        for text, style in rows:
            console.print(Text(_encodable(text), style=style))


def _write(text: str) -> None:
    with _output():
        sys.stdout.write(_encodable(text))


@contextlib.contextmanager
def _output() -> Iterator[None]:
    """What is written in it reaches standard output, or is an error of one line: its disk may be full."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard(sys.stdout)
        raise CachescopeError(f"standard output cannot be written: {error.strerror or error}") from error


def _encodable(text: str) -> str:
    """The text with escapes for what standard output has no bytes for."""
    encoding = sys.stdout.encoding or "ascii"
    return text.encode(encoding, "backslashreplace").decode(encoding)
