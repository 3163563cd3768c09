"""Explain the recordings that ship with cachescope: no torch, GPU or network is needed."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from cachescope.cli.sources import add_output_arguments

    parser.add_argument("name", nargs="?", help="only this recording")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Explain each sample; with ``--json``, one object per name."""
    from cachescope import __version__
    from cachescope.cli.output import write_json, write_lines
    from cachescope.cli.sources import read_scope, redaction_of
    from cachescope.report.as_json import explain_object
    from cachescope.report.layout import Line
    from cachescope.report.terminal import answer_lines
    from cachescope.samples import sample, sample_names

    printed = {}
    names = sample_names() if args.name is None else [args.name]
    for name in names:
        path = str(sample(name))
        scope = read_scope([path])
        redaction = redaction_of(args, scope, [path])
        if args.json:
            printed[name] = explain_object(scope) if redaction is None else redaction(explain_object(scope))
        else:
            title = Line(f"── {name}: cachescope explain {path}", style="cyan")
            write_lines([title, *answer_lines(scope), Line()], redaction)
    if args.json:
        write_json({"cachescope": __version__, "samples": printed})
    else:
        how = "In Jupyter: make lab, which opens notebooks/01_why_did_it_miss.ipynb"
        write_lines([Line(how), Line("On your own program: cachescope record -- python train.py")])
    return 0
