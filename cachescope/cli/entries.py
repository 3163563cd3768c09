"""List what a cache directory holds: files by kind and status, their size and age, what is damaged, what can go.

DIRs are opened read-only; entries are parsed, never unpickled. Nothing is removed: --prune-list only prints paths.
"""

from __future__ import annotations

import argparse
import os


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from cachescope.cli.sources import add_output_arguments

    parser.add_argument("paths", nargs="+", metavar="DIR", help="a torchinductor cache directory")
    parser.add_argument("--strict", action="store_true", help="stop at the first damaged entry")
    parser.add_argument("--most", type=int, default=20, metavar="N", help="entries to list (20, the newest)")
    parser.add_argument(
        "--prune-list",
        action="store_true",
        help="print only the paths that can go, one per line, for: xargs -d '\\n' rm --",
    )
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Read, and print the table."""
    from cachescope.cli.output import write_json, write_lines, write_plain
    from cachescope.cli.sources import read_scope, redaction_of
    from cachescope.report.as_json import entries_object
    from cachescope.report.entry_table import entry_lines

    scope = read_scope(args.paths, strict=args.strict)
    if args.prune_list:
        # A name with a newline would become two, and one that is not UTF-8 is shown with escapes.
        write_plain(path for path in scope.removable["path"] if "\n" not in path and os.path.lexists(path))
        return 0
    redaction = redaction_of(args, scope, args.paths)
    if args.json:
        write_json(entries_object(scope), redaction)
    else:
        write_lines(entry_lines(scope, args.most), redaction)
    return 0
