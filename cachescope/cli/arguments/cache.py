"""Show the logs that cachescope keeps in order to open them again at once, or remove them.

A large log that was read once is kept, in columns, under the user's cache folder. One that has grown since is read
from where it ended, one that changed otherwise anew, and what was not used for longest goes first.
CACHESCOPE_NO_INDEX=1 keeps nothing. The caches of torch are something else, and are never touched: for those,
cachescope entries DIR.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments.shared import add_output_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--clear", action="store_true", help="remove all of it")
    add_output_arguments(parser)
