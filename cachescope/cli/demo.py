"""What `cachescope demo` runs."""

from __future__ import annotations

import argparse

from cachescope.answers.why import Why
from cachescope.cli.hiding import redaction_of
from cachescope.cli.output import write_json, write_lines
from cachescope.cli.sources import read_scope
from cachescope.report.as_json import explain_object
from cachescope.report.layout import Line
from cachescope.report.why_missed import answer_lines
from cachescope.samples import archive, is_packed, sample, sample_names


def run(args: argparse.Namespace) -> int:
    """Explain one sample, and say where to go on."""
    path = str(sample(args.name))
    scope = read_scope([path])
    redaction = redaction_of(args, scope, [path])
    if args.json:
        write_json(explain_object(scope), redaction)
        return 0
    others = ", ".join(name for name in sample_names() if name != args.name)
    lines = [
        *answer_lines(Why.of(scope)),
        Line(),
        # What was unpacked for this process is gone with it.
        Line(f"To read its files: tar -xf {archive(args.name)}; cachescope explain {args.name}", whole=True)
        if is_packed(args.name)
        else Line(f"This was: cachescope explain {path}", whole=True),
        Line(f"Other recordings: cachescope demo NAME, with NAME one of {others}"),
        Line("In Jupyter: make lab, which opens notebooks/01_why_did_it_miss.ipynb"),
        Line("On your own program: cachescope record -- python train.py"),
    ]
    write_lines(lines, redaction)
    return 0
