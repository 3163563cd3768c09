"""Check the lookups of a job against bars, for CI: exit status 3, with the causes, if a bar is not met.

    cachescope check runs/ --min-hit-rate 0.9 --max-time-lost 30s
    cachescope check runs/ "$TORCHINDUCTOR_CACHE_DIR" --no-new-cause --baseline saved/

All lookups of all PATHs count, and the first lookups of a cold start are misses: to check a warm run, give only its
logs. If the cache directory is given too, misses are compared with its entries. If nothing was looked up, no bar is met,
because nothing was checked.

exit status: 0 every bar is met, 1 a source could not be read, 2 wrong usage (no bar is wrong usage), 3 a bar is not met
"""

from __future__ import annotations

import argparse
import math
import re
from typing import Final

from cachescope.cli.arguments.shared import add_format_arguments, add_reading_arguments, add_redact_argument

_FORMATS: Final = ("text", "json", "github", "junit")
_UNITS_NS: Final = {"": 1e9, "s": 1e9, "ms": 1e6, "min": 60e9}
_TIME: Final = re.compile(r"(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>|s|ms|min)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="what to read; all lookups in it count")
    parser.add_argument(
        "--min-hit-rate",
        type=share,
        metavar="SHARE",
        help="minimum hit rate by count, from 0 to 1, such as 0.9",
    )
    parser.add_argument(
        "--max-time-lost",
        type=_nanoseconds,
        metavar="TIME",
        help="maximum compile time lost to misses, such as 30s, 500ms, 2min, or plain seconds",
    )
    parser.add_argument(
        "--no-new-cause",
        action="store_true",
        help="every cause (verdict and fields) must be among those of the baseline",
    )
    parser.add_argument(
        "--baseline",
        metavar="FOLDER",
        help="what --no-new-cause compares with: a saved scope, or anything that can be read",
    )
    add_format_arguments(parser, _FORMATS)
    add_reading_arguments(parser)
    add_redact_argument(parser)
    parser.set_defaults(usage_error=parser.error)


def share(text: str) -> float:
    """A share from 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share from 0 to 1, such as 0.9")
    return number


def _nanoseconds(text: str) -> int:
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time, such as 30s, 500ms, 2min, or plain seconds")
    return round(float(match["number"]) * _UNITS_NS[match["unit"]])
