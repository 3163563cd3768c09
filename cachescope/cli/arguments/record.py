"""Run a command with torch's cache logs on, then explain its lookups against the runs recorded earlier.

    cachescope record -- python train.py

The command keeps the terminal and its exit status. Its trace and log are written to a new folder in FOLDER. The DEBUG records
of the two cache loggers go only to the log, not to the terminal. If cachescope was installed without the packages
that explaining needs (pip install --no-deps), it only records.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments.shared import add_output_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "-o",
        "--output",
        default="cachescope-runs",
        metavar="FOLDER",
        help="where the runs are kept (cachescope-runs)",
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what to run")
    add_output_arguments(parser)
    parser.set_defaults(usage_error=parser.error)
