"""What `cachescope what-if` runs."""

from __future__ import annotations

import argparse

from cachescope.cli.hiding import redaction_of
from cachescope.cli.output import write_json, write_lines
from cachescope.cli.sources import read_given, read_schema
from cachescope.keys.key_schema import KeySchema, key_schema
from cachescope.report.layout import Line
from cachescope.report.what_if_forms import (
    saving_lines,
    sensitivity_lines,
    sensitivity_object,
    what_if_lines,
    what_if_object,
)


def run(args: argparse.Namespace) -> int:
    """Read, replay, and print the answer."""
    schema = _schema(args)
    scope = read_given(args, args.paths)
    redaction = redaction_of(args, scope, args.paths)
    found = scope.what_if(schema)
    is_ranked = args.sensitivity or not (args.without or args.schema)
    if args.json:
        printed = what_if_object(found)
        if is_ranked:
            printed |= sensitivity_object(scope.sensitivity(), scope.cause_savings())
        write_json(printed, redaction)
        return 0
    lines = what_if_lines(found)
    if is_ranked and len(scope.lookups):
        lines += [Line(), *sensitivity_lines(scope.sensitivity())]
        by_cause = saving_lines(scope.cause_savings())
        lines += [Line(), *by_cause] if by_cause else []
    write_lines(lines, redaction)
    return 0


def _schema(args: argparse.Namespace) -> KeySchema:
    schema = None if args.schema is None else read_schema(args.schema, KeySchema.from_json)
    return key_schema(schema, args.without)
