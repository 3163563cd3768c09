"""Show the logs that cachescope keeps so that it can open them faster, or remove them.

After a large log was read once, it is kept in columns under the user's cache folder. If the log has grown, only the new part
is read; if it changed in another way, all of it is read again. The logs unused for longest are removed first.
CACHESCOPE_NO_INDEX=1 keeps nothing. torch's caches are never touched; to inspect those, use cachescope entries DIR.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cachescope.cli.arguments import add_output_arguments
from cachescope.cli.output import redaction_of, write_answer
from cachescope.errors import telling
from cachescope.wording import file_size, file_time, harmless, plural

if TYPE_CHECKING:
    from cachescope.json_types import JsonObject
    from cachescope.readers.index.kept_logs import KeptLog
    from cachescope.report.layout import Line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--clear", action="store_true", help="remove all kept logs")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from cachescope.readers.index.kept_logs import Index
    from cachescope.report.redact import Identities

    index = Index.of_user()
    kept, folder = index.logs(), str(index.folder)
    if args.clear:
        with telling(f"{folder}: cannot be cleared"):
            index.clear()
    redaction = redaction_of(args)
    if redaction is not None:
        redaction.learn(Identities(paths=[folder, *(log.path for log in kept)]))
    return write_answer(
        args, lambda: _object(kept, folder, args.clear), lambda: _lines(kept, folder, args.clear)
    )


def _object(kept: list[KeptLog], folder: str, cleared: bool) -> JsonObject:
    from cachescope.report.json_text import values_of

    same, total = ("path", "log_bytes", "kept_bytes"), sum(log.kept_bytes for log in kept)
    logs = [{**values_of(log, *same), "used_ns": round(log.used_s * 1e9)} for log in kept]
    return {"folder": folder, "kept_bytes": total, "logs": logs, "cleared": cleared}


def _lines(kept: list[KeptLog], folder: str, cleared: bool) -> list[Line]:
    from cachescope.report.layout import Line

    folder = harmless(folder)
    if not kept:
        return [
            Line(f"no logs kept in {folder}: large ones are, once they were read", style="bold", whole=True)
        ]
    what = f"{plural(len(kept), 'log')} kept in {file_size(sum(log.kept_bytes for log in kept))}"
    title = f"removed: {what}" if cleared else what
    lines = [Line(f"{title}, in {folder}", style="bold", whole=True)]
    if cleared:
        return lines
    lines += [Line(), Line(f"{'log':>8} {'kept':>8}  {'last used':<16}  path", style="dim")]
    for log in kept:
        sizes = f"{file_size(log.log_bytes):>8} {file_size(log.kept_bytes):>8}"
        used = file_time(round(log.used_s * 1e9))
        lines.append(Line(f"{sizes}  {used}  {harmless(log.path)}", whole=True))
    return lines
