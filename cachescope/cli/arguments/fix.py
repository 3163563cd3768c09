"""Find out, by trying, what to set so that a command finds its entries.

    cachescope fix /baked/cache -- python train.py
    cachescope fix recordings/ --write cache.env -- torchrun --nproc-per-node 2 train.py

The command runs as a pre-flight (cachescope preflight), first unchanged and then with one setting after another: variables,
options of torch's config, calls. The printed changes were tried together, and each of them is needed. If nothing can be set,
the answer says why, and gives advice. PATH is what should be found: a cache directory, or recordings of the runs that filled
it. Nothing is compiled, stored or edited. The command's output is not shown. Needs torch 2.10 or later.

exit status: 0 all lookups would hit, with the changes if there are any, 1 the command failed or nothing could be read,
2 wrong usage, 3 some would not, 126 and 127 the command cannot be started
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments.shared import add_output_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--write",
        metavar="FILE",
        help="write the variables among the changes to FILE, which must be new or written by --write",
    )
    add_output_arguments(parser)
    parser.add_argument(
        "words",
        nargs=argparse.REMAINDER,
        metavar="PATH ... -- COMMAND",
        help="what should be found, and what to run",
    )
    parser.set_defaults(usage_error=parser.error)
