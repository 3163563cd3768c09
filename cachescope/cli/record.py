"""What `cachescope record` runs: no package is needed to record."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from typing import Final

from cachescope.cli.messages import redaction_if_asked
from cachescope.cli.needed import missing_package
from cachescope.errors import CachescopeError
from cachescope.terms import LOGGERS
from cachescope.wording import harmless_line

try:
    from cachescope.capture.recording import CommandNotFoundError, record
except ModuleNotFoundError as missing:
    if missing.name not in ("fcntl", "termios"):
        raise
    raise CachescopeError(
        f'this system has no terminals of Unix; record with TORCH_TRACE=DIR TORCH_LOGS="{LOGGERS}"'
    ) from missing

# Loaded where its packages are.
_EXPLAINING: Final = "cachescope.cli.recorded"


def run(args: argparse.Namespace) -> int:
    """Run it, then explain."""
    redaction_if_asked(args)  # before the command runs: hiding takes packages that may not be there
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        args.usage_error("give the command to run after --")
    for name in ("TORCH_TRACE", "TORCH_LOGS_OUT"):
        if os.environ.get(name):
            _say(args, f"{name} is set; for this run it points into {args.output}")
    try:
        recorded = record(command, args.output)
    except CommandNotFoundError as error:
        _say(args, str(error))
        return error.status
    ended = f", ended by {recorded.ended_by}" if recorded.ended_by else ""
    _say(args, f"its logs are in {recorded.folder} (exit status {recorded.exit_status}{ended})")
    if package := missing_package():
        _say(args, f"{package} is not installed here; explain it elsewhere: cachescope explain {args.output}")
    else:
        for text in import_module(_EXPLAINING).explain(args, recorded):
            _say(args, text)
    return recorded.exit_status


def _say(args: argparse.Namespace, text: str) -> None:
    redaction = redaction_if_asked(args)
    text = text if redaction is None else redaction(text)
    print(harmless_line(f"cachescope: {text}"), file=sys.stderr, flush=True)
