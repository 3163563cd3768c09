"""Compare two keys, runs, directories or machines field by field.

    cachescope diff A B            A and B are paths: one log, one cache directory, a directory of runs, a snapshot
                                   made by cachescope capture, or a remote cache (redis://HOST:PORT/DB)
    cachescope diff A B PATH...    A and B are looked up in the PATHs: a key (or its beginning), the number of
                                   a lookup, or run:N

Keys are paired by their graphs, and equal differences are combined. For a directory and a snapshot (or a run),
diff shows which entries that process would find. For a file of torch.compiler.save_cache_artifacts and a run or its
directory, it shows which lookups or entries the file covers.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments import add_source_arguments
from cachescope.cli.output import write_answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="A", help="a path; with PATHs: a key, a lookup, or run:N")
    parser.add_argument("after", metavar="B", help="the same")
    parser.add_argument("paths", nargs="*", default=[], metavar="PATH", help="where to look A and B up")
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from cachescope.answers.comparison import Comparison
    from cachescope.answers.difference import side_below, side_named
    from cachescope.cli.sources import read_given
    from cachescope.report.as_json import plain_rows
    from cachescope.report.comparison import comparison_blocks, comparison_object
    from cachescope.report.layout import problem_lines

    scope = read_given(args, args.paths or [args.before, args.after])
    if not args.paths and not {args.before, args.after}.isdisjoint(args.unread):
        # There is nothing to compare with.
        return 1
    side = side_named if args.paths else side_below
    found = Comparison.of(scope, side(scope, args.before), side(scope, args.after))
    return write_answer(
        args,
        lambda: {**comparison_object(found), "problems": plain_rows(scope.tables.problems.rows)},
        lambda: [*comparison_blocks(found), *problem_lines(scope.tables.problems.rows)],
    )
