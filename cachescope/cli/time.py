"""Show where compile time went: the self time of each phase, for each process.

PATHs are TORCH_TRACE files, or directories and globs of them. Times come from the events that torch writes into traces. They
add up; time that no event covers has its own row. Below the table: what hits could still save, what stays, what hits saved.
Several processes are compared with each other; if several PATHs are given, each is represented by its slowest process.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments import add_source_arguments
from cachescope.cli.output import redaction_of, write_answer, write_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    told = "also write what each process did when, for ui.perfetto.dev, chrome://tracing, speedscope"
    parser.add_argument("--perfetto", metavar="FILE", help=told)
    add_source_arguments(parser, "what to read")


def run(args: argparse.Namespace) -> int:
    from cachescope.answers.time_spent import TimeSpent
    from cachescope.cli.sources import read_given
    from cachescope.report.as_json import time_object
    from cachescope.report.time_spent import time_blocks, trace_object

    scope = read_given(args, args.paths)
    spent = TimeSpent.of(scope, args.paths)
    if args.perfetto is not None:
        from cachescope.report.json_text import json_text

        redaction, found = redaction_of(args, scope, args.paths), trace_object(scope)
        write_file(
            args.perfetto, json_text(found if redaction is None else redaction(found), ascii_only=True)
        )
    return write_answer(args, lambda: time_object(scope, spent), lambda: time_blocks(spent))
