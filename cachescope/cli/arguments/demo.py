"""Explain the recordings that ship with cachescope: no torch, GPU or network is needed."""

from __future__ import annotations

import argparse

from cachescope.cli.arguments.shared import add_output_arguments
from cachescope.samples import sample_names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    names = ", ".join(sample_names())
    parser.add_argument("name", nargs="?", default="tour", help=f"which recording (tour): {names}")
    add_output_arguments(parser)
