"""Predict what a command would find in torch's caches: the command runs, but nothing is compiled or stored.

    cachescope preflight -- python train.py
    cachescope preflight --against /baked/cache --min-hit-rate 1 -- torchrun --nproc-per-node 2 train.py

Every graph is executed op by op, so the program runs as usual. For each lookup that a real run would make, the answer says
whether it would hit, miss or be bypassed, and why, or that this is not known. Lookups are checked against the cache directory
that the program would use, or against PATH: a cache directory, which may be empty, recordings of earlier runs, a lock, a
mega-cache file, or a remote cache (redis://HOST:PORT/DB, or a dump). They are only read. Python processes that the command starts
are covered, except those that ignore PYTHONPATH (python -I). Needs torch 2.10 or later, in the command's Python.

With --fake no weights are allocated: for models that do not fit here. A program that needs the value of a tensor, as in
loss.item(), stops there, and the line is named.

exit status: 0 it ran, 1 the command failed or nothing could be read, 2 wrong usage, or --fake and the program needs
values, 3 fewer lookups would hit than --min-hit-rate asks for (an unknown outcome does not count as a hit), 126 and 127 the
command cannot be started
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments.check import share
from cachescope.cli.arguments.shared import add_output_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--against",
        action="append",
        metavar="PATH",
        help="what the lookups are checked against; may be repeated (the program's own cache directory)",
    )
    parser.add_argument(
        "--fake",
        action="store_true",
        help="run without weights: tensors have no values and take no memory (torch's FakeTensorMode)",
    )
    parser.add_argument(
        "--keep",
        metavar="FOLDER",
        help="keep the traces in a new folder in FOLDER, for cachescope explain FOLDER PATH",
    )
    parser.add_argument(
        "--min-hit-rate",
        type=share,
        metavar="SHARE",
        help="minimum share of lookups that would hit, from 0 to 1",
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what to run")
    add_output_arguments(parser)
    parser.set_defaults(usage_error=parser.error)
