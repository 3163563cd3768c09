"""List what torch compiled and why: recompiles and the guards that failed, graph breaks, sizes that became symbols.

PATHs are TORCH_TRACE files, or directories and globs of them.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments.shared import add_output_arguments, add_reading_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="what to read")
    add_reading_arguments(parser)
    add_output_arguments(parser)
