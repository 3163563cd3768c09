"""What `cachescope diff` runs."""

from __future__ import annotations

import argparse

from cachescope.answers.comparison import Comparison
from cachescope.answers.sides import side_below, side_named
from cachescope.cli.hiding import redaction_of
from cachescope.cli.output import write_json, write_lines
from cachescope.cli.sources import read_given
from cachescope.report.as_json import frame_rows
from cachescope.report.comparison import comparison_lines, comparison_object
from cachescope.report.why_missed import problem_lines
from cachescope.version import __version__


def run(args: argparse.Namespace) -> int:
    """Read, pair and print."""
    paths = args.paths or [args.before, args.after]
    scope = read_given(args, paths)
    if not args.paths and not {args.before, args.after}.isdisjoint(args.unread):
        # There is nothing to compare with.
        return 1
    side = side_named if args.paths else side_below
    found = Comparison.of(scope, side(scope, args.before), side(scope, args.after))
    redaction = redaction_of(args, scope, paths)
    if args.json:
        printed = {"cachescope": __version__, **comparison_object(found)}
        write_json({**printed, "problems": frame_rows(scope.problems)}, redaction)
    else:
        write_lines([*comparison_lines(found), *problem_lines(scope.facts.problems)], redaction)
    return 0
