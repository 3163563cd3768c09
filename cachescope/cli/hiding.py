"""What --redact hides."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from cachescope.report.identifying_values import identities, of_this_machine
from cachescope.report.redact import Redaction
from cachescope.scope import Scope


def redaction_of(
    args: argparse.Namespace, scope: Scope | None = None, paths: Iterable[str] = ()
) -> Redaction | None:
    """What hides, or None without ``--redact``: one for all that a command says, so that its stand-ins agree.

    Parameters
    ----------
    args : Namespace
    scope : Scope, optional
        What was read.
    paths : iterable of str
        Paths as they were given.
    """
    if not getattr(args, "redact", False):
        return None
    if getattr(args, "redaction", None) is None:
        args.redaction = Redaction(of_this_machine())
    redaction: Redaction = args.redaction
    if scope is not None:
        redaction.learn(identities(scope, paths))
    return redaction
