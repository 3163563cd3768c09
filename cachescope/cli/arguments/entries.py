"""List what a cache directory holds (sizes, age, damage, duplicates, what can go), or show one entry of it.

    cachescope entries DIR         files by kind and status, what stands out, the newest entries
    cachescope entries KEY [DIR]   one entry: a key of any kind or enough of its beginning; guards, links, kernels, past
                                   misses and its source. Without DIR in the directory torch would use here

What exists as a path is a DIR, and so is redis://HOST:PORT/DB. DIRs are opened read-only; entries are parsed, never unpickled. Nothing is removed:
--prune-list only prints paths: of what was wholly read and proven to be of no use to any lookup. What may not be
read, and whatever it may need, is never among them.
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
        help="say of each lock file whether it is held: it is tried without waiting and given back at once",
    )
    parser.add_argument(
        "--prune-list",
        action="store_true",
        help="print only the paths that can go, one per line, for: xargs -d '\\n' rm --",
    )
    add_reading_arguments(parser)
    add_output_arguments(parser)
