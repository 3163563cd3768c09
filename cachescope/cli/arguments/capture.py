"""Capture a context snapshot of this process's torch, as JSON.

The snapshot contains torch's isolation context, and related settings of the process and the machine. Keep it with a
cache, or use it to compare two machines. This is the only command that imports torch itself; it compiles nothing.
"""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of standard output")
    parser.add_argument(
        "--torch-manifest",
        action="store_true",
        help="add the hash of every source file in torch's own key, so that two different keys can be explained",
    )
    parser.add_argument("--json", action="store_true", help="accepted for symmetry: a snapshot is JSON")
