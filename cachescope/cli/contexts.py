"""Show which processes are alike: isolation contexts, their keys, which processes share one, and what differs.

PATHs are snapshots (cachescope capture), traces, logs or cache directories. The contexts of recorded runs are
reconstructed from their hash details, as far as possible; nothing is guessed.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments import add_source_arguments
from cachescope.cli.output import write_answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    told = 'which forms count, as JSON: {"runtime_context": true, "compile_context": {"runtime": true}}'
    parser.add_argument("--schema", metavar="FILE", help=told)
    add_source_arguments(parser, "a snapshot, or what explain reads")


def run(args: argparse.Namespace) -> int:
    from cachescope.cli.sources import read_given, read_schema
    from cachescope.keys import IsolationSchema
    from cachescope.report.contexts import contexts_blocks, contexts_object

    schema = (
        IsolationSchema.all() if args.schema is None else read_schema(args.schema, IsolationSchema.from_json)
    )
    scope = read_given(args, args.paths)
    return write_answer(args, lambda: contexts_object(scope, schema), lambda: contexts_blocks(scope, schema))
