"""Replay the lookups as if some fields were not in the keys: what would have hit, and how much compile time it saves.

Without --without and --schema, the fields are ranked by what leaving them out would save. Fields may be patterns
(inductor_config[aot_inductor.*]), parts of inputs (example_inputs[*].device) or context forms (inductor_configs).
The replay uses what-if keys, which are cachescope's own. Only torch decides what is really safe to leave out.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments import add_source_arguments
from cachescope.cli.output import write_answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    told = "a field, pattern or context form that does not count; may be repeated"
    parser.add_argument("--without", action="append", default=[], metavar="FIELD", help=told)
    parser.add_argument(
        "--schema", metavar="FILE.json", help='{"runtime_context": …, "compile_context": …, "without": […]}'
    )
    parser.add_argument("--sensitivity", action="store_true", help="also rank the fields")
    add_source_arguments(parser, "what to read")


def run(args: argparse.Namespace) -> int:
    from cachescope.cli.sources import read_given, read_schema
    from cachescope.keys.key_schema import KeySchema, key_schema
    from cachescope.report.as_json import rows_object
    from cachescope.report.layout import parted
    from cachescope.report.what_if_forms import (
        saving_blocks,
        sensitivity_lines,
        what_if_lines,
        what_if_object,
    )

    given = None if args.schema is None else read_schema(args.schema, KeySchema.from_json)
    schema = key_schema(given, args.without)
    scope = read_given(args, args.paths)
    found = scope.what_if(schema)
    if not args.sensitivity and (args.without or args.schema):
        return write_answer(args, lambda: what_if_object(found), lambda: what_if_lines(found))
    ranking, savings = scope.sensitivity_rows(), scope.saving_rows()
    further = parted([sensitivity_lines(ranking), saving_blocks(scope)]) if scope.facts.lookups else ()
    return write_answer(
        args,
        lambda: what_if_object(found) | rows_object(sensitivity=ranking, cause_savings=savings),
        lambda: [*what_if_lines(found), *further],
    )
