"""The command line: of each command its arguments are in one small module, and what it runs is in another."""

from __future__ import annotations

import argparse
import gc
import inspect
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Final

from cachescope.cli.arguments import COMMANDS
from cachescope.cli.messages import redaction_if_asked, say
from cachescope.cli.needed import NEEDED
from cachescope.cli.parser import CommandParser, ParagraphHelp, Parser
from cachescope.cli.streams import discard, open_closed_streams
from cachescope.errors import CachescopeError, NotFoundError, SchemaError
from cachescope.readers.remote_cache.address import without_password
from cachescope.version import __version__

__all__ = ["COMMANDS", "main"]

_DESCRIPTION: Final = (
    "Why torch.compile's caches missed: which field of the key changed, from what to what, and what it cost. "
    "Reads TORCH_TRACE files, TORCH_LOGS text and cache directories; never unpickles, and never writes to a cache."
)
_EPILOG: Final = (
    "exit status: 0 done, 1 a source could not be read, 2 wrong usage, 3 check: a bar is not met, verify: not as locked, 130 interrupted; audit: "
    "0 nothing found, 1 something found, 2 a source could not be read"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process by default.

    Returns
    -------
    int
        The exit status.
    """
    arguments = sys.argv[1:] if argv is None else argv
    args = argparse.Namespace()
    Parser.redacts = "--redact" in arguments
    open_closed_streams()
    try:
        parser = _parser()
        if not arguments:
            parser.print_help(sys.stderr)
            return 2
        parser.parse_args(arguments, args)
        _hide_passwords(args)
        command = _imported(args.module) if argv is None else import_module(args.module)
        status: int = command.run(args)
        if getattr(args, "unread", None):
            # What could be read is answered for; that there was more must not pass unseen.
            status = 1
        sys.stdout.flush()
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else 2
    except (NotFoundError, SchemaError) as error:
        return _failed(error, 2, args)
    except CachescopeError as error:
        return _failed(error, 1, args)
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        print(f"cachescope: {error.name} is not installed: pip install cachescope", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # Whoever read has enough.
        discard(sys.stdout)
        return 141
    except KeyboardInterrupt:
        return 130
    return status


def _imported(name: str) -> ModuleType:
    """Import a module that is needed until this process ends, and let the garbage collector leave it alone."""
    gc.disable()
    try:
        module = import_module(name)
        gc.freeze()
    finally:
        gc.enable()
    return module


def _hide_passwords(args: argparse.Namespace) -> None:
    """Pass addresses on without their passwords; the words of a command to run stay as they are."""
    for name, given in vars(args).items():
        if name in ("command", "words"):
            continue
        if isinstance(given, str):
            setattr(args, name, without_password(given))
        elif isinstance(given, list):
            setattr(args, name, [without_password(one) if isinstance(one, str) else one for one in given])


def _failed(error: CachescopeError, status: int, args: argparse.Namespace) -> int:
    say(error, redaction_if_asked(args))
    return status


def _parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = Parser(prog="cachescope", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"cachescope {__version__}")
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=CommandParser
    )
    for name, (arguments, module) in COMMANDS.items():
        summary, _, rest = inspect.cleandoc(arguments.__doc__ or "").partition("\n")
        command = commands.add_parser(
            name,
            help=summary[:1].lower() + summary[1:].rstrip("."),
            description=f"{summary}\n{rest}".strip(),
            formatter_class=ParagraphHelp,
        )
        arguments.add_arguments(command)
        command.set_defaults(module=module)
    return parser
