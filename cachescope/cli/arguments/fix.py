"""Find out by trying what to set so that a command finds its entries.

    cachescope fix /baked/cache -- python train.py
    cachescope fix recordings/ --write cache.env -- torchrun --nproc-per-node 2 train.py

The command runs as a pre-flight (cachescope preflight), once as it is and then with one setting after another: variables,
options of torch's config, calls. What is printed as a change was tried, all together, and each is needed. Where nothing
can be set, it says why, and what is advised. PATH is what should be found: a cache directory, or recordings of the runs
that made it. Nothing is compiled, stored or edited. The output of the command is not shown. Needs torch 2.10 or later.

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
        help="write the variables among the changes into FILE, which must be new or made by this",
    )
    add_output_arguments(parser)
    parser.add_argument(
        "words",
        nargs=argparse.REMAINDER,
        metavar="PATH ... -- COMMAND",
        help="what should be found, and what to run",
    )
    parser.set_defaults(usage_error=parser.error)
