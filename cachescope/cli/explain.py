"""What `cachescope explain` runs."""

from __future__ import annotations

import argparse

from cachescope.answers.why import Why
from cachescope.cli.hiding import redaction_of
from cachescope.cli.output import write_json, write_lines
from cachescope.cli.sources import read_given
from cachescope.report.as_json import explain_object, explanation_object
from cachescope.report.explanation import explanation_lines
from cachescope.report.why_missed import answer_lines


def run(args: argparse.Namespace) -> int:
    """Read, and print the answer."""
    scope = read_given(args, args.paths, args.baseline)
    redaction = redaction_of(args, scope, args.paths)
    which = args.key if args.key is not None else args.lookup
    explained = None if which is None else scope.explain(which)
    if args.json:
        printed = explain_object(scope)
        if explained is not None:
            printed["explanation"] = explanation_object(explained)
        write_json(printed, redaction)
    elif explained is not None:
        write_lines(explanation_lines(explained), redaction)
    else:
        write_lines(answer_lines(Why.of(scope, most=args.causes)), redaction)
    return 0
