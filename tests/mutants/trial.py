"""One process for each change: the functions get their changed code, and the tests run that reach it."""

import gc
import importlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import _lru_cache_wrapper
from pathlib import Path
from types import CodeType, FunctionType

import pytest
from _pytest.runner import runtestprotocol

from mutants.changes import Change
from mutants.reach import Reach, file_states, reach_of

# The exit status of a process says what became of its change.
_SURVIVED, _NOTICED, _BROKEN = 0, 1, 2
NOT_TRIED = "could not be tried"
_GIGABYTES = 6
Place = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the tests made of one change."""

    change: Change
    word: str
    ran: int

    @property
    def survived(self) -> bool:
        return self.word in ("survived", "reached by no test")


class Trials:
    """A pytest plugin that runs no test by itself, but those that may notice a change, for each."""

    def __init__(self, changes: list[Change], jobs: int, seconds: float) -> None:
        self.changes, self.jobs, self.seconds = changes, jobs, seconds
        self.outcomes: list[Outcome] = []
        self._running: dict[int, tuple[Change, int, Path]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            return True
        reach = _kept_reach(session)
        for path in {change.path for change in self.changes}:
            # Some are imported within functions only, which would be too late.
            importlib.import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
        # conftest.py hides from the collector of garbage what it found so far.
        gc.unfreeze()
        functions = _functions()
        for change in self.changes:
            tests = reach.tests_of(change, self.seconds)
            if not tests:
                self._say(Outcome(change, "reached by no test", 0))
                continue
            while len(self._running) >= self.jobs:
                self._wait()
            room = Path(tempfile.mkdtemp(prefix="cachescope-mutant-"))
            pid = os.fork()
            if pid == 0:
                _try(session, change, tests, functions, reach, room)
            self._running[pid] = (change, len(tests), room)
        while self._running:
            self._wait()
        return True

    def _wait(self) -> None:
        pid, status = os.wait()
        change, ran, room = self._running.pop(pid)
        with _nobody_left():
            os.killpg(pid, signal.SIGKILL)
        shutil.rmtree(room, ignore_errors=True)
        code = os.waitstatus_to_exitcode(status)
        words = {
            _SURVIVED: "survived",
            _NOTICED: "noticed",
            _BROKEN: NOT_TRIED,
            -signal.SIGALRM: "ran too long",
        }
        self._say(Outcome(change, words.get(code, "ended the process"), ran))

    def _say(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        if outcome.survived or outcome.word == NOT_TRIED:
            print(f"[{len(self.outcomes)}] {outcome.word}: {outcome.change}", flush=True)


class _nobody_left:  # noqa: N801 - a context manager
    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, ProcessLookupError)


def _kept_reach(session: pytest.Session) -> Reach:
    """Which tests reach which lines, kept with pytest's cache: only the tests of files that changed are run anew."""
    state = file_states()
    cache = session.config.cache
    kept = Reach(**cache.get("mutants/lines", {}))
    known = kept.tests_known_by(state)
    missing = [item for item in session.items if item.nodeid not in known]
    kept.keep_only(known)
    if missing:
        began = time.perf_counter()
        print(f"which of {len(missing)} tests reach which lines…", flush=True)
        kept.add(**reach_of(session, missing))
        kept.state = state
        cache.set("mutants/lines", kept.as_json())
        print(f"… found in {time.perf_counter() - began:.0f} s", flush=True)
    return kept


def _places(code: CodeType) -> Iterator[tuple[Place, CodeType]]:
    yield (code.co_filename, code.co_qualname, code.co_firstlineno), code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _places(constant)


def _functions() -> dict[Place, list[FunctionType]]:
    """Every function there is, decorated ones as well, by where it stands."""
    found: dict[Place, list[FunctionType]] = defaultdict(list)
    for one in gc.get_objects():
        if type(one) is FunctionType and "cachescope" in one.__code__.co_filename:
            place, _ = next(_places(one.__code__))
            found[place].append(one)
    return found


def _try(
    session: pytest.Session,
    change: Change,
    tests: list[str],
    functions: dict[Place, list[FunctionType]],
    reach: Reach,
    room: Path,
) -> None:
    """Never returns: runs the tests until one fails, in a process that is not the parent's."""
    code = _BROKEN
    try:
        os.setsid()
        quiet = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(quiet, descriptor)
        resource.setrlimit(resource.RLIMIT_AS, (_GIGABYTES << 30, _GIGABYTES << 30))
        session.config._tmp_path_factory._basetemp = room  # type: ignore[attr-defined]
        # What a process that ends like this one would leave behind is removed with the room.
        tempfile.tempdir = os.environ["TMPDIR"] = str(room)
        is_changed = False
        for place, changed in _places(change.code()):
            for function in functions.get(place, ()):
                function.__code__ = changed
                is_changed = True
        assert is_changed
        for one in gc.get_objects():
            if type(one) is _lru_cache_wrapper and one.__module__.startswith("cachescope"):
                one.cache_clear()
        items = {item.nodeid: item for item in session.items}
        code = _NOTICED if _fails([items[test] for test in tests], reach, session) else _SURVIVED
    finally:
        sys.stdout.flush()
        os._exit(code)


def _fails(items: list[pytest.Item], reach: Reach, session: pytest.Session) -> bool:
    """Whether one of them fails. Nothing is torn down at the end: the process ends."""
    for item, following in zip(items, [*items[1:], items[-1]], strict=True):
        session._setupstate.teardown_exact(item)
        # Without a handler: whatever runs so long ends with the process.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(10 + int(10 * reach.seconds[item.nodeid]))
        reports = runtestprotocol(item, nextitem=following, log=False)
        if any(report.failed for report in reports):
            return True
    return False
