"""List what a cache directory contains (sizes, age, damage, duplicates, what can go), or show one entry of it.

    cachescope entries DIR         files by kind and status, anything unusual, the newest entries
    cachescope entries KEY [DIR]   one entry, by a key of any kind or enough of its beginning: guards, links, kernels,
                                   past misses and its source. Without DIR, in the directory that torch would use here

An existing path is a DIR, and so is redis://HOST:PORT/DB. DIRs are opened read-only; entries are parsed, never unpickled.
Nothing is removed. --prune-list only prints paths of files that were read completely and are proven to be useless to any
lookup. Files that cannot be read, and everything that they may need, are never listed.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments.shared import add_output_arguments, add_reading_arguments, how_many


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("names", nargs="+", metavar="DIR|KEY", help="cache directories; or a key in them")
    parser.add_argument(
        "--most", type=how_many, default=20, metavar="N", help="entries to list (20, the newest)"
    )
    parser.add_argument(
        "--locks",
        action="store_true",
        help="show for each lock file whether it is held: the lock is tried without waiting, and released at once",
    )
    parser.add_argument(
        "--prune-list",
        action="store_true",
        help="print only the paths that can go, one per line, for: xargs -d '\\n' rm --",
    )
    add_reading_arguments(parser)
    add_output_arguments(parser)
