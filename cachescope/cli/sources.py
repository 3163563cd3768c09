"""Reading for the commands: the progress bar, and what --redact hides."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cachescope.errors import CachescopeError, SchemaError, SourceError
from cachescope.wording import harmless_line

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from cachescope.readers.sources import Progress
    from cachescope.report.redact import Redaction
    from cachescope.scope import Scope

Schema = TypeVar("Schema")


def read_schema(path: str, schema_of: Callable[[bytes], Schema]) -> Schema:
    """Read a schema from a JSON file, whose name goes into what is wrong with it."""
    try:
        return schema_of(Path(path).read_bytes())
    except OSError as error:
        raise SourceError(path, f"cannot be read: {error.strerror or error}") from error
    except SchemaError as error:
        raise SourceError(path, str(error)) from error


def read_scope(
    paths: list[str],
    *,
    strict: bool = False,
    baseline: str = "auto",
    jobs: int = 1,
    index: bool = True,
    names: bool = True,
) -> Scope:
    """Read the sources and judge every miss, with a progress bar where standard error is a terminal.

    The bar names what is being read, but where `names` is False.
    """
    from cachescope.scope import read

    with _progress(names=names) as progress:
        with _workers(jobs) as executor:
            scope = read(
                *paths, strict=strict, baseline=baseline, progress=progress, executor=executor, index=index
            )
        if progress is not None:
            progress("comparing keys", 1, 1)
        _ = scope.facts
    return scope


def read_given(args: argparse.Namespace, paths: list[str], baseline: str = "auto") -> Scope:
    """Read the sources as the options of `arguments.add_reading_arguments` say.

    Of each that could not be read one line goes to standard error, and the command ends with status 1.
    """
    from cachescope.readers.reading import WHOLE_SOURCE

    scope = read_scope(
        paths,
        strict=args.strict,
        baseline=baseline,
        jobs=args.jobs,
        index=not args.no_index,
        names=not args.redact,
    )
    problems = scope.problems
    unread = problems[problems["where"] == WHOLE_SOURCE]
    redaction = redaction_of(args, scope, paths)
    for source, message in zip(unread["source"], unread["message"], strict=True):
        say(SourceError(source, message), redaction)
    args.unread = [*getattr(args, "unread", []), *unread["source"]]
    return scope


def say(message: CachescopeError | str, redaction: Redaction | None = None) -> None:
    """One line on standard error, whatever the message quotes."""
    text = str(message) if redaction is None else redaction(str(message))
    print(harmless_line(f"cachescope: {' '.join(text.split())}"), file=sys.stderr)


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
    from cachescope.report.identities import identities, of_this_machine
    from cachescope.report.redact import Redaction

    if getattr(args, "redaction", None) is None:
        args.redaction = Redaction(of_this_machine())
    redaction: Redaction = args.redaction
    if scope is not None:
        redaction.learn(identities(scope, paths))
    return redaction


@contextlib.contextmanager
def _workers(jobs: int) -> Iterator[Executor | None]:
    if jobs <= 1:
        yield None
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # Not forked: the libraries that read Parquet run threads. Ctrl-C reaches the workers as well, and they end
    # of it without a word each.
    on_start = (signal.SIGINT, signal.SIG_DFL)
    with ProcessPoolExecutor(
        jobs, get_context("spawn"), initializer=signal.signal, initargs=on_start
    ) as pool:
        yield pool


@contextlib.contextmanager
def _progress(*, names: bool) -> Iterator[Progress | None]:
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
            name = harmless_line(path)[-50:] if names else ""
            bar.update(task, description=name, completed=done, total=total)

        yield show
