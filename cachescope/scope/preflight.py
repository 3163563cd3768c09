"""Predicts the lookups that a program would make, from the traces of a pre-flight or of a block in this process.

And finds what to set so that a command finds its entries, by pre-flights with one setting after another.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from types import TracebackType

from cachescope.analysis.fixes import VARIABLE, Setting
from cachescope.answers import preflight as answer
from cachescope.answers.preflight import PreflightAnswer, named_directories
from cachescope.answers.read import Read
from cachescope.capture import preflight_command
from cachescope.capture.live_preflight import live_preflight
from cachescope.errors import CachescopeError, SourceError
from cachescope.locking.lock import looks_like_lock, read_lock
from cachescope.readers.assemble import assemble
from cachescope.readers.directory.bundles import is_bundle, read_as_directory
from cachescope.readers.directory.place_of import looks_like_cache_dir
from cachescope.readers.reading import ListedEntry, Reading
from cachescope.readers.remote_cache.address import is_redis, without_password
from cachescope.readers.remote_cache.stored import check_redis, read_redis
from cachescope.readers.sources import check_sources, read_sources
from cachescope.report.blocks import Block as Shown
from cachescope.report.html import Reprs
from cachescope.report.layout import Line
from cachescope.report.preflight import fix_lines, preflight_blocks
from cachescope.scope.live import read_block
from cachescope.scope.scope import Scope

Against = str | os.PathLike[str]


def read_preflight(folder: str, against: Iterable[Against] | None) -> Scope:
    """Read the traces of a pre-flight, and check its lookups against directories or recordings; raises `SourceError`."""
    # Against cache directories, which may be empty or not exist yet, recordings, mega-cache files that the program would load, locks, or
    # remote caches. None: the directories that the program would use, according to the traces.
    reading = Reading()
    read_sources([folder], reading)
    return _held_against(reading, against)


def check_against(against: Iterable[Against]) -> None:
    """Raise `SourceError`, before anything runs, if a target of the pre-flight cannot be read."""
    for place in _places(against):
        if _is_empty(place) or is_bundle(place):
            continue
        if is_redis(place):
            check_redis(place)
        elif looks_like_lock(place):
            read_lock(place)
        else:
            check_sources([place])


def _held_against(reading: Reading, against: Iterable[Against] | None) -> Scope:
    made = (lookup for process in reading.processes for lookup in process.lookups)
    for place in named_directories(made) if against is None else _places(against):
        if _is_empty(place):
            reading.cache_roots.append(place)
        elif is_redis(place):
            read_redis(place, reading, may_be_empty=True)
        elif is_bundle(place):
            read_as_directory(place, reading)
        elif looks_like_lock(place):
            _read_locked(place, reading)
        else:
            read_sources([place], reading)
    return Scope(assemble(reading))


def _read_locked(place: str, reading: Reading) -> None:
    """List the entries of a lock; whether they are there still is what `verify` says."""
    lock = read_lock(place)
    reading.listed += [
        ListedEntry(file.kind, file.key, place, file.needs) for file in lock.entries() if file.key is not None
    ]
    reading.cache_roots.append(place)


def _places(against: Iterable[Against]) -> list[str]:
    return [without_password(os.fspath(one)) for one in against]


def _is_empty(place: str) -> bool:
    """Whether a cache directory holds nothing, as before the first run."""
    if is_redis(place):
        return False
    return not os.path.lexists(place) or (os.path.isdir(place) and not os.listdir(place))


class Preflight(Reprs):
    """The result of `preflight`: a block of code that compiles nothing, and whose lookups are predicted."""

    def __init__(self, against: Iterable[Against] | None) -> None:
        self._against = None if against is None else tuple(_places(against))
        self._live = ExitStack()
        self._state = "not begun"
        self._scope: Scope | None = None

    def __enter__(self) -> Preflight:
        """Begin."""
        check_against(self._against or ())
        if self._state != "not begun":
            raise CachescopeError("a pre-flight is for one block: call cachescope.preflight() again")
        self._block = self._live.enter_context(live_preflight(self._against or ()))
        self._state = "under way"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End it and put everything back; an exception of the block goes on."""
        self._live.close()
        self._state = "ended"
        reading = Reading()
        read_block(self._block, reading)
        self._scope = _held_against(reading, self._against)

    @property
    def scope(self) -> Scope:
        """The lookups that a real run of the block would make, as a `Scope`, together with what they are checked against.

        Raises
        ------
        CachescopeError
            If the block has not ended yet.
        """
        if self._scope is None:
            raise CachescopeError(f"the pre-flight is {self._state}: its scope is there after the block")
        return self._scope

    def _blocks(self) -> Iterable[Shown]:
        if self._scope is None:
            return [Line(f"cachescope.Preflight: {self._state}")]
        return preflight_blocks(PreflightAnswer.of(self._scope))


def preflight(*, against: Against | Iterable[Against] | None = None) -> Preflight:
    """Predict the torch.compile lookups of a ``with`` block: each graph is executed op by op, none is compiled.

    Parameters
    ----------
    against : str, Path or iterable of them, optional
        What the lookups are checked against: cache directories, recordings of earlier runs, mega-cache files, locks
        that `cachescope.lock` made, or remote caches (``redis://…`` or a dump). By default the cache directory that this
        process uses.

    Returns
    -------
    Preflight
        After the block ``.scope`` is a `Scope` whose lookups are those that a real run would make, with the outcomes
        ``would_hit``, ``would_miss``, ``would_bypass`` and ``not_known``.

    Notes
    -----
    Functions that were compiled before are forgotten when the block begins and when it ends, as by
    ``torch._dynamo.reset()``. Nothing is stored, and no compiler is started. Needs torch 2.8 or later.

    Examples
    --------
    >>> import cachescope
    >>> cachescope.preflight()
    cachescope.Preflight: not begun
    """
    return Preflight((against,) if isinstance(against, (str, os.PathLike)) else against)


class Fix(Reprs, answer.Fix):
    """A fix with its reprs."""

    __slots__ = ()

    _blocks = fix_lines


def fix(
    command: Sequence[str],
    against: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    progress: Callable[[Sequence[Setting]], None] | None = None,
) -> Fix:
    """Find out, by trying, what to set so that a command finds its entries.

    The command runs several times as a pre-flight (`cachescope.preflight`): first unchanged, then with one setting after
    another. Its standard output is not shown.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments.
    against : str, Path or iterable of them
        What it should find: a cache directory, or recordings of the runs that filled it.
    progress : callable, optional
        Called before each pre-flight, with the settings that it tries.

    Returns
    -------
    Fix
        With a text and an HTML repr; ``.settings`` are the confirmed settings, each of them needed; ``.remaining`` is what
        still misses with them.

    Raises
    ------
    CachescopeError
        If the command cannot be started, fails, or compiles nothing.
    SourceError
        If `against` cannot be read.

    Notes
    -----
    Each setting is tried where the answer says that it belongs: an attribute just before the first compile of each process,
    so that what the program sets later still holds; a call at the start, with the program's own calls of that function
    left out; an option in every `torch.compile`.
    """
    given = [against] if isinstance(against, (str, os.PathLike)) else list(against)
    places = [os.fspath(one) for one in given]
    if missing := [place for place in places if not os.path.lexists(place)]:
        raise SourceError(missing[0], "no such file or directory", "missing")
    with tempfile.TemporaryDirectory(prefix="cachescope-fix-", ignore_cleanup_errors=True) as folder:

        def trial(settings: Sequence[Setting]) -> Read | None:
            if progress is not None:
                progress(settings)
            return _trial(command, folder, places, settings)

        directories = [place for place in places if looks_like_cache_dir(place)]
        found = Fix.of(trial, os.environ, directories[0] if len(places) == len(directories) == 1 else None)
    if found is None:
        raise CachescopeError("the command failed, or nothing in it was compiled with torch")
    return found


def _trial(
    command: Sequence[str], folder: str, places: Sequence[str], settings: Sequence[Setting]
) -> Read | None:
    variables = {one.name: one.value for one in settings if one.kind == VARIABLE}
    others = [(one.kind, one.name, one.value or "") for one in settings if one.kind != VARIABLE]
    recorded = preflight_command.preflight(
        command, folder, places, variables=variables, settings=others, output=subprocess.DEVNULL
    ).recorded
    if recorded.stopped_by == signal.SIGINT:
        raise KeyboardInterrupt
    if recorded.stopped_by is not None:
        sys.exit(128 + recorded.stopped_by)
    if recorded.exit_status or not recorded.has_trace:
        return None
    return read_preflight(str(recorded.folder), places)
