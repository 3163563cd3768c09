"""The command line: one command a module, whose docstring is its help. Its function `run` loads what it runs, and returns the exit status."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Final

from cachescope.cli.arguments import CommandParser, ParagraphHelp, Parser
from cachescope.cli.needed import NEEDED
from cachescope.cli.output import discard, open_closed_streams, redaction_of, say
from cachescope.errors import CachescopeError, NotFoundError, SchemaError
from cachescope.report.subjects import SUBJECTS
from cachescope.version import __version__

# In the order of the help.
COMMANDS: Final = {
    "explain": "cachescope.cli.explain", "what-if": "cachescope.cli.what_if", "time": "cachescope.cli.time",
    **dict.fromkeys(SUBJECTS, "cachescope.cli.subject"), "recorded": "cachescope.cli.recorded", "diff": "cachescope.cli.diff", "entries": "cachescope.cli.entries",
    "audit": "cachescope.cli.audit", "contexts": "cachescope.cli.contexts", "devices": "cachescope.cli.devices",
    "vllm": "cachescope.cli.vllm",
    "lock": "cachescope.cli.lock", "verify": "cachescope.cli.verify", "check": "cachescope.cli.check",
    "report": "cachescope.cli.report", "capture": "cachescope.cli.capture", "record": "cachescope.cli.record",
    "preflight": "cachescope.cli.preflight", "fix": "cachescope.cli.fix", "cache": "cachescope.cli.cache",
    "demo": "cachescope.cli.demo",
}  # fmt: skip
_DESCRIPTION: Final = "Why torch.compile's caches missed: which field of the key changed, from what to what, and what it cost. Reads TORCH_TRACE files, TORCH_LOGS text and cache directories; never unpickles, and never writes to a cache."
_EPILOG: Final = "exit status: 0 done, 1 a source could not be read, 2 wrong usage, 3 check: a bar is not met, verify: not as locked, 130 interrupted; audit: 0 nothing found, 1 something found, 2 a source could not be read"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command."""
    arguments = sys.argv[1:] if argv is None else argv
    args = argparse.Namespace()
    Parser.redacts = "--redact" in arguments
    open_closed_streams()
    try:
        # Of a command that is named, the other modules need not be loaded.
        parser = _parser(arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS)
        if not arguments:
            parser.print_help(sys.stderr)
            return 2
        parser.parse_args(arguments, args)
        _hide_passwords(args)
        if argv is None:
            # What this process imports and reads stays until it ends: a collection every few hundred objects finds nothing.
            gc.set_threshold(100_000)
        status: int = args.run(args)
        if getattr(args, "unread", None):
            # What could be read is answered for; that there was more must not pass unseen.
            status = 1
        sys.stdout.flush()
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else 2
    except (NotFoundError, SchemaError) as error:
        return _failed(error, 2, args)
    except CachescopeError as error:
        # That of a command that cannot be started is a shell's.
        return _failed(error, getattr(error, "status", 1), args)
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
    finally:
        if argv is None:
            # Python would go through all of it once more when it ends.
            gc.freeze()
    return status


def _hide_passwords(args: argparse.Namespace) -> None:
    """Pass addresses on without their passwords; the words of a command to run stay as they are."""
    from cachescope.readers.remote_cache.address import without_password

    for name, given in vars(args).items():
        if name in ("command", "words"):
            continue
        if isinstance(given, str):
            setattr(args, name, without_password(given))
        elif isinstance(given, list):
            setattr(args, name, [without_password(one) if isinstance(one, str) else one for one in given])


def _failed(error: CachescopeError, status: int, args: argparse.Namespace) -> int:
    say(error, redaction_of(args))
    return status


def _parser(names: Iterable[str]) -> argparse.ArgumentParser:
    """The parser of these commands."""
    parser = Parser(prog="cachescope", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"cachescope {__version__}")
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=CommandParser
    )
    for name in names:
        module = import_module(COMMANDS[name])
        summary, _, rest = (module.__doc__ or "").partition("\n")
        summary = SUBJECTS[name].summary if name in SUBJECTS else summary
        brief, whole = summary[:1].lower() + summary[1:].rstrip("."), f"{summary}\n{rest}".strip()
        command = commands.add_parser(name, help=brief, description=whole, formatter_class=ParagraphHelp)
        module.add_arguments(command)
        command.set_defaults(run=module.run, usage_error=command.error, subject=name)
    return parser
