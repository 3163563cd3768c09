"""What `cachescope what-if` runs."""

from __future__ import annotations

import argparse

from cachescope.cli.hiding import redaction_of
from cachescope.cli.output import write_json, write_lines
from cachescope.cli.sources import read_given, read_schema
from cachescope.keys.key_schema import KeySchema, key_schema
from cachescope.report.layout import Line
from cachescope.report.what_if_forms import (
    sensitivity_lines,
    sensitivity_object,
    what_if_lines,
    what_if_object,
)
from cachescope.scope import Scope


def run(args: argparse.Namespace) -> int:
    """Read, replay, and print the answer."""
    schema = _schema(args)
    scope = read_given(args, args.paths)
    redaction = redaction_of(args, scope, args.paths)
    found = scope.what_if(schema)
    ranking = scope.sensitivity() if args.sensitivity or not (args.without or args.schema) else None
    if args.json:
        printed = what_if_object(found)
        write_json(printed if ranking is None else printed | sensitivity_object(ranking), redaction)
        return 0
    lines = what_if_lines(found)
    if ranking is not None and _has_lookups(scope):
        lines += [Line(), *sensitivity_lines(ranking)]
    write_lines(lines, redaction)
    return 0


def _has_lookups(scope: Scope) -> bool:
    return len(scope.lookups) > 0


def _schema(args: argparse.Namespace) -> KeySchema:
    schema = None if args.schema is None else read_schema(args.schema, KeySchema.from_json)
    return key_schema(schema, args.without)
