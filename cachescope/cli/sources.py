"""Reading for the commands: the arguments they share, the progress bar, and what --redact hides."""

from __future__ import annotations

import argparse
import contextlib
import getpass
import os
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cachescope.errors import SchemaError, SourceError
from cachescope.report.redact import Identities, redact
from cachescope.scope import Scope, read
from cachescope.wording import harmless

if TYPE_CHECKING:
    from cachescope.readers.sources import Progress

Schema = TypeVar("Schema")


@dataclass(frozen=True, slots=True)
class Redaction:
    """Hides what tells who and where: the sources as given, and this machine and its user."""

    known: Identities

    def __call__(self, value: Any) -> Any:
        """The value with stand-ins."""
        return redact(value, self.known)


def add_output_arguments(parser: argparse.ArgumentParser, *, redactable: bool = True) -> None:
    """``--json`` and ``--redact``."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    if redactable:
        add_redact_argument(parser)


def add_redact_argument(parser: argparse.ArgumentParser) -> None:
    """``--redact``."""
    parser.add_argument(
        "--redact",
        action="store_true",
        help="replace paths, host names, user names, board uuids and bus ids by stand-ins",
    )


def add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    """``--baseline`` and ``--strict``."""
    parser.add_argument(
        "--baseline",
        default="auto",
        metavar="auto|nearest|RUN|KEY",
        help="what a miss is compared with: chosen for each (auto), the fewest changed fields (nearest), "
        "a run by its number, or a key",
    )
    parser.add_argument("--strict", action="store_true", help="stop at the first damaged record")


def read_schema(path: str, schema_of: Callable[[bytes], Schema]) -> Schema:
    """Read a schema from a JSON file, whose name goes into what is wrong with it."""
    try:
        return schema_of(Path(path).read_bytes())
    except OSError as error:
        raise SourceError(path, f"cannot be read: {error.strerror or error}") from error
    except SchemaError as error:
        raise SourceError(path, str(error)) from error


def read_scope(paths: list[str], *, strict: bool = False, baseline: str = "auto") -> Scope:
    """Read the sources and judge every miss, with a progress bar where standard error is a terminal."""
    with _progress() as progress:
        scope = read(*paths, strict=strict, baseline=baseline, progress=progress)
        if progress is not None:
            progress("comparing keys", 1, 1)
        _ = scope.facts
    return scope


def redaction_of(args: argparse.Namespace, scope: Scope, paths: list[str]) -> Redaction | None:
    """What to hide, or None without ``--redact``."""
    if not args.redact:
        return None
    tables = [
        *scope.runs["source"],
        *(source for sources in scope.runs["sources"] for source in sources),
        *scope.runs["cache_dir"].dropna(),
        *scope.entries["root"].unique(),
        *scope.problems["source"].unique(),
        *scope.tables.contexts["source"].unique(),
    ]
    home = os.path.expanduser("~")
    return Redaction(
        Identities(
            paths={*paths, *tables, os.getcwd(), *([home] if home.count("/") > 1 else [])},
            hosts={socket.gethostname(), *scope.tables.contexts["host"].dropna()},
            users={_user(), os.path.basename(home)},
        )
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's user id without an account
        return ""


@contextlib.contextmanager
def _progress() -> Iterator[Progress | None]:
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    # Without markup: a path may hold brackets. Transient: the answer is all that stays.
    columns = (BarColumn(20), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True, soft_wrap=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(path: str, done: int, total: int) -> None:
            bar.update(task, description=harmless(path)[-50:], completed=done, total=total)

        yield show
