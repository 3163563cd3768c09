"""Predict what a command would find in torch's caches: the command runs, but nothing is compiled or stored.

    cachescope preflight -- python train.py
    cachescope preflight --against /baked/cache --min-hit-rate 1 -- torchrun --nproc-per-node 2 train.py

Every graph is executed op by op, so the program runs as usual. For each lookup that a real run would make, the answer says
whether it would hit, miss or be bypassed, and why, or that this is not known. Lookups are checked against the cache directory
that the program would use, or against PATH: a cache directory, which may be empty, recordings of earlier runs, a lock, a
mega-cache file, or a remote cache (redis://HOST:PORT/DB, or a dump). They are only read. Python processes that the command starts
are covered, except those that ignore PYTHONPATH (python -I); where one compiles for real, the first line says so. A program that
saves compiled code ends there. Needs torch 2.8 or later, in the command's Python.

With --fake no weights are allocated: for models that do not fit here. A program that needs the value of a tensor, as in
loss.item(), stops there, and the line is named.

exit status: 0 it ran, 1 the command failed or nothing could be read, 2 wrong usage, or the program saves compiled code, or
needs values without weights, 3 fewer lookups would hit than --min-hit-rate asks for (an unknown outcome does not count as a hit), 126 and 127 the
command cannot be started
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from cachescope.cli.arguments import NOT_MET, add_output_arguments, command_after, share
from cachescope.cli.output import redaction_of, say, write_answer
from cachescope.errors import SourceError
from cachescope.wording import harmless

if TYPE_CHECKING:
    from cachescope.answers.preflight import PreflightAnswer
    from cachescope.capture.preflight_command import Preflown
    from cachescope.capture.recording import Recorded
    from cachescope.json_types import JsonObject
    from cachescope.report.blocks import Block
    from cachescope.scope import Scope

STDERR: Final = 2
_REFUSED: Final = 2
_NOTHING: Final = "nothing was seen: no process of the command compiled with torch, or those that did ignore PYTHONPATH (python -I, python -E)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    told = "what the lookups are checked against; may be repeated (the program's own cache directory)"
    parser.add_argument("--against", action="append", metavar="PATH", help=told)
    told = "run without weights: tensors have no values and take no memory (torch's FakeTensorMode)"
    parser.add_argument("--fake", action="store_true", help=told)
    told = "keep the traces in a new folder in FOLDER, for cachescope explain FOLDER PATH"
    parser.add_argument("--keep", metavar="FOLDER", help=told)
    told = "minimum share of lookups that would hit, from 0 to 1"
    parser.add_argument("--min-hit-rate", type=share, metavar="SHARE", help=told)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what to run")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    import tempfile

    from cachescope.capture.preflight_command import preflight
    from cachescope.scope.preflight import check_against

    redaction_of(args)
    command = command_after(args, args.command)
    check_against(args.against or [])
    with tempfile.TemporaryDirectory(prefix="cachescope-preflight-", ignore_cleanup_errors=True) as made:
        folder = made if args.keep is None else args.keep
        # What the program prints is no part of the JSON.
        output = STDERR if args.json else None
        return _answer(args, preflight(command, folder, args.against, fake=args.fake, output=output))


def _answer(args: argparse.Namespace, flown: Preflown) -> int:
    from cachescope.report.as_json import explain_object

    scope, answer = answered(args, flown, args.against)
    folder = flown.recorded.folder
    redaction_of(args, scope, [str(folder), *(args.against or [])])
    told = answer_object(flown, answer)
    write_answer(
        args, lambda: {**explain_object(scope), "preflight": told}, lambda: answer_blocks(flown, answer)
    )
    if args.keep is not None:
        say(f"its traces are in {folder}", redaction_of(args))
    least = args.min_hit_rate
    is_met = least is None or (answer.hit_rate or 0) >= least
    return failed_status(flown) or (0 if is_met else NOT_MET)


def answered(
    args: argparse.Namespace, flown: Preflown, against: list[str] | None
) -> tuple[Scope, PreflightAnswer]:
    """The predictions of a pre-flight; prints what is wrong, and ends if there is nothing to answer from."""
    from cachescope.answers.preflight import PreflightAnswer
    from cachescope.scope.preflight import read_preflight

    recorded = flown.recorded
    if flown.refused is not None or recorded.exit_status:
        why = flown.refused or _failure(recorded)
        say(f"{why}{'; what follows is as far as it came' * recorded.has_trace}", redaction_of(args))
    try:
        if recorded.has_trace:
            scope = read_preflight(str(recorded.folder), against)
            return scope, PreflightAnswer.of(scope)
        if flown.refused is None:
            say(_NOTHING, redaction_of(args))
    except SourceError as error:
        say(error, redaction_of(args))
    for remark in flown.remarks:
        say(remark, redaction_of(args))
    raise SystemExit(failed_status(flown) or 1)


def answer_blocks(flown: Preflown, answer: PreflightAnswer) -> list[Block]:
    """The answer, and before it what was not contained."""
    from cachescope.report.layout import Line
    from cachescope.report.preflight import preflight_blocks

    return [*(Line(harmless(remark), style="bold") for remark in flown.remarks), *preflight_blocks(answer)]


def answer_object(flown: Preflown, answer: PreflightAnswer) -> JsonObject:
    """What ``--json`` says of it."""
    from cachescope.report.preflight import preflight_object

    ended = {"exit_status": flown.recorded.exit_status, "refused": flown.refused}
    return preflight_object(answer) | ended | {"remarks": list(flown.remarks)}


def failed_status(flown: Preflown) -> int:
    """The exit status of cachescope after a command that failed: 128 + n if signal n stopped it, as of a shell; otherwise 0."""
    recorded = flown.recorded
    if flown.refused is not None:
        return _REFUSED
    if recorded.stopped_by is not None:
        return 128 + recorded.stopped_by
    return recorded.exit_status if recorded.ended_by == "SIGINT" else int(recorded.exit_status != 0)


def _failure(recorded: Recorded) -> str:
    if recorded.stopped_by is not None:
        return f"the command was stopped by {recorded.stopped_by.name} (exit status {recorded.exit_status})"
    ended = f", ended by {recorded.ended_by}" if recorded.ended_by else ""
    return f"the command failed (exit status {recorded.exit_status}{ended})"
