"""Capture a context snapshot of this process's torch, as JSON.

The snapshot holds what torch puts into its isolation context, and what stands around it: keep it beside a
cache, or compare two machines. This is the one command that imports torch, and nothing is compiled.
"""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("-o", "--output", metavar="FILE", help="write it there instead of to standard output")
    parser.add_argument(
        "--torch-manifest",
        action="store_true",
        help="add the hash of every source file in torch's own key, so that two different keys can be explained",
    )
    parser.add_argument("--json", action="store_true", help="accepted for symmetry: a snapshot is JSON")
