"""What `cachescope preflight` runs."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cachescope.answers.preflight import PreflightAnswer
from cachescope.capture.preflight.without_weights import FAKE
from cachescope.capture.preflight_command import preflight
from cachescope.capture.recording import CommandNotFoundError, Recorded
from cachescope.cli.check import NOT_MET
from cachescope.cli.hiding import redaction_of
from cachescope.cli.output import write_json, write_lines
from cachescope.errors import SourceError
from cachescope.readers.directory.default_root import default_root
from cachescope.report.as_json import explain_object
from cachescope.report.preflight import preflight_lines, preflight_object
from cachescope.scope.preflight import check_against, read_preflight
from cachescope.scope.scope import Scope
from cachescope.wording import harmless_line

NEEDS_VALUES: Final = 2
STDERR: Final = 2
_NOTHING = (
    "nothing was seen: no process of the command compiled with torch, or those that did ignore PYTHONPATH "
    "(python -I, python -E)"
)


def run(args: argparse.Namespace) -> int:
    """Run the command as a pre-flight, and print the predictions."""
    redaction_of(args)
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        args.usage_error("give the command to run after --")
    check_against(args.against or [])
    with _folder(args.keep) as folder, _folder(None) as told:
        needs = Path(told, "needs_values")
        try:
            # What the program prints is no part of the JSON.
            output = STDERR if args.json else None
            variables = {FAKE: str(needs) if args.fake else None}
            against = args.against or [default_root()]
            recorded = preflight(command, folder, against, variables=variables, output=output)
        except CommandNotFoundError as error:
            _say(args, str(error))
            return error.status
        if needs.exists():
            why, *_ = needs.read_text(encoding="utf-8", errors="replace").splitlines()
            _say(args, f"the program cannot be run without weights: {why}")
            return NEEDS_VALUES
        return _answer(args, recorded)


@contextmanager
def _folder(keep: str | None) -> Iterator[str]:
    if keep is not None:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="cachescope-preflight-", ignore_cleanup_errors=True) as folder:
        yield folder


def _answer(args: argparse.Namespace, recorded: Recorded) -> int:
    flown = answered(args, recorded, args.against)
    failed = failed_status(recorded)
    if flown is None:
        return failed
    scope, answer = flown
    redaction = redaction_of(args, scope, [str(recorded.folder), *(args.against or [])])
    if args.json:
        told = preflight_object(answer) | {"exit_status": recorded.exit_status}
        write_json({**explain_object(scope), "preflight": told}, redaction)
    else:
        write_lines(preflight_lines(answer), redaction)
    if args.keep is not None:
        _say(args, f"its traces are in {recorded.folder}")
    if recorded.exit_status:
        return failed
    least = args.min_hit_rate
    return NOT_MET if least is not None and (answer.hit_rate or 0) < least else 0


def answered(
    args: argparse.Namespace, recorded: Recorded, against: list[str] | None
) -> tuple[Scope, PreflightAnswer] | None:
    """The predictions of a pre-flight; prints what is wrong, and returns None if there is nothing to answer from."""
    if recorded.exit_status:
        _say(args, f"{_failure(recorded)}; what follows is as far as it came")
    if not recorded.has_trace:
        _say(args, _NOTHING)
        return None
    try:
        scope = read_preflight(str(recorded.folder), against)
    except SourceError as error:
        _say(args, str(error))
        return None
    return scope, PreflightAnswer.of(scope)


def failed_status(recorded: Recorded) -> int:
    """The exit status of cachescope after a command that failed: 128 + n if signal n stopped it, as of a shell."""
    if recorded.stopped_by is not None:
        return 128 + recorded.stopped_by
    return recorded.exit_status if recorded.ended_by == "SIGINT" else 1


def _failure(recorded: Recorded) -> str:
    if recorded.stopped_by is not None:
        return f"the command was stopped by {recorded.stopped_by.name} (exit status {recorded.exit_status})"
    ended = f", ended by {recorded.ended_by}" if recorded.ended_by else ""
    return f"the command failed (exit status {recorded.exit_status}{ended})"


def _say(args: argparse.Namespace, text: str) -> None:
    redaction = redaction_of(args)
    text = text if redaction is None else redaction(text)
    print(harmless_line(f"cachescope: {text}"), file=sys.stderr, flush=True)
