"""Reading for the commands, with a progress bar."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cachescope.cli.output import redaction_of, say
from cachescope.errors import SchemaError, SourceError, telling
from cachescope.readers.reading import WHOLE_SOURCE
from cachescope.readers.sources import Progress
from cachescope.scope import Scope, read
from cachescope.wording import harmless_line

if TYPE_CHECKING:
    from concurrent.futures import Executor

Schema = TypeVar("Schema")


def read_schema(path: str, schema_of: Callable[[bytes], Schema]) -> Schema:
    """Read a schema from a JSON file, whose name goes into what is wrong with it."""
    with telling(f"{path}: cannot be read"):
        text = Path(path).read_bytes()
    try:
        return schema_of(text)
    except SchemaError as error:
        raise SourceError(path, str(error)) from error


def read_scope(paths: list[str], *, jobs: int = 1, names: bool = True, **how: Any) -> Scope:
    """Read the sources and judge every miss, with a progress bar where standard error is a terminal.

    The bar names what is being read, but where `names` is False; `how` is for `cachescope.read`.
    """
    with _progress(names=names) as progress:
        with _workers(jobs) as executor:
            scope = read(*paths, progress=progress, executor=executor, **how)
        if progress is not None:
            progress("comparing keys", 1, 1)
        _ = scope.facts
    return scope


def read_given(args: argparse.Namespace, paths: list[str], baseline: str = "auto") -> Scope:
    """Read the sources as the options of `arguments.add_reading_arguments` say; ``-`` is standard input.

    Of each that could not be read one line goes to standard error, and the command ends with status 1.
    """
    read_from = [_stored_input() if path == "-" else path for path in paths]
    how = {"strict": args.strict, "baseline": baseline, "index": not (args.no_index or "-" in paths)}
    scope = read_scope(read_from, jobs=args.jobs, names=not args.redact, **how)
    unread = [problem for problem in scope.tables.problems.rows if problem.where == WHOLE_SOURCE]
    redaction = redaction_of(args, scope, read_from)
    for problem in unread:
        say(SourceError(problem.source, problem.message), redaction)
    args.unread = [*getattr(args, "unread", []), *(problem.source for problem in unread)]
    return scope


def _stored_input() -> str:
    """Standard input as a file, until this process ends: a log is read more than once."""
    from tempfile import mkdtemp

    folder = mkdtemp(prefix="cachescope-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "standard input")
    kept = telling("-: standard input cannot be kept")
    with kept, open(0, "rb", closefd=False) as given, open(path, "wb") as file:
        shutil.copyfileobj(given, file)
    return path


@contextlib.contextmanager
def _workers(jobs: int) -> Iterator[Executor | None]:
    if jobs <= 1:
        yield None
        return
    # Not forked: the libraries that read Parquet run threads. Ctrl-C reaches the workers as well, and they end
    # of it without a word each.
    on_start = (signal.SIGINT, signal.SIG_DFL)
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(
        jobs, get_context("spawn"), initializer=signal.signal, initargs=on_start
    ) as pool:
        yield pool


@contextlib.contextmanager
def _progress(*, names: bool) -> Iterator[Progress | None]:
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress
    from rich.console import Console

    # Without markup: a path may hold brackets. Transient: the answer is all that stays.
    text = progress.TextColumn("{task.description}", markup=False)
    columns = (progress.BarColumn(20), progress.TimeElapsedColumn(), text)
    console = Console(stderr=True, soft_wrap=True)
    with progress.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(path: str, done: int, total: int) -> None:
            name = harmless_line(path)[-50:] if names else ""
            bar.update(task, description=name, completed=done, total=total)

        yield show
