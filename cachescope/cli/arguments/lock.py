"""Lock a cache directory: its files, its keys, and what made them, for verify to hold it against elsewhere.

    cachescope lock "$TORCHINDUCTOR_CACHE_DIR" -o cache.lock
    cachescope lock cache/ -o cache.lock --expect runs/

The lock is a JSON file with the size and the sha256 of every file, the keys, the hash details of the processes that made them
as far as the entries hold them (torch 2.8 and later), the torch and the Triton that are installed beside this Python, its
variables that enter keys, and its device. Run it where the cache was made. With --expect, the keys that these runs looked up
are expected: verify says which of them have no entry, and which entries nothing expects. Nothing is written to the directory.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments.shared import add_output_arguments, add_reading_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("directory", metavar="DIR", help="a cache directory")
    parser.add_argument(
        "-o",
        "--output",
        default="cache.lock",
        metavar="FILE",
        help="what to write, outside of DIR (cache.lock)",
    )
    parser.add_argument(
        "--expect",
        nargs="+",
        default=[],
        metavar="RECORDING",
        help="traces or logs of runs that are to find their entries in DIR",
    )
    add_reading_arguments(parser)
    add_output_arguments(parser)
    parser.set_defaults(usage_error=parser.error)
