"""Check a cache directory and this machine against a lock, quickly and without torch: exit status 3 if they differ.

    cachescope verify cache.lock "$TORCHINDUCTOR_CACHE_DIR"

It compares file contents by hash, and shows which files are missing, extra, altered or cannot be read. It shows whether the
torch, Triton, Python, variables, device and CPU of this machine are those that made the keys, and what a difference costs. It
shows which expected keys have no entry, and which entries nothing expects. What cannot be known on this machine without torch
is reported as not known, and does not fail the check. Without DIR, it checks the directory that torch would use here.

    cachescope verify cache.lock "$TORCHINDUCTOR_CACHE_DIR" --preflight -- python train.py

also runs the command as a pre-flight (cachescope preflight) against DIR, with torch and without compiling anything. It shows
which of the keys that the command makes have no entry that it would find.

exit status: 0 as locked, and with --preflight no lookup would miss, 1 the lock or the directory could not be read, or the
command failed, 2 wrong usage, 3 not as locked, or a lookup would miss, 126 and 127 the command cannot be started
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments.shared import add_output_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("lock", metavar="LOCK", help="what cachescope lock wrote")
    parser.add_argument("directory", nargs="?", metavar="DIR", help="the cache directory")
    add_output_arguments(parser)
    parser.add_argument(
        "--preflight",
        nargs=argparse.REMAINDER,
        metavar="-- COMMAND",
        help="also run this as a pre-flight against DIR; must be the last option",
    )
    parser.set_defaults(usage_error=parser.error)
