"""Lines on standard error. Nothing that reads is loaded for them: help is printed at once, and a recorder needs no package."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

from cachescope.errors import CachescopeError
from cachescope.wording import harmless_line

if TYPE_CHECKING:
    from cachescope.report.redact import Redaction

_HIDING: Final = "cachescope.cli.hiding"


def say(message: CachescopeError | str, redaction: Redaction | None = None) -> None:
    """One line on standard error, whatever the message quotes."""
    text = str(message) if redaction is None else redaction(str(message))
    print(harmless_line(f"cachescope: {' '.join(text.split())}"), file=sys.stderr, flush=True)


def redaction_if_asked(args: argparse.Namespace) -> Redaction | None:
    """As `hiding.redaction_of`, which is loaded only with ``--redact``: it takes packages that a recorder may be without."""
    if not getattr(args, "redact", False):
        return None
    redaction: Redaction = import_module(_HIDING).redaction_of(args)
    return redaction
