"""What `cachescope capture` runs: the one command that imports torch, and no package but torch."""

from __future__ import annotations

import argparse

from cachescope.capture.contexts import capture, write_snapshot
from cachescope.cli.output import write_json
from cachescope.errors import CachescopeError


def run(args: argparse.Namespace) -> int:
    """Ask torch, and print or write the snapshot."""
    if args.output is not None:
        write_snapshot(args.output, torch_manifest=args.torch_manifest)
        return 0
    try:
        write_json(capture(torch_manifest=args.torch_manifest))
    except ValueError as error:
        # Torch's keys tell such numbers apart, so the snapshot has to; a file of it is read by cachescope alone.
        raise CachescopeError(
            "the snapshot holds NaN or infinity, which JSON has not: write it with -o FILE"
        ) from error
    return 0
