"""Show the logs that cachescope keeps so that it can open them faster, or remove them.

After a large log was read once, it is kept in columns under the user's cache folder. If the log has grown, only the new part
is read; if it changed in another way, all of it is read again. The logs unused for longest are removed first.
CACHESCOPE_NO_INDEX=1 keeps nothing. torch's caches are never touched; to inspect those, use cachescope entries DIR.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments.shared import add_output_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--clear", action="store_true", help="remove all kept logs")
    add_output_arguments(parser)
