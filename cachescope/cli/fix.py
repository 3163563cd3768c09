"""Find out, by trying, what to set so that a command finds its entries.

    cachescope fix /baked/cache -- python train.py
    cachescope fix recordings/ --write cache.env -- torchrun --nproc-per-node 2 train.py

The command runs as a pre-flight (cachescope preflight), first unchanged and then with one setting after another: variables,
options of torch's config, calls. The printed changes were tried together, and each of them is needed. If nothing can be set,
the answer says why, and gives advice. PATH is what should be found: a cache directory, or recordings of the runs that filled
it. Nothing is compiled, stored or edited. The command's output is not shown. Needs torch 2.8 or later.

exit status: 0 all lookups would hit, with the changes if there are any, 1 the command failed or nothing could be read,
2 wrong usage, 3 some would not, 126 and 127 the command cannot be started
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cachescope.cli.arguments import NOT_MET, add_output_arguments
from cachescope.cli.output import redaction_of, say, write_answer, write_file
from cachescope.errors import CachescopeError, telling
from cachescope.wording import listed

if TYPE_CHECKING:
    from cachescope.analysis.fixes import Setting


def add_arguments(parser: argparse.ArgumentParser) -> None:
    told = "write the variables among the changes to FILE, which must be new or written by --write"
    parser.add_argument("--write", metavar="FILE", help=told)
    add_output_arguments(parser)
    told = "what should be found, and what to run"
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="PATH ... -- COMMAND", help=told)


def run(args: argparse.Namespace) -> int:
    from cachescope.report.preflight import env_file, fix_lines, fix_object
    from cachescope.scope.preflight import fix

    redaction = redaction_of(args)
    paths, command = _split(args)
    if args.write is not None:
        _check_is_ours(Path(args.write))
    found = fix(command, paths, lambda settings: say(_trying(settings), redaction))
    write_answer(args, lambda: fix_object(found), lambda: fix_lines(found))
    if args.write is not None:
        write_file(args.write, env_file(found))
    return NOT_MET if found.after.counts["would_hit"] < found.after.lookups else 0


def _trying(settings: Sequence[Setting]) -> str:
    if not settings:
        return "pre-flight as it is"
    return f"pre-flight with {listed([setting.code for setting in settings], 4, '; ')}"


def _split(args: argparse.Namespace) -> tuple[list[str], list[str]]:
    words: list[str] = args.words
    at = words.index("--") if "--" in words else len(words)
    paths, command = words[:at], words[at + 1 :]
    if not paths or not command:
        args.usage_error("give PATH, then -- and the command to run")
    if options := [word for word in paths if word.startswith("-")]:
        args.usage_error(f"options come before PATH: {options[0]}")
    return paths, command


def _check_is_ours(path: Path) -> None:
    from cachescope.report.preflight import ENV_FILE_BEGINS

    with telling(str(path)):
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ENV_FILE_BEGINS
    if not text.startswith(ENV_FILE_BEGINS):
        raise CachescopeError(f"{path}: not made by cachescope fix, and left as it is")
