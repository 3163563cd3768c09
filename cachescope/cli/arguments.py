"""The parser of the command line, and the arguments that several commands share."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from cachescope.cli.output import redaction_of
from cachescope.wording import harmless_line

NOT_MET: Final = 3
"""The exit status where fewer lookups hit than a bar asks for."""


class ParagraphHelp(argparse.HelpFormatter):
    """Help whose paragraphs are as wide as the terminal; indented ones, which are commands, stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        return "\n\n".join(
            part if part.startswith(" ") else fill(part, width, indent) for part in text.split("\n\n")
        )


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line: it quotes arguments, which a shell may have made of the names of files.

    Without what was given where that is to be hidden.
    """

    redacts = False

    def error(self, message: str) -> NoReturn:
        """Say it, and end with status 2."""
        from cachescope.readers.remote_cache.address import text_without_passwords

        redaction = redaction_of(argparse.Namespace(redact=Parser.redacts))
        message = message if redaction is None else redaction(message)
        super().error(harmless_line(text_without_passwords(message)))


class CommandParser(Parser):
    """One command, which takes options between its paths as well: `parse_args` splits a list of them there."""

    _is_within = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse, in the mixed way where no rest is left to another program."""
        takes_rest = any(action.nargs == argparse.REMAINDER for action in self._get_positional_actions())
        if self._is_within or takes_rest:
            return super().parse_known_args(args, namespace)
        self._is_within = True  # which comes back here
        before, given = self._without_rest(args)
        found, unknown = self.parse_known_intermixed_args(before, namespace)
        for name, rest in given.items():
            setattr(found, name, rest)
        return found, unknown

    def _without_rest(self, args: list[str]) -> tuple[list[str], dict[str, list[str]]]:
        """The arguments before an option that takes all that follow, and what it takes."""
        rests = [action for action in self._actions if action.nargs == argparse.REMAINDER]
        takes_rest = {flag: action.dest for action in rests for flag in action.option_strings}
        for at, word in enumerate(args):
            if word in takes_rest:
                return args[:at], {takes_rest[word]: args[at + 1 :]}
        return args, {}


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """``--json`` and ``--redact``."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_redact_argument(parser)


def add_format_arguments(parser: argparse.ArgumentParser, formats: Sequence[str]) -> None:
    """``--format`` and, short for one of them, ``--json``."""
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--format", choices=formats, default="text", help="how to print it (text)")
    forms.add_argument(
        "--json", dest="format", action="store_const", const="json", help="the same as --format json"
    )


def add_redact_argument(parser: argparse.ArgumentParser) -> None:
    """``--redact``."""
    told = "show only what is known not to identify you: torch's and cachescope's own words, numbers, versions, keys; placeholders replace the rest"
    parser.add_argument("--redact", action="store_true", help=told)


def add_baseline_argument(parser: argparse.ArgumentParser) -> None:
    """``--baseline``."""
    told = "what a miss is compared with: chosen for each miss (auto), the fewest changed fields (nearest), the number of a run, or a key"
    parser.add_argument("--baseline", default="auto", metavar="auto|nearest|RUN|KEY", help=told)


def add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    """``--strict``, ``--jobs`` and ``--no-index``, for every command that reads its PATHs."""
    parser.add_argument("--strict", action="store_true", help="stop at the first damaged record")
    told = "number of processes that read logs (1)"
    parser.add_argument("--jobs", type=_number_of_processes, default=1, metavar="N", help=told)
    told = "read every log again from the start, and keep none for faster reading later (cachescope cache lists kept logs)"
    parser.add_argument("--no-index", action="store_true", help=told)


def add_source_arguments(parser: argparse.ArgumentParser, paths: str = "", nargs: str = "+") -> None:
    """PATHs, unless a command has others, how they are read, and how the answer is printed."""
    if paths:
        parser.add_argument("paths", nargs=nargs, metavar="PATH", help=f"{paths}; - is standard input")
    add_reading_arguments(parser)
    add_output_arguments(parser)


def command_after(args: argparse.Namespace, words: list[str], sign: str = "--") -> list[str]:
    """The command to run among what follows such a sign; there has to be one."""
    command = words[1:] if words[:1] == ["--"] else words
    if not command:
        args.usage_error(f"give the command to run after {sign}")
    return command


def how_many(text: str) -> int:
    """The number of things to show, which may be none."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of things to show: 0 or more")
    return int(text)


def share(text: str) -> float:
    """A share from 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share from 0 to 1, such as 0.9")
    return number


def _number_of_processes(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes (1 or more)")
    return int(text)
