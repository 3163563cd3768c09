"""What is printed of a run that `cachescope record` recorded, once it has ended."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from cachescope.answers.unrecorded import recorded_object, what_is_missing
from cachescope.answers.why import RunsWent, Why
from cachescope.capture.recording import Recorded
from cachescope.cli.hiding import redaction_of
from cachescope.cli.output import write_json, write_lines
from cachescope.cli.sources import read_scope
from cachescope.errors import SourceError
from cachescope.readers.assemble import assemble
from cachescope.readers.reading import Reading
from cachescope.report.as_json import explain_object
from cachescope.report.layout import Line
from cachescope.report.why_missed import answer_lines, run_lines
from cachescope.scope import Scope


def explain(args: argparse.Namespace, recorded: Recorded) -> Sequence[str]:
    """Explain its lookups; or, where it recorded nothing, return the reasons."""
    try:
        scope = read_scope([args.output])
    except SourceError:
        scope = Scope(assemble(Reading()))
    runs = _runs_below(scope, str(recorded.folder))
    redaction = redaction_of(args, scope, [args.output])
    if args.json:
        write_json({**explain_object(scope), "recorded": recorded_object(scope, runs, recorded)}, redaction)
        return ()
    missing = what_is_missing(scope, runs, recorded)
    if not runs:
        return missing
    further = (
        f"compared with what was recorded before: cachescope explain {args.output} shows all of it"
        if len(scope.runs) > len(runs)
        else "nothing was recorded before: run it again to have something to compare"
    )
    lines = [*run_lines(RunsWent.of(scope, runs)), *answer_lines(Why.of(scope, runs))]
    lines += [Line(text) for text in missing] + [Line(further, style="dim")]
    write_lines(lines, redaction)
    return ()


def _runs_below(scope: Scope, folder: str) -> set[int]:
    place = os.path.join(os.path.realpath(folder), "")
    return {
        row.run
        for row in scope.facts.runs.values()
        if any(os.path.realpath(source).startswith(place) for source in row.sources)
    }
