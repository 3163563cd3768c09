"""What `cachescope lock` runs."""

from __future__ import annotations

import argparse

from cachescope.answers.locked import lock_of
from cachescope.cli.hiding import redaction_of
from cachescope.cli.output import write_json, write_lines
from cachescope.cli.sources import read_given
from cachescope.locking.lock_text import write_lock
from cachescope.locking.tree import is_within
from cachescope.report.verification import locked_lines, locked_object


def run(args: argparse.Namespace) -> int:
    """Read, lock, write and print."""
    if is_within(args.output, args.directory):
        args.usage_error("the lock would be in the directory that it locks: write it elsewhere")
    scope = read_given(args, [args.directory])
    expected = read_given(args, args.expect) if args.expect else None
    redaction = redaction_of(args, scope, [args.directory, args.output])
    if expected is not None:
        redaction_of(args, expected, args.expect)
    lock = lock_of(scope, args.directory, expected)
    write_lock(lock, args.output)
    if args.json:
        write_json(locked_object(lock, args.directory, args.output), redaction)
    else:
        write_lines(locked_lines(lock, args.directory, args.output), redaction)
    return 0
