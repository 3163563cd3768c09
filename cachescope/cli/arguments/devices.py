"""List the devices that keys and kernels were made for, with their datasheets; without PATH, this machine's devices.

PATHs are snapshots (cachescope capture), traces, logs or cache directories. Rates are peak dense rates from the
vendors' datasheets. Each device says how its name was matched to a datasheet; without one, it shows what is known.
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
