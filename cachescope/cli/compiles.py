"""List what torch compiled and why: recompiles and the guards that failed, graph breaks, sizes that became symbols.

PATHs are TORCH_TRACE files, or directories and globs of them.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments import add_source_arguments
from cachescope.cli.output import write_answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="what to read")
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from cachescope.answers.compiled import Compiled
    from cachescope.cli.sources import read_given
    from cachescope.report.as_json import compiles_object
    from cachescope.report.compiled import compiled_lines

    scope = read_given(args, args.paths)
    return write_answer(args, lambda: compiles_object(scope), lambda: compiled_lines(Compiled.of(scope)))
