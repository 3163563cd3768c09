"""Capture a context snapshot of this process's torch, as JSON.

The snapshot contains torch's isolation context, and related settings of the process and the machine. Keep it with a
cache, or use it to compare two machines. This is the only command that imports torch itself; it compiles nothing.
"""

from __future__ import annotations

import argparse

from cachescope.cli.output import write_json
from cachescope.errors import CachescopeError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of standard output")
    told = "add the hash of every source file in torch's own key, so that two different keys can be explained"
    parser.add_argument("--torch-manifest", action="store_true", help=told)
    parser.add_argument("--json", action="store_true", help="accepted for symmetry: a snapshot is JSON")


def run(args: argparse.Namespace) -> int:
    from cachescope.capture.contexts import capture, write_snapshot

    if args.output is not None:
        write_snapshot(args.output, torch_manifest=args.torch_manifest)
        return 0
    try:
        write_json(capture(torch_manifest=args.torch_manifest))
    except ValueError as error:
        # Torch's keys tell such numbers apart, so the snapshot has to; a file of it is read by cachescope alone.
        message = "the snapshot holds NaN or infinity, which JSON has not: write it with -o FILE"
        raise CachescopeError(message) from error
    return 0
