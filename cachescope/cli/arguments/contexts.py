"""Show which processes are alike: isolation contexts, their keys, which processes share one, and what differs.

PATHs are snapshots (cachescope capture), traces, logs or cache directories. The contexts of recorded runs are
reconstructed from their hash details, as far as possible; nothing is guessed.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments.shared import add_output_arguments, add_reading_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a snapshot, or what explain reads")
    parser.add_argument(
        "--schema",
        metavar="FILE",
        help='which forms count, as JSON: {"runtime_context": true, "compile_context": {"runtime": true}}',
    )
    add_reading_arguments(parser)
    add_output_arguments(parser)
