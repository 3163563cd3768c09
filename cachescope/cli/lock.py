"""Lock a cache directory: record its files, its keys, and what made them, so that verify can check it elsewhere.

    cachescope lock "$TORCHINDUCTOR_CACHE_DIR" -o cache.lock
    cachescope lock cache/ -o cache.lock --expect runs/

The lock is a JSON file. It has the size and the sha256 of every file, the keys, the hash details of the processes that made
them (if the entries contain them: torch 2.8 and later), the torch and Triton that are installed with this Python, the
variables that enter keys, and the device. Run it where the cache was made. With --expect, the keys that these runs looked up
are expected: verify shows which of them have no entry, and which entries nothing expects. Nothing is written to the directory.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments import add_source_arguments
from cachescope.cli.output import redaction_of, write_answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="a cache directory")
    told = "the file to write, outside of DIR (cache.lock)"
    parser.add_argument("-o", "--output", default="cache.lock", metavar="FILE", help=told)
    parser.add_argument("--force", action="store_true", help="replace FILE even if it is no lock")
    told = "traces or logs of runs that should find their entries in DIR"
    parser.add_argument("--expect", nargs="+", default=[], metavar="RECORDING", help=told)
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from cachescope.answers.locked import lock_of
    from cachescope.cli.sources import read_given
    from cachescope.locking.lock import write_lock
    from cachescope.locking.tree import is_within
    from cachescope.report.verification import locked_lines, locked_object

    if is_within(args.output, args.directory):
        args.usage_error("the lock would be in the directory that it locks: write it elsewhere")
    scope = read_given(args, [args.directory])
    expected = read_given(args, args.expect) if args.expect else None
    redaction_of(args, scope, [args.directory, args.output])
    lock = lock_of(scope, args.directory, expected)
    write_lock(lock, args.output, force=args.force)
    told = lock, args.directory, args.output
    return write_answer(args, lambda: locked_object(*told), lambda: locked_lines(*told))
