"""What `cachescope contexts` runs."""

from __future__ import annotations

import argparse

from cachescope.answers.sharing import Sharing
from cachescope.cli.hiding import redaction_of
from cachescope.cli.output import write_json, write_lines
from cachescope.cli.sources import read_given, read_schema
from cachescope.keys import IsolationSchema
from cachescope.report.contexts import context_lines, contexts_object


def run(args: argparse.Namespace) -> int:
    """Read, and print."""
    schema = (
        IsolationSchema.all() if args.schema is None else read_schema(args.schema, IsolationSchema.from_json)
    )
    scope = read_given(args, args.paths)
    redaction = redaction_of(args, scope, args.paths)
    if args.json:
        write_json(contexts_object(scope, schema), redaction)
    else:
        write_lines(context_lines(Sharing.of(scope, schema)), redaction)
    return 0
