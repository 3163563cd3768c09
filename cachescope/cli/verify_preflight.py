"""What `cachescope verify --preflight` runs: the verification, and then the command as a pre-flight against the directory."""

from __future__ import annotations

import argparse
import tempfile

from cachescope.capture.preflight_command import preflight
from cachescope.capture.recording import CommandNotFoundError
from cachescope.cli.hiding import redaction_of
from cachescope.cli.messages import say
from cachescope.cli.output import write_json, write_lines
from cachescope.cli.preflight import STDERR, answered, failed_status
from cachescope.locking.lock import Key
from cachescope.report.layout import Line
from cachescope.report.preflight import preflight_lines, preflight_object
from cachescope.report.verification import keys_without_entry, verification_lines, verification_object, verify
from cachescope.scope.scope import Scope

NOT_AS_LOCKED = 3


def run(args: argparse.Namespace) -> int:
    """Compare, run the command, and print both."""
    redaction = redaction_of(args)
    command = args.preflight[1:] if args.preflight[:1] == ["--"] else args.preflight
    if not command:
        args.usage_error("give the command to run after --preflight --")
    found = verify(args.lock, args.directory)
    with tempfile.TemporaryDirectory(prefix="cachescope-preflight-", ignore_cleanup_errors=True) as folder:
        try:
            # What the program prints is no part of the JSON.
            output = STDERR if args.json else None
            recorded = preflight(command, folder, [found.directory], output=output)
        except CommandNotFoundError as error:
            say(error, redaction)
            return error.status
        flown = answered(args, recorded, [found.directory])
        if flown is None:
            return failed_status(recorded)
    scope, answer = flown
    missing = _would_miss(scope)
    redaction = redaction_of(args, scope, [args.lock, found.directory])
    if args.json:
        told = preflight_object(answer) | {
            "exit_status": recorded.exit_status,
            "missing_keys": [{"cache": cache, "cache_key": key} for cache, key in missing],
        }
        write_json({**verification_object(found), "preflight": told}, redaction)
    else:
        lines = [*verification_lines(found), Line(), *preflight_lines(answer), *keys_without_entry(missing)]
        write_lines(lines, redaction)
    if recorded.exit_status:
        return failed_status(recorded)
    return 0 if found.passed and not missing else NOT_AS_LOCKED


def _would_miss(scope: Scope) -> tuple[Key, ...]:
    """The keys that the command makes, and for which it would find nothing."""
    missed = scope.lookups[scope.lookups["outcome"] == "would_miss"]
    keys = zip(missed["cache"], missed["cache_key"], strict=True)
    return tuple(dict.fromkeys((str(cache), str(key)) for cache, key in keys))
