"""Run a command with torch's cache logs on, then explain its lookups against the runs recorded before.

    cachescope record -- python train.py

The command keeps the terminal and its exit status. Its trace and log go into a new folder of FOLDER; the
DEBUG records of the two cache loggers go there only, and not to the terminal. Where cachescope was installed
without the packages that explaining needs (pip install --no-deps), it records only.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from cachescope.cli.arguments import add_output_arguments
from cachescope.errors import CachescopeError
from cachescope.terms import LOGGERS

if TYPE_CHECKING:
    from cachescope.capture.recording import Recorded
    from cachescope.scope import Scope


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "-o",
        "--output",
        default="cachescope-runs",
        metavar="FOLDER",
        help="where the runs are kept (cachescope-runs)",
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what to run")
    add_output_arguments(parser)
    parser.set_defaults(usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    """Run it, then explain."""
    from cachescope.cli.needed import missing_package
    from cachescope.cli.sources import redaction_of

    try:
        from cachescope.capture.recording import CommandNotFoundError, record
    except ModuleNotFoundError as error:
        if error.name not in ("fcntl", "termios"):
            raise
        raise CachescopeError(
            f'this system has no terminals of Unix; record with TORCH_TRACE=DIR TORCH_LOGS="{LOGGERS}"'
        ) from error
    redaction_of(args)  # before the command runs: hiding takes packages that may not be there
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        args.usage_error("give the command to run after --")
    for name in ("TORCH_TRACE", "TORCH_LOGS_OUT"):
        if os.environ.get(name):
            _say(args, f"{name} is set; for this run it points into {args.output}")
    try:
        recorded = record(command, args.output)
    except CommandNotFoundError as error:
        _say(args, str(error))
        return error.status
    ended = f", ended by {recorded.ended_by}" if recorded.ended_by else ""
    _say(args, f"its logs are in {recorded.folder} (exit status {recorded.exit_status}{ended})")
    if package := missing_package():
        _say(args, f"{package} is not installed here; explain it elsewhere: cachescope explain {args.output}")
    else:
        _explain(args, recorded)
    return recorded.exit_status


def _explain(args: argparse.Namespace, recorded: Recorded) -> None:
    from cachescope.answers.unrecorded import recorded_object, what_is_missing
    from cachescope.answers.why import RunsWent, Why
    from cachescope.cli.output import write_json, write_lines
    from cachescope.cli.sources import read_scope, redaction_of
    from cachescope.errors import SourceError
    from cachescope.readers.assemble import assemble
    from cachescope.readers.reading import Reading
    from cachescope.report.as_json import explain_object
    from cachescope.report.layout import Line
    from cachescope.report.terminal import answer_lines, run_lines
    from cachescope.scope import Scope

    try:
        scope = read_scope([args.output])
    except SourceError:
        scope = Scope(assemble(Reading()))
    runs = _runs_below(scope, str(recorded.folder))
    redaction = redaction_of(args, scope, [args.output])
    if args.json:
        write_json({**explain_object(scope), "recorded": recorded_object(scope, runs, recorded)}, redaction)
        return
    missing = what_is_missing(scope, runs, recorded)
    if not runs:
        for text in missing:
            _say(args, text)
        return
    further = (
        f"compared with what was recorded before: cachescope explain {args.output} shows all of it"
        if len(scope.runs) > len(runs)
        else "nothing was recorded before: run it again to have something to compare"
    )
    lines = [*run_lines(RunsWent.of(scope, runs)), *answer_lines(Why.of(scope, runs))]
    lines += [Line(text) for text in missing] + [Line(further, style="dim")]
    write_lines(lines, redaction)


def _runs_below(scope: Scope, folder: str) -> set[int]:
    place = os.path.join(os.path.realpath(folder), "")
    return {
        row["run"]
        for row in scope.facts.runs.values()
        if any(os.path.realpath(source).startswith(place) for source in row["sources"])
    }


def _say(args: argparse.Namespace, text: str) -> None:
    from cachescope.cli.sources import redaction_of
    from cachescope.wording import harmless_line

    redaction = redaction_of(args)
    text = text if redaction is None else redaction(text)
    print(harmless_line(f"cachescope: {text}"), file=sys.stderr, flush=True)
