"""What `cachescope time` runs."""

from __future__ import annotations

import argparse

from cachescope.answers.time_spent import TimeSpent
from cachescope.cli.hiding import redaction_of
from cachescope.cli.output import write_json, write_lines
from cachescope.cli.sources import read_given
from cachescope.report.as_json import time_object
from cachescope.report.time_spent import time_lines


def run(args: argparse.Namespace) -> int:
    """Read, and print the table."""
    scope = read_given(args, args.paths)
    spent = TimeSpent.of(scope, args.paths)
    redaction = redaction_of(args, scope, args.paths)
    if args.json:
        write_json(time_object(scope, spent), redaction)
    else:
        write_lines(time_lines(spent), redaction)
    return 0
