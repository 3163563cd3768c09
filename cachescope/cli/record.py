"""Run a command with torch's cache logs on, then explain its lookups against the runs recorded earlier.

    cachescope record -- python train.py

The command keeps the terminal and its exit status. Its trace and log are written to a new folder in FOLDER. The DEBUG records
of the two cache loggers go only to the log, not to the terminal. If cachescope was installed without the packages
that explaining needs (pip install --no-deps), it only records.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cachescope.cli.arguments import add_output_arguments, command_after
from cachescope.cli.needed import missing_package
from cachescope.cli.output import redaction_of, say, write_answer
from cachescope.errors import CachescopeError, SourceError
from cachescope.terms import LOGGERS

if TYPE_CHECKING:
    from pathlib import Path

    from cachescope.capture.recording import Recorded
    from cachescope.scope import Scope


def add_arguments(parser: argparse.ArgumentParser) -> None:
    told = "where the runs are kept (cachescope-runs)"
    parser.add_argument("-o", "--output", default="cachescope-runs", metavar="FOLDER", help=told)
    parser.add_argument(
        "--label", help="a name for the run: answers show it, not what tells its command from others"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what to run")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """No package is needed to record."""
    from cachescope.capture.recording import record

    if os.name != "posix":
        raise CachescopeError(
            f'this system is not a Unix; record with TORCH_TRACE=DIR TORCH_LOGS="{LOGGERS}"'
        )
    redaction = redaction_of(args)
    command = command_after(args, args.command)
    for name in ("TORCH_TRACE", "TORCH_LOGS_OUT"):
        if os.environ.get(name):
            say(f"{name} is set; for this run it points into {args.output}", redaction)
    recorded = record(command, args.output, more_about={"label": args.label} if args.label else None)
    ended = f", ended by {recorded.ended_by}" if recorded.ended_by else ""
    say(f"its logs are in {recorded.folder} (exit status {recorded.exit_status}{ended})", redaction)
    if package := missing_package():
        command_there = f"cachescope explain {args.output}"
        say(f"{package} is not installed here; explain it elsewhere: {command_there}", redaction)
    else:
        for text in _explain(args, recorded):
            say(text, redaction)
    return recorded.exit_status


def _runs_in(scope: Scope, folder: Path) -> set[int]:
    """The runs whose logs lie in a folder."""
    place = os.path.join(os.path.realpath(folder), "")
    rows = scope.facts.runs.values()
    return {row.run for row in rows if any(os.path.realpath(one).startswith(place) for one in row.sources)}


def _explain(args: argparse.Namespace, recorded: Recorded) -> Sequence[str]:
    """Explain its lookups; or, where it recorded nothing, return the reasons."""
    from cachescope.answers.unrecorded import keys_beside, what_is_missing
    from cachescope.cli.sources import read_scope
    from cachescope.readers.assemble import assemble
    from cachescope.readers.directory.default_root import default_root
    from cachescope.readers.reading import Reading
    from cachescope.report.as_json import explain_object
    from cachescope.report.layout import Line
    from cachescope.report.why_missed import answer_blocks
    from cachescope.scope import Scope

    try:
        scope = read_scope([args.output])
    except SourceError:
        scope = Scope(assemble(Reading()))
    runs = _runs_in(scope, recorded.folder)
    given, root = [args.output], default_root()
    # What others had stored says more about a first lookup than that nothing was recorded before. The program may have removed it.
    if keys_beside(scope, runs, recorded.before) and recorded.after[root]:
        given.append(root)
        scope = read_scope(given)
        runs = _runs_in(scope, recorded.folder)
    redaction_of(args, scope, given)
    missing = what_is_missing(scope, runs, recorded)
    if not runs and not args.json:
        return missing
    before = ["what was recorded before"] if len(scope.runs) > len(runs) else []
    before += [f"what lay in {one}" for one in given[1:]]
    further = "nothing was recorded before: run it again to have something to compare"
    if before:
        again = shlex.join(("cachescope", "explain", *given))
        further = f"compared with {' and '.join(before)}: {again} shows all of it"
    told = {"folder": str(recorded.folder), "runs": sorted(runs), "exit_status": recorded.exit_status}
    told["not_recorded"] = missing
    write_answer(
        args,
        lambda: {**explain_object(scope), "recorded": told},
        lambda: [*answer_blocks(scope, runs), *map(Line, missing), Line(further, style="dim")],
    )
    return ()
