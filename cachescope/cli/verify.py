"""Check a cache directory and this machine against a lock, quickly and without torch: exit status 3 if they differ.

    cachescope verify cache.lock "$TORCHINDUCTOR_CACHE_DIR"

It compares file contents by hash, and shows which files are missing, extra, altered or cannot be read. It shows whether the
torch, Triton, Python, variables, device and CPU of this machine are those that made the keys, and what a difference costs. It
shows which expected keys have no entry, and which entries nothing expects. What cannot be known on this machine without torch
is reported as not known, and does not fail the check. Without DIR, it checks the directory that torch would use here.

    cachescope verify cache.lock "$TORCHINDUCTOR_CACHE_DIR" --preflight -- python train.py

also runs the command as a pre-flight (cachescope preflight) against DIR, with torch and without compiling anything. It shows
which of the keys that the command makes have no entry that it would find.

exit status: 0 as locked, and with --preflight no lookup would miss, 1 the lock or the directory could not be read, or the
command failed, 2 wrong usage, 3 not as locked, or a lookup would miss, 126 and 127 the command cannot be started
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments import NOT_MET, add_output_arguments, command_after
from cachescope.cli.output import redaction_of, write_answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lock", metavar="LOCK", help="what cachescope lock wrote")
    parser.add_argument("directory", nargs="?", metavar="DIR", help="the cache directory")
    add_output_arguments(parser)
    told = "also run this as a pre-flight against DIR; must be the last option"
    parser.add_argument("--preflight", nargs=argparse.REMAINDER, metavar="-- COMMAND", help=told)


def run(args: argparse.Namespace) -> int:
    """Loads no pandas, but to hide, and for a pre-flight."""
    from cachescope.collector import all_is_kept
    from cachescope.report.verification import verification_lines, verification_object, verify

    if args.preflight is not None:
        return _run_with_preflight(args)
    # All that a lock holds is kept, and going through it again and again would take a third of the time.
    with all_is_kept():
        found = verify(args.lock, args.directory)
    write_answer(args, lambda: verification_object(found), lambda: verification_lines(found))
    return 0 if found.passed else NOT_MET


def _run_with_preflight(args: argparse.Namespace) -> int:
    """Compare, run the command as a pre-flight against the directory, and print both."""
    import tempfile

    from cachescope.capture.preflight_command import preflight
    from cachescope.cli.preflight import STDERR, answer_blocks, answer_object, answered, failed_status
    from cachescope.report.layout import Line
    from cachescope.report.verification import (
        keys_without_entry,
        verification_lines,
        verification_object,
        verify,
    )

    command = command_after(args, args.preflight, "--preflight --")
    found = verify(args.lock, args.directory)
    with tempfile.TemporaryDirectory(prefix="cachescope-preflight-", ignore_cleanup_errors=True) as folder:
        # What the program prints is no part of the JSON.
        flown = preflight(command, folder, [found.directory], output=STDERR if args.json else None)
        scope, answer = answered(args, flown, [found.directory])
    # The keys that the command makes, and for which it would find nothing.
    missed = (row for row in scope.shown.rows if row.outcome == "would_miss")
    missing = tuple(dict.fromkeys((row.cache, str(row.cache_key)) for row in missed))
    redaction_of(args, scope, [args.lock, found.directory])
    keys = [{"cache": cache, "cache_key": key} for cache, key in missing]
    told = answer_object(flown, answer) | {"missing_keys": keys}
    write_answer(
        args,
        lambda: {**verification_object(found), "preflight": told},
        lambda: [
            *verification_lines(found), Line(), *answer_blocks(flown, answer), *keys_without_entry(missing),
        ],
    )  # fmt: skip
    if failed := failed_status(flown):
        return failed
    return 0 if found.passed and not missing else NOT_MET
