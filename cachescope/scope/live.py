"""Records the lookups of a block of code in this process, as a Scope."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType

from cachescope.answers.unrecorded import keys_beside
from cachescope.capture.fresh_caches import fresh_caches
from cachescope.capture.live_trace import Block, keep_context, traced
from cachescope.capture.recording import entries_here
from cachescope.errors import CachescopeError
from cachescope.readers.assemble import assemble
from cachescope.readers.directory.cache_dir import read_cache_dir
from cachescope.readers.directory.place_of import looks_like_cache_dir
from cachescope.readers.logs.trace_log import TRACE
from cachescope.readers.reading import Reading
from cachescope.readers.snapshot import read_context
from cachescope.readers.sources import read_sources
from cachescope.report.blocks import Block as Shown
from cachescope.report.html import Reprs
from cachescope.report.layout import Line
from cachescope.report.why_missed import block_html, recorded_blocks
from cachescope.scope.scope import Scope


def read_block(block: Block, reading: Reading) -> None:
    """Add a recorded block to `reading`, as one process."""
    TRACE.read(block.path, reading)
    if block.context is not None:
        read_context(block.context, reading)
    if block.failure is not None:
        reading.problem(block.path, "", "not_written", f"the trace is not whole: {block.failure}")


Against = str | os.PathLike[str] | Block


class Recording(Reprs):
    """The result of `recording`: a block of code whose lookups are recorded.

    Attributes
    ----------
    fresh : bool
        Whether the block had empty caches of its own.
    kept : Path or None
        The caches of a fresh block that failed; None if they were removed.
    """

    def __init__(self, fresh: bool, against: Iterable[Against]) -> None:
        self.fresh = fresh
        self.kept: Path | None = None
        self._against = tuple(against)
        self._caches: Path | None = None
        self._restore = ExitStack()
        self._state = "not begun"
        self._scope: Scope | None = None
        self._block: Block | None = None

    def __enter__(self) -> Recording:
        """Begin to record."""
        if self._state != "not begun":
            raise CachescopeError("a recording is for one block: call cachescope.recording() again")
        with ExitStack() as begun:
            self._block = begun.enter_context(traced())
            self._caches = begun.enter_context(fresh_caches()) if self.fresh else None
            begun.callback(keep_context, self._block)
            self._restore = begun.pop_all()
        self._state = "under way"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the recording and put everything back; an exception of the block goes on."""
        self._restore.close()
        self._state = "ended"
        try:
            self._scope = self._read(self.block)
        finally:
            if error is not None:
                self.kept = self._caches
            elif self._caches is not None:
                shutil.rmtree(self._caches, ignore_errors=True)
        if error is not None and self.kept is not None:
            error.add_note(self.kept_notice)

    @property
    def kept_notice(self) -> str:
        """Say where the caches of a failed fresh block are."""
        return f"cachescope: the block failed, and its fresh caches are kept at {self.kept}"

    @property
    def scope(self) -> Scope:
        """The lookups of the block as a `Scope`, those of `against` before them.

        Raises
        ------
        CachescopeError
            If the block has not ended yet.
        """
        if self._scope is None:
            raise CachescopeError(f"the recording is {self._state}: its scope is there after the block")
        return self._scope

    @property
    def run(self) -> int:
        """Which run of the scope the block is."""
        return next(row.run for row in self.scope.tables.runs.rows if row.source == self.block.path)

    @property
    def block(self) -> Block:
        """The trace of the block, for later recordings to be compared with.

        Raises
        ------
        CachescopeError
            If the block has not ended yet.
        """
        if self._block is None or self._state != "ended":
            raise CachescopeError(f"a recording that is {self._state} cannot be compared with")
        return self._block

    def _read(self, block: Block) -> Scope:
        reading = Reading()
        for one in self._against:
            if isinstance(one, Block):
                read_block(one, reading)
            else:
                read_sources([os.fspath(one)], reading)
        read_block(block, reading)
        if self._caches is not None and looks_like_cache_dir(str(self._caches)):
            read_cache_dir(str(self._caches), reading)
        return Scope(assemble(reading))

    @cached_property
    def _keys_beside(self) -> int:
        """How many keys the cache directory holds that the block was not compared with."""
        return 0 if self.fresh else keys_beside(self.scope, {self.run}, entries_here())

    def _blocks(self) -> Iterable[Shown]:
        if self._scope is None:
            return [Line(f"cachescope.Recording: {self._state}")]
        return recorded_blocks(self._scope, self.run, self._keys_beside)

    def _repr_html_(self) -> str:
        if self._scope is None:
            return super()._repr_html_()
        return block_html(self._scope, self.run, self._keys_beside)


def recording(*, fresh: bool = False, against: Iterable[Against | Recording] = ()) -> Recording:
    """Record the torch.compile lookups of a ``with`` block in this process.

    Parameters
    ----------
    fresh : bool, default False
        Give the block empty Inductor and Triton directories, and forget what this process has compiled. Then the
        caches are cold, but the process is not: imports and state that torch does not reset stay, so times
        are shorter than on a first start. The directories are removed after the block, or kept if it fails
        (``Recording.kept``, and a note on the exception). The user's own caches on disk are not touched. Functions that were
        compiled before are compiled again when they are next called, which is quick with the user's caches.
    against : iterable of Recording, str or Path
        What misses are compared with, in addition to the lookups of the block: earlier recordings, and whatever
        `read` takes, such as the cache directory. Their runs are in the scope too.

    Returns
    -------
    Recording
        After the block ``.scope`` is a `Scope` and ``.run`` the number of the block among its runs. It
        includes the lookups of all threads. ``.scope.entries`` are those of `against` and, with `fresh`, those that the
        block stored, as they were before they were removed.

    Raises
    ------
    CachescopeError
        If a recording of `against` has not ended. On entering: without torch, or if this process is already being recorded (nested, or in another thread).

    Notes
    -----
    Without `fresh`, a function that was compiled before the block looks nothing up in it: Dynamo keeps it until
    ``torch._dynamo.reset()`` is called. With `fresh`, `recording` calls that first, unlike torch's own
    ``fresh_cache``.

    The trace of the block is a file in the temporary directory, which is removed when the process ends.

    Mirrors ``fresh_cache`` of torch/_inductor/utils.py and listens to the logger of ``trace_structured``
    (torch/_logging/_internal.py), 2.5 to 2.15. Lookups of a remote cache only are recorded as torch logs them.

    Examples
    --------
    >>> import cachescope
    >>> r = cachescope.recording()
    >>> r
    cachescope.Recording: not begun
    """
    several = (against,) if isinstance(against, (str, os.PathLike, Recording)) else against
    return Recording(fresh, [one.block if isinstance(one, Recording) else one for one in several])
