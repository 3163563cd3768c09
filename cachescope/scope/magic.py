"""``%%cachescope``: records or predicts the torch.compile lookups of a cell, and explains them below it."""

from __future__ import annotations

import argparse
import shlex
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from tokenize import TokenError
from typing import Any, Final, NoReturn

from cachescope.capture.live_trace import Block
from cachescope.errors import CachescopeError
from cachescope.scope.live import Recording, recording
from cachescope.scope.preflight import Preflight, preflight

_USAGE: Final = "%%cachescope [--fresh | --preflight] [--against PATH]..."
_CELLS_KEPT: Final = 20


class CellFailedError(CachescopeError):
    """Ends a failed cell. The cell's own exception is already shown above, so this is one line."""

    def _render_traceback_(self) -> list[str]:
        # IPython asks for this instead of a traceback: InteractiveShell.showtraceback.
        return [str(self)]


class CachescopeMagic:
    """The cell magic of one session.

    Each cell is compared with the cells recorded before it, except for those with fresh caches: their entries
    were removed on purpose, and a cold start is compared with nothing.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._earlier: deque[Block] = deque(maxlen=_CELLS_KEPT)

    def __call__(self, line: str, cell: str) -> None:
        """Record the torch.compile lookups of a cell and explain them below it.

        ``%%cachescope [--fresh | --preflight] [--against PATH]...``

        ``--fresh`` runs the cell with empty caches, as at a cold start; ``--against PATH`` compares its misses
        with a cache directory or log as well. ``--preflight`` compiles nothing and predicts what the cell would
        find in PATH, or else in the cache directory of this process.
        """
        from IPython.display import display

        options = _options(line)
        one: Recording | Preflight
        if options.preflight:
            one = preflight(against=options.against or None)
        else:
            earlier = [] if options.fresh else self._earlier
            one = recording(fresh=options.fresh, against=[*options.against, *earlier])
        failed = self._record(one, cell)
        told = "the cell failed, see above"
        if isinstance(one, Recording):
            if not options.fresh and any(row.run == one.run for row in one.scope.tables.lookups.rows):
                self._earlier.append(one.block)
            told = one.kept_notice if one.kept else told
        self._shell.user_ns["_cachescope"] = one.scope
        display(one)  # type: ignore[no-untyped-call]
        if failed is not None:
            raise CellFailedError(told) from None

    def _record(self, one: Recording | Preflight, cell: str) -> BaseException | None:
        """Run the cell as a cell of its own: its value and its traceback are shown as ever, and once."""
        failed: BaseException | None = None
        try:
            with one, self._silenced(cell):
                result = self._shell.run_cell(cell, store_history=False)
                failed = result.error_before_exec or result.error_in_exec
                if failed is not None:
                    raise failed
        except BaseException as error:
            if error is not failed:
                raise
        return failed

    @contextmanager
    def _silenced(self, cell: str) -> Iterator[None]:
        """Show no value of a cell that ends in a semicolon: IPython would look for it in the magic's own line."""
        if not _ends_in_semicolon(cell):
            yield
            return
        before = self._shell.ast_node_interactivity
        self._shell.ast_node_interactivity = "none"
        try:
            yield
        finally:
            self._shell.ast_node_interactivity = before


def _ends_in_semicolon(cell: str) -> bool:
    from IPython.core.displayhook import DisplayHook

    try:
        return bool(DisplayHook.semicolon_at_end_of_expression(cell))  # type: ignore[no-untyped-call]
    except (SyntaxError, TokenError):  # running it says what is wrong
        return False


def load_ipython_extension(ipython: Any) -> None:
    """Register ``%%cachescope``; called by ``%load_ext cachescope``."""
    ipython.register_magic_function(CachescopeMagic(ipython).__call__, "cell", "cachescope")


def _options(line: str) -> argparse.Namespace:
    parser = _Parser(prog="%%cachescope", add_help=False)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--fresh", action="store_true")
    how.add_argument("--preflight", action="store_true")
    parser.add_argument("--against", action="append", default=[], metavar="PATH")
    try:
        return parser.parse_args(shlex.split(line))
    except ValueError as error:  # a quote that is not closed
        parser.error(str(error))


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line and leaves the kernel running."""

    def error(self, message: str) -> NoReturn:
        from IPython.core.error import UsageError

        raise UsageError(f"{message}; usage: {_USAGE}")
