"""Show the logs that cachescope keeps in order to open them again at once, or remove them.

A large log that was read once is kept, in columns, under the user's cache folder. One that has grown since is read
from where it ended, one that changed otherwise anew, and what was not used for longest goes first.
CACHESCOPE_NO_INDEX=1 keeps nothing. The caches of torch are something else, and are never touched: for those,
cachescope entries DIR.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from cachescope.cli.arguments import add_output_arguments
from cachescope.errors import SourceError
from cachescope.version import __version__

if TYPE_CHECKING:
    from cachescope.readers.index.kept_logs import Index
    from cachescope.report.layout import Line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--clear", action="store_true", help="remove all of it")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """List what is kept, and remove it where that is asked."""
    from cachescope.cli.output import write_json, write_lines
    from cachescope.cli.sources import redaction_of
    from cachescope.readers.index.kept_logs import Index
    from cachescope.report.redact import Identities

    index = Index.of_user()
    kept = _kept(index)
    if args.clear:
        try:
            index.clear()
        except OSError as error:
            raise SourceError(str(index.folder), f"cannot be cleared: {error.strerror or error}") from error
    redaction = redaction_of(args)
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
    from cachescope.report.layout import Line
    from cachescope.wording import file_size, file_time, harmless, plural

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
