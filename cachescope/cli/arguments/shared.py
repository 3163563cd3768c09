"""The arguments that commands share. No reader is imported for them, so that help is instant."""

from __future__ import annotations

import argparse
from collections.abc import Sequence


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
    parser.add_argument(
        "--redact",
        action="store_true",
        help="show only what is known not to identify you: torch's and cachescope's own words, numbers, versions, keys; "
        "placeholders replace the rest",
    )


def add_baseline_argument(parser: argparse.ArgumentParser) -> None:
    """``--baseline``."""
    parser.add_argument(
        "--baseline",
        default="auto",
        metavar="auto|nearest|RUN|KEY",
        help="what a miss is compared with: chosen for each miss (auto), the fewest changed fields (nearest), "
        "the number of a run, or a key",
    )


def add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    """``--strict``, ``--jobs`` and ``--no-index``, for every command that reads its PATHs."""
    parser.add_argument("--strict", action="store_true", help="stop at the first damaged record")
    parser.add_argument(
        "--jobs",
        type=_number_of_processes,
        default=1,
        metavar="N",
        help="number of processes that read logs (1)",
    )
    parser.add_argument(
        "--no-index",
        action="store_true",
        help="read every log again from the start, and keep none for faster reading later (cachescope cache lists kept logs)",
    )


def how_many(text: str) -> int:
    """The number of things to show, which may be none."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of things to show: 0 or more")
    return int(text)


def _number_of_processes(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes (1 or more)")
    return int(text)
