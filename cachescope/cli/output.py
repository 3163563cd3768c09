"""All that a command prints: JSON, or lines that are coloured on a terminal and plain in a pipe; and what --redact hides of it.

Printing help loads this module, and recording needs no package: what hides and what lays out is loaded where it is used.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

from cachescope.errors import CachescopeError, telling
from cachescope.version import __version__
from cachescope.wording import harmless_cut, harmless_line, without_commands

if TYPE_CHECKING:
    from rich.text import Text

    from cachescope.json_types import JsonObject
    from cachescope.report.blocks import Block
    from cachescope.report.redact import Redaction
    from cachescope.scope import Scope


def redaction_of(
    args: argparse.Namespace, scope: Scope | None = None, paths: Iterable[str] = ()
) -> Redaction | None:
    """What hides, or None without ``--redact``: one for all that a command says, so that its stand-ins agree.

    It learns what identifies a machine, and whoever ran what was read, from the `scope`, and the `paths` as they were given.
    """
    if not getattr(args, "redact", False):
        return None
    from cachescope.report.redact import Redaction, identities, of_this_machine

    if getattr(args, "redaction", None) is None:
        args.redaction = Redaction(of_this_machine())
    redaction: Redaction = args.redaction
    if scope is not None:
        redaction.learn(identities(scope, paths))
    return redaction


def say(message: CachescopeError | str, redaction: Redaction | None = None) -> None:
    """One line on standard error, whatever the message quotes."""
    text = str(message) if redaction is None else redaction(str(message))
    print(harmless_line(f"cachescope: {text}"), file=sys.stderr, flush=True)


def write_json(value: object, redaction: Redaction | None = None) -> None:
    """One JSON object on standard output."""
    from cachescope.report.json_text import json_text

    if redaction is not None:
        value = redaction(value)
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    _write(json_text(value, ascii_only=not is_utf8) + "\n")


def write_blocks(blocks: Iterable[Block], redaction: Redaction | None = None) -> None:
    """Blocks on standard output, as wide as the terminal."""
    from cachescope.report.blocks import hidden
    from cachescope.report.layout import laid_out
    from cachescope.report.terminal import terminal_lines

    shown = tuple(blocks) if redaction is None else hidden(tuple(blocks), redaction)
    width = min(shutil.get_terminal_size((100, 24)).columns, 120) if sys.stdout.isatty() else 100
    rows = list(laid_out(terminal_lines(shown, width), width))
    if not _is_coloured():
        _write("".join(f"{text}\n" for text, _ in rows))
        return
    from rich.text import Text

    _print_coloured(Text(f"{_encodable(text)}\n", style=style) for text, style in rows)


def write_answer(
    args: argparse.Namespace, of_json: Callable[[], JsonObject], of_blocks: Callable[[], Iterable[Block]]
) -> int:
    """Print the one form or the other, as ``--json`` and ``--redact`` say; return the exit status of success.

    An object begins with the version that made it.
    """
    redaction = redaction_of(args)
    if args.json:
        write_json({"cachescope": __version__, **of_json()}, redaction)
    else:
        write_blocks(of_blocks(), redaction)
    return 0


def write_file(path: str, text: str) -> None:
    """A file of its own."""
    with telling(f"{path}: cannot be written"), open(path, "w", encoding="utf-8") as file:
        file.write(text)


def write_source(text: str, language: str, redaction: Redaction | None = None) -> None:
    """Generated code on standard output: all its lines, highlighted on a terminal, nothing in it that acts."""
    lines = (text if redaction is None else redaction(text)).split("\n")
    shown = without_commands("\n".join(map(harmless_cut, lines))).rstrip("\n")
    if not _is_coloured():
        _write(f"{shown}\n")
        return
    from rich.syntax import Syntax

    # The terminal's own sixteen colours, on its own background.
    syntax = Syntax("", language, theme="ansi_dark", background_color="default")
    _print_coloured([syntax.highlight(_encodable(shown))])


def _print_coloured(texts: Iterable[Text]) -> None:
    from rich.console import Console

    # soft_wrap: the rows are laid out already. Text objects: nothing in a log is taken for markup.
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True)
    with _output():
        for text in texts:
            console.print(text, end="")


def _is_coloured() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def write_plain(texts: Iterable[str]) -> None:
    """Texts as they are, one per line: for other programs, so neither wrapped nor coloured, and harmless already."""
    _write("".join(f"{text}\n" for text in texts))


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


def open_closed_streams() -> None:
    """Where a shell closed a stream (``>&-``), write to nobody: Python has None there, and the next file takes its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # It gets the lowest free number, and no command that is started has it.
            os.open(os.devnull, os.O_RDWR)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def discard(stream: TextIO) -> None:
    """Send what is left of a stream nowhere: Python would fail once more when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
