"""The parser of the command line: it quotes safely what was given, and takes options between paths."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from cachescope.cli.messages import redaction_if_asked
from cachescope.readers.remote_cache.address import text_without_passwords
from cachescope.wording import harmless_line

__all__ = ["CommandParser", "ParagraphHelp", "Parser"]


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
        redaction = redaction_if_asked(argparse.Namespace(redact=Parser.redacts))
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
        takes_rest = {
            flag: action.dest
            for action in self._actions
            for flag in action.option_strings
            if action.nargs == argparse.REMAINDER
        }
        for at, word in enumerate(args):
            if word in takes_rest:
                return args[:at], {takes_rest[word]: args[at + 1 :]}
        return args, {}
