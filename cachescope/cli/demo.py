"""Explain the recordings that ship with cachescope: no torch, GPU or network is needed."""

from __future__ import annotations

import argparse

from cachescope.cli.arguments import add_output_arguments
from cachescope.cli.output import redaction_of, write_answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from cachescope.samples import sample_names

    names = ", ".join(sample_names())
    parser.add_argument("name", nargs="?", default="tour", help=f"which recording (tour): {names}")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from cachescope.cli.sources import read_scope
    from cachescope.report.as_json import explain_object
    from cachescope.report.layout import Line
    from cachescope.report.why_missed import answer_blocks
    from cachescope.samples import sample_names, shipped

    path = str(shipped(args.name))
    scope = read_scope([path])
    redaction_of(args, scope, [path])
    others = ", ".join(name for name in sample_names() if name != args.name)
    further = [
        Line(),
        Line(f"This was: cachescope explain {path}", whole=True),
        Line(f"Other recordings: cachescope demo NAME, with NAME one of {others}"),
        Line("In Jupyter: make lab, which opens notebooks/01_why_did_it_miss.ipynb"),
        Line("On your own program: cachescope record -- python train.py"),
    ]
    return write_answer(args, lambda: explain_object(scope), lambda: [*answer_blocks(scope), *further])
