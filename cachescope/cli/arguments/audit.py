"""Show what loading a cache would execute, and who can change it: for caches from somebody else.

    cachescope audit /opt/baked-cache            a cache directory, or any folder of one
    cachescope audit cache.tar.gz mega-cache.bin --format sarif > audit.sarif

DIR|FILE is a cache directory, one file of it, a mega-cache file, a tar file (which is not unpacked), or a remote cache
(redis://HOST:PORT/DB, or a dump). Every function and class that a pickle names is compared with those that torch itself writes;
a name that is not among them is not known to be safe. Generated code, guards, links, owners and permissions are checked as well.
Nothing is unpickled, imported or run, no link is followed, and no pipe or device is opened. A cache contains code by its nature:
code that cannot be checked against anything is counted in notes. Trust it as much as you trust everyone who could write it.

exit status: 0 no finding at or above the level of --fail-on, 1 at least one, 2 a source could not be read, or wrong usage
"""

from __future__ import annotations

import argparse
from typing import Final

from cachescope.cli.arguments.shared import add_format_arguments, add_redact_argument
from cachescope.terms import AUDIT_LEVELS

_FORMATS: Final = ("text", "json", "sarif")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("paths", nargs="+", metavar="DIR|FILE", help="what to audit")
    parser.add_argument(
        "--fail-on",
        choices=(*AUDIT_LEVELS, "never"),
        default="warning",
        metavar="LEVEL",
        help="end with status 1 from this level on: danger, warning (the default), note, or never",
    )
    add_format_arguments(parser, _FORMATS)
    add_redact_argument(parser)
