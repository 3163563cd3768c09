"""Write one HTML file with figures, tables and explanations, for people without Jupyter. It works offline.

PATHs are TORCH_TRACE files, TORCH_LOGS text, cache directories, or directories and globs of them. The file loads nothing
from anywhere. --redact hides what may identify you before you send it.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments.shared import add_baseline_argument, add_output_arguments, add_reading_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="what to read")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.html", help="where to write it")
    add_baseline_argument(parser)
    add_reading_arguments(parser)
    add_output_arguments(parser)
