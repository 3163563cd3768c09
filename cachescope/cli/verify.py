"""What `cachescope verify` runs. Loads no pandas, but to hide, and for a pre-flight."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Final

from cachescope.cli.messages import redaction_if_asked
from cachescope.cli.output import write_json, write_lines
from cachescope.report.verification import verification_lines, verification_object, verify

NOT_AS_LOCKED: Final = 3


def run(args: argparse.Namespace) -> int:
    """Compare, and print."""
    if args.preflight is not None:
        status: int = import_module("cachescope.cli.verify_preflight").run(args)
        return status
    with _keeping_all():
        found = verify(args.lock, args.directory)
    redaction = redaction_if_asked(args)
    if args.json:
        write_json(verification_object(found), redaction)
    else:
        write_lines(verification_lines(found), redaction)
    return 0 if found.passed else NOT_AS_LOCKED


@contextmanager
def _keeping_all() -> Iterator[None]:
    """Collect no garbage: all that a lock holds is kept, and going through it again and again would take a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
