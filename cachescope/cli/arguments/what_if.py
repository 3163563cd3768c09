"""Replay the lookups as if some fields were not in the keys: what would have hit, and how much compile time it saves.

Without --without and --schema, the fields are ranked by what leaving them out would save. Fields may be patterns
(inductor_config[aot_inductor.*]), parts of inputs (example_inputs[*].device) or context forms (inductor_configs).
The replay uses what-if keys, which are cachescope's own. Only torch decides what is really safe to leave out.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments.shared import add_output_arguments, add_reading_arguments


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
