"""What `cachescope check` runs."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Final

from cachescope.answers.check import Check
from cachescope.cli.hiding import redaction_of
from cachescope.cli.output import write_json, write_lines, write_plain
from cachescope.cli.sources import read_given
from cachescope.report.check_forms import check_lines, check_object, github_lines, junit_text
from cachescope.report.redact import Redaction
from cachescope.scope import Scope

NOT_MET: Final = 3


def run(args: argparse.Namespace) -> int:
    """Read, check and print."""
    _refuse_half_given(args)
    scope = read_given(args, args.paths)
    baseline = read_given(args, [args.baseline]) if args.no_new_cause else None
    checked = scope.check(args.min_hit_rate, args.max_time_lost, baseline)
    given = args.paths + ([args.baseline] if args.baseline else [])
    _write(checked, scope, args.format, redaction_of(args, scope, given))
    return 0 if checked.passed else NOT_MET


def _refuse_half_given(args: argparse.Namespace) -> None:
    if args.no_new_cause != (args.baseline is not None):
        args.usage_error("--no-new-cause and --baseline FOLDER belong together")
    if args.min_hit_rate is None and args.max_time_lost is None and not args.no_new_cause:
        args.usage_error("give a bar: --min-hit-rate, --max-time-lost, or --no-new-cause --baseline FOLDER")


def _write(checked: Check, scope: Scope, form: str, redaction: Redaction | None) -> None:
    if form == "json":
        write_json(check_object(checked, scope), redaction)
        return
    if redaction is not None:
        # Before anything is escaped.
        bars = tuple(replace(bar, reason=redaction(bar.reason)) for bar in checked.bars)
        checked = replace(
            checked,
            bars=bars,
            causes=redaction(checked.causes),
            headline=redaction(checked.headline),
            unread=redaction(checked.unread),
        )
    if form == "github":
        write_plain(github_lines(checked))
    elif form == "junit":
        write_plain([junit_text(checked)])
    else:
        write_lines(check_lines(checked))
