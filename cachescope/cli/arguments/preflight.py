"""Foretell what a command would find in torch's caches: it runs, and nothing is compiled or stored.

    cachescope preflight -- python train.py
    cachescope preflight --against /baked/cache --min-hit-rate 1 -- torchrun --nproc-per-node 2 train.py

Every graph is executed op by op, so the program goes its way; of each lookup that a real run would make, the answer is
whether it would hit, would miss, would be bypassed, and why, or that it cannot be told. Held against the cache directory
that the program would use, or against PATH: a cache directory, which may be empty, recordings of earlier runs, or
a remote cache (redis://… or a dump of one). They are only read. Python processes that the command starts are covered, but for those that ignore PYTHONPATH
(python -I). Needs torch 2.10 or later, in the command's Python.

With --fake no weights are allocated: for models that do not fit here. A program that asks a tensor for a value, as
loss.item() does, ends there, and the line is named.

exit status: 0 it ran, 1 the command failed or nothing could be read, 2 wrong usage, or --fake and the program needs
values, 3 fewer lookups would hit than
--min-hit-rate asks for (those that cannot be told count as none), 126 and 127 the command cannot be started
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
        help="what the lookups are held against; may be given several times (the program's own cache directory)",
    )
    parser.add_argument(
        "--fake",
        action="store_true",
        help="run without weights: tensors have no values and take no memory (torch's FakeTensorMode)",
    )
    parser.add_argument(
        "--keep",
        metavar="FOLDER",
        help="keep the traces in a new folder of FOLDER, for cachescope explain FOLDER PATH",
    )
    parser.add_argument(
        "--min-hit-rate",
        type=share,
        metavar="SHARE",
        help="least share of lookups that would hit, from 0 to 1",
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what to run")
    add_output_arguments(parser)
    parser.set_defaults(usage_error=parser.error)
