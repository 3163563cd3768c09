"""Show where the time of compiling went: the self time of each phase, process by process.

PATHs are TORCH_TRACE files, or directories and globs of them. Times are from the events that torch writes into traces; they
add up, and what no event covers is a row of its own. Below: what hits could still save, what stays, what hits saved.
Several processes are held against each other; of several PATHs each stands for its slowest process.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments.shared import add_output_arguments, add_reading_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="what to read")
    add_reading_arguments(parser)
    add_output_arguments(parser)
