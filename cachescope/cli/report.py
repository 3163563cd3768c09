"""What `cachescope report` runs."""

from __future__ import annotations

import argparse

from cachescope.answers.summary import headline
from cachescope.cli.hiding import redaction_of
from cachescope.cli.output import write_json, write_lines
from cachescope.cli.sources import read_given
from cachescope.report.layout import Line
from cachescope.wording import file_size, harmless


def run(args: argparse.Namespace) -> int:
    """Read, write the file, and say where it is."""
    scope = read_given(args, args.paths, args.baseline)
    path = scope.report(args.output, redact=args.redact)
    size = path.stat().st_size
    redaction = redaction_of(args, scope, args.paths)
    if args.json:
        write_json({"report": str(path), "bytes": size})
    else:
        # Where the file is was said by whoever asks; what was read was not.
        write_lines([Line(headline(scope))], redaction)
        write_lines([Line(f"{harmless(str(path))}  {file_size(size)}", whole=True)])
    return 0
