"""Show where compile time went: the self time of each phase, for each process.

PATHs are TORCH_TRACE files, or directories and globs of them. Times come from the events that torch writes into traces. They
add up; time that no event covers has its own row. Below the table: what hits could still save, what stays, what hits saved.
Several processes are compared with each other; if several PATHs are given, each is represented by its slowest process.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments.shared import add_output_arguments, add_reading_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="what to read")
    add_reading_arguments(parser)
    add_output_arguments(parser)
