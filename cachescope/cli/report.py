"""Write one HTML file with figures, tables and explanations, for people without Jupyter. It works offline.

With --markdown, print the answer as Markdown instead, for a pull request or an issue.

PATHs are TORCH_TRACE files, TORCH_LOGS text, cache directories, or directories and globs of them. The file loads nothing
from anywhere. --redact hides what may identify you before you send it.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments import add_baseline_argument, add_source_arguments
from cachescope.cli.output import redaction_of, write_blocks, write_json
from cachescope.wording import file_size, harmless


def add_arguments(parser: argparse.ArgumentParser) -> None:
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("-o", "--output", metavar="FILE.html", help="where to write it")
    how.add_argument("--markdown", action="store_true", help="print the answer as Markdown")
    add_baseline_argument(parser)
    add_source_arguments(parser, "what to read")


def run(args: argparse.Namespace) -> int:
    from cachescope.answers.chosen import Chosen
    from cachescope.answers.costs import headline
    from cachescope.cli.sources import read_given
    from cachescope.report.layout import Line

    scope = read_given(args, args.paths, args.baseline)
    if args.markdown:
        from cachescope.report.page.markdown import markdown

        text = markdown(scope, redact=args.redact)
        write_blocks([Line(line, whole=True) for line in text.splitlines()])
        return 0
    path = scope.report(args.output, redact=args.redact)
    size = path.stat().st_size
    if args.json:
        write_json({"report": str(path), "bytes": size})
    else:
        # Where the file is was said by whoever asks; what was read was not.
        write_blocks([Line(headline(Chosen(scope)))], redaction_of(args))
        write_blocks([Line(f"{harmless(str(path))}  {file_size(size)}", whole=True)])
    return 0
