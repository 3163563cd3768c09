"""Replay the lookups as if some fields were not in the keys: what would have hit, and how much compile time it saves.

Without --without and --schema, the fields are ranked by what leaving them out would save. Fields may be patterns
(inductor_config[aot_inductor.*]), parts of inputs (example_inputs[*].device) or context forms (inductor_configs).
The replay uses what-if keys, which are cachescope's own. Only torch decides what is really safe to leave out.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cachescope.cli.arguments import add_output_arguments, add_reading_arguments
from cachescope.cli.output import redaction_of, write_json, write_lines

if TYPE_CHECKING:
    from cachescope.keys.key_schema import KeySchema


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="what to read")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="FIELD",
        help="a field, pattern or context form that does not count; may be repeated",
    )
    parser.add_argument(
        "--schema", metavar="FILE.json", help='{"runtime_context": …, "compile_context": …, "without": […]}'
    )
    parser.add_argument("--sensitivity", action="store_true", help="also rank the fields")
    add_reading_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Read, replay, and print the answer."""
    from cachescope.cli.sources import read_given
    from cachescope.report.as_json import frames_object
    from cachescope.report.layout import Line
    from cachescope.report.what_if_forms import (
        saving_lines,
        sensitivity_lines,
        what_if_lines,
        what_if_object,
    )

    schema = _schema(args)
    scope = read_given(args, args.paths)
    redaction = redaction_of(args, scope, args.paths)
    found = scope.what_if(schema)
    is_ranked = args.sensitivity or not (args.without or args.schema)
    if args.json:
        printed = what_if_object(found)
        if is_ranked:
            printed |= frames_object(sensitivity=scope.sensitivity(), cause_savings=scope.cause_savings())
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
    from cachescope.cli.sources import read_schema
    from cachescope.keys.key_schema import KeySchema, key_schema

    schema = None if args.schema is None else read_schema(args.schema, KeySchema.from_json)
    return key_schema(schema, args.without)
