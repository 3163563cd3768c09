"""The commands of `cachescope.report.subjects`.

PATHs are TORCH_TRACE files, or directories and globs of them.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments import add_source_arguments
from cachescope.cli.output import redaction_of, write_answer, write_blocks


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--markdown", action="store_true", help="print it as Markdown")
    add_source_arguments(parser, "what to read")


def run(args: argparse.Namespace) -> int:
    from cachescope.cli.sources import read_given
    from cachescope.report.as_json import rows_object
    from cachescope.report.subjects import told

    scope, module = read_given(args, args.paths), told(args.subject)
    if args.markdown:
        from cachescope.report.page.markdown import markdown_of

        write_blocks(markdown_of(module.blocks(scope), redaction_of(args)))
        return 0
    return write_answer(args, lambda: rows_object(**module.rows(scope)), lambda: module.blocks(scope))
