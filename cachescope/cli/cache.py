"""What `cachescope cache` runs."""

from __future__ import annotations

import argparse
from typing import Any

from cachescope.cli.messages import redaction_if_asked
from cachescope.cli.output import write_json, write_lines
from cachescope.errors import SourceError
from cachescope.readers.index.kept_logs import Index
from cachescope.report.layout import Line
from cachescope.report.redact import Identities
from cachescope.version import __version__
from cachescope.wording import file_size, file_time, harmless, plural


def run(args: argparse.Namespace) -> int:
    """List what is kept, and remove it where that is asked."""
    index = Index.of_user()
    kept = _kept(index)
    if args.clear:
        try:
            index.clear()
        except OSError as error:
            raise SourceError(str(index.folder), f"cannot be cleared: {error.strerror or error}") from error
    redaction = redaction_if_asked(args)
    if redaction is not None:
        redaction.learn(Identities(paths=[kept["folder"], *(log["path"] for log in kept["logs"])]))
    if args.json:
        write_json({**kept, "cleared": args.clear}, redaction)
    else:
        write_lines(list(_lines(kept, cleared=args.clear)), redaction)
    return 0


def _kept(index: Index) -> dict[str, Any]:
    logs = index.logs()
    return {
        "cachescope": __version__,
        "folder": str(index.folder),
        "kept_bytes": sum(log.kept_bytes for log in logs),
        "logs": [
            {
                "path": log.path,
                "log_bytes": log.log_bytes,
                "kept_bytes": log.kept_bytes,
                "used_ns": round(log.used_s * 1e9),
            }
            for log in logs
        ],
    }


def _lines(kept: dict[str, Any], *, cleared: bool) -> list[Line]:
    logs, folder = kept["logs"], harmless(kept["folder"])
    if not logs:
        return [
            Line(f"no logs kept in {folder}: large ones are, once they were read", style="bold", whole=True)
        ]
    what = f"{plural(len(logs), 'log')} kept in {file_size(kept['kept_bytes'])}"
    title = f"removed: {what}" if cleared else what
    lines = [Line(f"{title}, in {folder}", style="bold", whole=True)]
    if cleared:
        return lines
    lines += [Line(), Line(f"{'log':>8} {'kept':>8}  {'last used':<16}  path", style="dim")]
    for log in logs:
        sizes = f"{file_size(log['log_bytes']):>8} {file_size(log['kept_bytes']):>8}"
        lines.append(Line(f"{sizes}  {file_time(log['used_ns'])}  {harmless(log['path'])}", whole=True))
    return lines
