"""Explain why lookups missed: the changed fields, old and new value, and what it cost.

PATHs are TORCH_TRACE files, TORCH_LOGS text, cache directories, vLLM's torch_compile_cache and its logs, remote caches
(redis://HOST:PORT/DB), or directories and globs of files. Their kind is recognized by their content. With --key or
--lookup, one lookup is explained in full.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments import (
    add_baseline_argument,
    add_output_arguments,
    add_reading_arguments,
    how_many,
)
from cachescope.cli.output import redaction_of, write_json, write_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="what to read")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--key", help="only the last miss of this key (its beginning is enough)")
    which.add_argument("--lookup", type=int, metavar="N", help="only this lookup")
    parser.add_argument("--causes", type=how_many, default=10, metavar="N", help="causes to show (10)")
    add_baseline_argument(parser)
    add_reading_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Read, and print the answer."""
    from cachescope.cli.sources import read_given

    scope = read_given(args, args.paths, args.baseline)
    redaction = redaction_of(args, scope, args.paths)
    which = args.key if args.key is not None else args.lookup
    explained = None if which is None else scope.explain(which)
    if args.json:
        from cachescope.report.as_json import explain_object, explanation_object

        printed = explain_object(scope)
        if explained is not None:
            printed["explanation"] = explanation_object(explained)
        write_json(printed, redaction)
    elif explained is not None:
        from cachescope.report.explanation import explanation_lines

        write_lines(explanation_lines(explained), redaction)
    else:
        from cachescope.answers.why import Why
        from cachescope.report.why_missed import answer_lines

        write_lines(answer_lines(Why.of(scope, most=args.causes)), redaction)
    return 0
