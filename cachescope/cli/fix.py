"""What `cachescope fix` runs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from cachescope.analysis.fixes import Setting
from cachescope.answers.fix import Fix
from cachescope.capture.recording import CommandNotFoundError
from cachescope.cli.check import NOT_MET
from cachescope.cli.hiding import redaction_of
from cachescope.cli.messages import say
from cachescope.cli.output import write_json, write_lines
from cachescope.errors import CachescopeError
from cachescope.report.fix import ENV_FILE_BEGINS, env_file, fix_lines, fix_object
from cachescope.scope.fix import fix
from cachescope.version import __version__
from cachescope.wording import listed


def run(args: argparse.Namespace) -> int:
    """Try, and print what helps."""
    redaction = redaction_of(args)
    paths, command = _split(args)
    if args.write is not None:
        _check_is_ours(Path(args.write))
    try:
        found = fix(command, paths, lambda settings: say(_trying(settings), redaction))
    except CommandNotFoundError as error:
        say(error, redaction)
        return error.status
    if args.json:
        write_json({"cachescope": __version__, **fix_object(found)}, redaction)
    else:
        write_lines(list(fix_lines(found)), redaction)
    if args.write is not None:
        _write(Path(args.write), found)
    return NOT_MET if found.after.counts["would_hit"] < found.after.lookups else 0


def _trying(settings: Sequence[Setting]) -> str:
    if not settings:
        return "pre-flight as it is"
    return f"pre-flight with {listed([setting.code for setting in settings], 4, '; ')}"


def _split(args: argparse.Namespace) -> tuple[list[str], list[str]]:
    words: list[str] = args.words
    if "--" not in words:
        args.usage_error("give PATH, then -- and the command to run")
    at = words.index("--")
    paths, command = words[:at], words[at + 1 :]
    if not paths or not command:
        args.usage_error("give PATH, then -- and the command to run")
    if options := [word for word in paths if word.startswith("-")]:
        args.usage_error(f"options come before PATH: {options[0]}")
    return paths, command


def _check_is_ours(path: Path) -> None:
    try:
        is_other = path.exists() and not path.read_text(encoding="utf-8", errors="replace").startswith(
            ENV_FILE_BEGINS
        )
    except OSError as error:
        raise CachescopeError(f"{path}: {error.strerror or error}") from error
    if is_other:
        raise CachescopeError(f"{path}: not made by cachescope fix, and left as it is")


def _write(path: Path, found: Fix) -> None:
    try:
        path.write_text(env_file(found), encoding="utf-8")
    except OSError as error:
        raise CachescopeError(f"{path}: cannot be written: {error.strerror or error}") from error
