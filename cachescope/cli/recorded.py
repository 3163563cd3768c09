"""Show what traces recorded of one compile: its graphs, its guards, its generated code.

    cachescope recorded 0/0 PATH                                what there is
    cachescope recorded 0/0 PATH --show inductor_output_code    the texts of this name, equal ones once

PATHs are TORCH_TRACE files, or directories and globs of them. Nothing that is shown is run.
"""

from __future__ import annotations

import argparse
from typing import Any

from cachescope.cli.arguments import add_source_arguments
from cachescope.cli.output import redaction_of, write_answer, write_source
from cachescope.errors import NotFoundError
from cachescope.wording import numbered


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("compile", metavar="COMPILE", help="the compile, as 0/0")
    parser.add_argument(
        "--show", metavar="NAME", help="print the texts of this name, equal ones of several runs once"
    )
    add_source_arguments(parser, "what to read")


def run(args: argparse.Namespace) -> int:
    from cachescope.cli.sources import read_given
    from cachescope.grouping import by_key
    from cachescope.readers.logs.second_pass import recorded_texts
    from cachescope.report.as_json import rows_object
    from cachescope.report.compiled import recorded_lines

    scope = read_given(args, args.paths)
    every, problems = recorded_texts(scope.tables.runs.rows, scope.tables.stamps, args.compile)
    texts = [one for one in every if args.show in (None, one.name)]
    if not texts:
        names = ", ".join(dict.fromkeys(one.name for one in every))
        raise NotFoundError(f"compile {args.compile} has no text {args.show!r}; it has {names}")
    if args.show is None or args.json:
        told: dict[str, Any] = {"recorded": texts, "problems": problems}
        return write_answer(args, lambda: rows_object(**told), lambda: recorded_lines(texts, problems))
    for (name, text, is_whole), alike in by_key(
        ((one.name, one.text, one.is_whole), one) for one in texts
    ).items():
        cut = "" if is_whole else ", incomplete: its log was cut or changed"
        title = f"# {name} of compile {alike[0].compile_id}, {numbered('run', sorted({one.run for one in alike}))}{cut}"
        write_source(f"{title}\n{text}", "python", redaction_of(args))
    return 0
