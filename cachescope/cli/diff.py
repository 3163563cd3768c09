"""Compare two keys, runs or directories field by field.

    cachescope diff A B            A and B are paths: one log, one cache directory, or a directory of runs
    cachescope diff A B PATH...    A and B are in what the PATHs hold: a key (or its beginning), the number of
                                   a lookup, or run:N

Keys are paired by their graphs, and equal differences are folded together.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from cachescope.errors import NotFoundError

if TYPE_CHECKING:
    from cachescope.analysis.history import LookupRow
    from cachescope.scope import Scope


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from cachescope.cli.sources import add_output_arguments

    parser.add_argument("before", metavar="A", help="a path; with PATHs: a key, a lookup, or run:N")
    parser.add_argument("after", metavar="B", help="the same")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="where to look A and B up")
    parser.add_argument("--strict", action="store_true", help="stop at the first damaged record")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Read, pair and print."""
    from cachescope import __version__
    from cachescope.cli.output import write_json, write_lines
    from cachescope.cli.sources import read_scope, redaction_of
    from cachescope.report.as_json import frame_rows
    from cachescope.report.difference import difference
    from cachescope.report.difference_forms import difference_lines, difference_object
    from cachescope.report.terminal import problem_lines

    names = (args.before, args.after)
    paths = args.paths or list(names)
    scope = read_scope(paths, strict=args.strict)
    before, after = (_named(scope, name) if args.paths else _below(scope, name) for name in names)
    found = difference(scope, before, after, names)
    redaction = redaction_of(args, scope, paths)
    if args.json:
        printed = {"cachescope": __version__, **difference_object(found)}
        write_json({**printed, "problems": frame_rows(scope.problems)}, redaction)
    else:
        write_lines([*difference_lines(found), *problem_lines(scope)], redaction)
    return 0


def _below(scope: Scope, path: str) -> list[LookupRow]:
    """What was read from a path, or from what a pattern matches."""
    import glob

    from cachescope.report.difference import side_of_runs

    given = [path] if os.path.lexists(path) else glob.glob(path, recursive=True)
    places = [place for name in given for place in (name, os.path.join(name, ""))]

    def is_below(source: str) -> bool:
        return source in places or source.startswith(tuple(p for p in places if p.endswith(os.sep)))

    runs = [
        run
        for run, sources in zip(scope.runs["run"], scope.runs["sources"], strict=True)
        if any(map(is_below, sources))
    ]
    return side_of_runs(scope, runs, [place for place in places if place.endswith(os.sep)])


def _named(scope: Scope, name: str) -> list[LookupRow]:
    """A key, a lookup, or the keys of a run."""
    from cachescope.report.difference import side_of_runs

    everything = side_of_runs(scope, scope.runs["run"].tolist(), [""])
    kind, _, number = name.partition(":")
    if kind == "run" and number.isdecimal():
        if int(number) not in scope.facts.runs:
            raise NotFoundError(f"no run {number}; there are runs 0 to {len(scope.runs) - 1}")
        return side_of_runs(scope, [int(number)], [])
    if name.isdecimal():
        lookup = scope.facts.lookups.get(int(name))
        if lookup is None:
            raise NotFoundError(f"no lookup {name}; there are {len(scope.lookups)}")
        found = [row for row in everything if row.cache_key == lookup["cache_key"]]
    else:
        found = [row for row in everything if name and (row.cache_key or "").startswith(name)]
    if not found:
        raise NotFoundError(f"no key {name!r} in what was read; A and B are paths only without further PATHs")
    if len(found) > 1:
        raise NotFoundError(f"{name!r} begins {len(found)} keys; give more of it")
    return found
