"""What `cachescope compiles` runs."""

from __future__ import annotations

import argparse

from cachescope.answers.compiled import Compiled
from cachescope.cli.hiding import redaction_of
from cachescope.cli.output import write_json, write_lines
from cachescope.cli.sources import read_given
from cachescope.report.as_json import compiles_object
from cachescope.report.compiled import compiled_lines


def run(args: argparse.Namespace) -> int:
    """Read, and print the lists."""
    scope = read_given(args, args.paths)
    redaction = redaction_of(args, scope, args.paths)
    if args.json:
        write_json(compiles_object(scope), redaction)
    else:
        write_lines(compiled_lines(Compiled.of(scope)), redaction)
    return 0
