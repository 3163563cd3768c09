"""Finds what to set so that a command finds its entries, by pre-flights with one setting after another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence

from cachescope.analysis.fixes import VARIABLE, Setting
from cachescope.answers import fix as answer
from cachescope.answers.read import Read
from cachescope.capture.preflight_command import preflight
from cachescope.errors import CachescopeError, SourceError
from cachescope.readers.directory.place_of import looks_like_cache_dir
from cachescope.report.html import Reprs
from cachescope.report.preflight import fix_lines
from cachescope.scope.preflight import read_preflight


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
    recorded = preflight(
        command, folder, places, variables=variables, settings=others, output=subprocess.DEVNULL
    ).recorded
    if recorded.stopped_by == signal.SIGINT:
        raise KeyboardInterrupt
    if recorded.stopped_by is not None:
        sys.exit(128 + recorded.stopped_by)
    if recorded.exit_status or not recorded.has_trace:
        return None
    return read_preflight(str(recorded.folder), places)
