"""What `cachescope audit` runs."""

from __future__ import annotations

import argparse
import contextlib
import getpass
import os
import re
import socket
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from cachescope.auditing.audit import Audit, readable, run_audit
from cachescope.cli.messages import say
from cachescope.cli.output import write_json, write_lines
from cachescope.columns import rows_of
from cachescope.errors import CachescopeError
from cachescope.frames.checks import AuditRow
from cachescope.report.audit import AuditReport, audit_lines, audit_object, sarif_object
from cachescope.report.redact import Identities, Redaction
from cachescope.terms import AUDIT_LEVELS

FOUND: Final = 1
UNREAD: Final = 2
_OWNERS: Final = re.compile(r"\b(?:belongs to|the group) (\S+) \(")


def run(args: argparse.Namespace) -> int:
    """Look, and print."""
    whole, is_unread = Audit(), False
    for path in args.paths:
        try:
            found = run_audit([path])
        except CachescopeError as error:
            say(error)
            is_unread = True
            continue
        whole.add(found)
    _write(args, whole)
    if is_unread:
        return UNREAD
    if args.fail_on == "never":
        return 0
    bad = AUDIT_LEVELS[: AUDIT_LEVELS.index(args.fail_on) + 1]
    return FOUND if any(one.level in bad for one in whole.findings) else 0


def _write(args: argparse.Namespace, whole: Audit) -> None:
    named = [readable(path.rstrip("/") or path) for path in args.paths]
    report = AuditReport(rows_of(whole.frame, AuditRow), named, whole.files)
    redaction = _redaction(report.rows, args.paths) if args.redact else None
    if args.format == "text":
        write_lines(audit_lines(report), redaction)
    elif args.format == "json":
        write_json(audit_object(report), redaction)
    else:
        if redaction is not None:
            # Before paths are percent-encoded, and a source with what is in it, so that it stays its beginning.
            rows, sources = redaction([[asdict(row) for row in report.rows], list(report.sources)])
            report = AuditReport([AuditRow(**row) for row in rows], sources, report.files)
        write_json(sarif_object(report, with_places=redaction is None))


def _redaction(rows: Sequence[AuditRow], paths: list[str]) -> Redaction:
    """Hides the sources, this machine and its user, and the owners of files."""
    owners = {name for row in rows for name in _OWNERS.findall(row.message)}
    with contextlib.suppress(KeyError, OSError, ImportError):  # a container's user id without an account
        owners.add(getpass.getuser())
    known = {*paths, os.getcwd(), *map(os.path.abspath, paths), *map(os.path.realpath, paths)}
    return Redaction(Identities(paths=known, hosts={socket.gethostname()}, users=owners))
