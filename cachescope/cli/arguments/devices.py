"""Say which devices keys and kernels were made for, with their datasheets; without PATH, what this machine has.

PATHs are snapshots (cachescope capture), traces, logs or cache directories. Rates are peak dense ones of the
vendors' datasheets, and it is said how a name led to one; a device without one shows what is known.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments.shared import add_output_arguments, add_reading_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help="a snapshot, or what explain reads")
    parser.add_argument(
        "--measure",
        action="store_true",
        help="measure copy bandwidth and matmul rates of this machine's GPUs with torch's own benchmarking",
    )
    add_reading_arguments(parser)
    add_output_arguments(parser)
