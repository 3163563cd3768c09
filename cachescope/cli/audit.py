"""Prove that loading a cache runs nothing but what torch writes, or show what else: for caches from somebody else.

    cachescope audit /opt/baked-cache            a cache directory, or any folder of one
    cachescope audit cache.tar.gz mega-cache.bin --format sarif > audit.sarif

DIR|FILE is a cache directory, one file of it, a mega-cache file, a tar or zip file (which is not unpacked), or a remote cache
(redis://HOST:PORT/DB, or a dump). What pickles name and call is compared with what torch's own entries do, generated Python with
what torch's code generators write, guards with bounded arithmetic. Links, owners and permissions are checked as well. Nothing is
unpickled, imported or run, no link is followed, and no pipe or device is opened. Machine code and C++ cannot be proven: they
are listed with their digests, except for those in a lock file that is given with --lock.

exit status: 0 proven, 1 at least one finding, 3 no finding, but code that runs and that nothing vouches for,
             2 a source could not be read, or wrong usage
"""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING, Final

from cachescope.cli.arguments import add_format_arguments, add_redact_argument
from cachescope.cli.output import redaction_of, say, write_blocks, write_json
from cachescope.errors import CachescopeError
from cachescope.terms import AUDIT_LEVELS, UNPROVEN
from cachescope.version import __version__
from cachescope.wording import readable

if TYPE_CHECKING:
    from cachescope.auditing.audit import Audit
    from cachescope.report.redact import Redaction

_OWNERS: Final = re.compile(r"\b(?:belongs to|the group) (\S+) \(")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="DIR|FILE", help="what to audit")
    levels = (*AUDIT_LEVELS[:3], "never")
    told = "end with status 1 or 3 from this level on: danger, warning, unproven (the default), or never"
    parser.add_argument("--fail-on", choices=levels, default=UNPROVEN, metavar="LEVEL", help=told)
    told = "a lock file that you trust: it vouches for the files whose digests it holds"
    parser.add_argument("--lock", metavar="FILE", help=told)
    add_format_arguments(parser, ("text", "json", "sarif"))
    add_redact_argument(parser)


def run(args: argparse.Namespace) -> int:
    from cachescope.auditing.audit import Audit

    whole = Audit(sources=[readable(path.rstrip("/") or path) for path in args.paths])
    redaction = redaction_of(args)
    if redaction is not None:
        from cachescope.report.redact import Identities

        places = {*args.paths, *map(os.path.abspath, args.paths), *map(os.path.realpath, args.paths)}
        redaction.learn(Identities(paths=places))
    for path in args.paths:
        try:
            whole.add(path, args.lock)
        except CachescopeError as error:
            say(error, redaction)
            whole.unread += 1
    if redaction is not None:
        owners = {name for row in whole.rows for name in _OWNERS.findall(row.message)}
        redaction.learn(Identities(users=owners))
    _write(whole, args.format, redaction)
    if whole.unread:
        return 2
    if args.fail_on == "never":
        return 0
    bad = AUDIT_LEVELS[: AUDIT_LEVELS.index(args.fail_on) + 1]
    against = {row.level for row in whole.rows if row.level in bad}
    return 0 if not against else 3 if against == {UNPROVEN} else 1


def _write(report: Audit, form: str, redaction: Redaction | None) -> None:
    from dataclasses import asdict, replace

    from cachescope.frames.checks import AuditRow
    from cachescope.report.audit import audit_lines, audit_object, sarif_object

    if form == "text":
        write_blocks(audit_lines(report), redaction)
    elif form == "json":
        write_json({"cachescope": __version__, **audit_object(report)}, redaction)
    else:
        if redaction is not None:
            # Before paths are percent-encoded, and a source with what is in it, so that it stays its beginning.
            rows, sources = redaction([[asdict(row) for row in report.rows], list(report.sources)])
            report = replace(report, rows=[AuditRow(**row) for row in rows], sources=sources)
        write_json(sarif_object(report, with_places=redaction is None))
