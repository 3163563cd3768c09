"""Check the lookups of a job against bars, for CI: exit status 3, with the causes, if a bar is not met.

    cachescope check runs/ --min-hit-rate 0.9 --max-time-lost 30s
    cachescope check runs/ "$TORCHINDUCTOR_CACHE_DIR" --against base/

All lookups of all PATHs count, and the first lookups of a cold start are misses: to check a warm run, give only its
logs. If the cache directory is given too, misses are compared with its entries. If no lookup is recorded, no bar is met,
because nothing was checked.

--against BASE fails if a start is worse than what was stored: if a cause (verdict and fields) is new, if the hit rate is lower, or if
the avoidable seconds of a start are more than a quarter above those of the base. All lookups of BASE count as well: a rate
is a share of all, and seconds are the mean of the starts, of each its slowest rank. What one side does not record meets no bar.

exit status: 0 every bar is met, 1 a source could not be read, 2 wrong usage (no bar is wrong usage), 3 a bar is not met
"""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Final

from cachescope.cli.arguments import (
    NOT_MET,
    add_format_arguments,
    add_reading_arguments,
    add_redact_argument,
    share,
)
from cachescope.cli.output import redaction_of, write_blocks, write_json, write_plain
from cachescope.version import __version__

if TYPE_CHECKING:
    from cachescope.answers.check import Check
    from cachescope.report.redact import Redaction
    from cachescope.scope import Scope

_UNITS_NS: Final = {"": 1e9, "s": 1e9, "ms": 1e6, "min": 60e9}
_TIME: Final = re.compile(r"(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>|s|ms|min)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="what to read; all lookups in it count")
    told = "minimum hit rate by count, from 0 to 1, such as 0.9"
    parser.add_argument("--min-hit-rate", type=share, metavar="SHARE", help=told)
    told = "maximum compile time lost to misses, such as 30s, 500ms, 2min, or plain seconds"
    parser.add_argument("--max-time-lost", type=_nanoseconds, metavar="TIME", help=told)
    told = "what it may not be worse than: a saved scope, or anything that can be read"
    parser.add_argument("--against", metavar="BASE", help=told)
    add_format_arguments(parser, ("text", "json", "markdown", "github", "junit"))
    add_reading_arguments(parser)
    add_redact_argument(parser)


def _nanoseconds(text: str) -> int:
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time, such as 30s, 500ms, 2min, or plain seconds")
    return round(float(match["number"]) * _UNITS_NS[match["unit"]])


def run(args: argparse.Namespace) -> int:
    from cachescope.cli.sources import read_given

    if args.min_hit_rate is None and args.max_time_lost is None and args.against is None:
        args.usage_error("give a bar: --min-hit-rate, --max-time-lost, or --against BASE")
    scope = read_given(args, args.paths)
    base = None if args.against is None else read_given(args, [args.against])
    checked = scope.check(args.min_hit_rate, args.max_time_lost, base)
    _write(checked, scope, args.format, redaction_of(args))
    return 0 if checked.passed else NOT_MET


def _write(checked: Check, scope: Scope, form: str, redaction: Redaction | None) -> None:
    from dataclasses import replace

    from cachescope.report.check_forms import (
        check_lines,
        check_object,
        github_lines,
        junit_text,
        markdown_lines,
    )

    if form == "json":
        write_json({"cachescope": __version__, **check_object(checked, scope)}, redaction)
        return
    if redaction is not None:
        # Before anything is escaped.
        hidden = {name: redaction(getattr(checked, name)) for name in ("causes", "headline", "unread")}
        bars = tuple(replace(bar, reason=redaction(bar.reason)) for bar in checked.bars)
        checked = replace(checked, bars=bars, **hidden)
    if form == "markdown":
        write_blocks(markdown_lines(checked))
    elif form == "github":
        write_plain(github_lines(checked))
    elif form == "junit":
        write_plain([junit_text(checked)])
    else:
        write_blocks(check_lines(checked))
