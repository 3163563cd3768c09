"""Which quick tests reach which line: coverage of each test by itself, measured once."""

import gc
import hashlib
import json
import os
import sys
import tempfile
import time
import traceback
from functools import _lru_cache_wrapper
from pathlib import Path
from typing import Any

import coverage
import pytest
from _pytest.runner import runtestprotocol

from mutants.changes import Change

ROOMS = ("analysis", "catalogue", "keys", "readers")


def file_states() -> dict[str, str]:
    """A hash of each file of tests, and under "" one of all that they share: the package and their helpers."""
    state = {}
    shared = hashlib.sha256()
    for path in sorted(file for room in ("cachescope", "tests") for file in Path(room).rglob("*.py")):
        if "mutants" in path.parts:
            continue
        if path.name.startswith("test_"):
            state[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            shared.update(path.read_bytes())
    return state | {"": shared.hexdigest()}


class Reach:
    """Tests by the lines that they reach, and how long each takes."""

    def __init__(self, state: dict[str, str] | None = None, **measured: Any) -> None:
        self.state = state or {}
        self.seconds: dict[str, float] = {}
        self._lines: dict[str, dict[str, list[str]]] = {}
        if measured:
            self.add(**measured)

    def as_json(self) -> dict[str, Any]:
        """As `_measured` gives it, and the state of the files."""
        number = {test: at for at, test in enumerate(self.seconds)}
        lines = {
            file: {line: [number[test] for test in tests] for line, tests in of_file.items()}
            for file, of_file in self._lines.items()
        }
        return {"state": self.state, "seconds": self.seconds, "lines": lines}

    def tests_known_by(self, state: dict[str, str]) -> set[str]:
        """The tests whose file is as it was when they were measured, and all that they share as well."""
        if state.get("") != self.state.get(""):
            return set()
        same = {file for file, digest in state.items() if self.state.get(file) == digest}
        return {test for test in self.seconds if (file := _file_of(test)) in same or file not in state}

    def keep_only(self, tests: set[str]) -> None:
        self.seconds = {test: taken for test, taken in self.seconds.items() if test in tests}
        self._lines = {
            file: {line: [test for test in of_line if test in tests] for line, of_line in lines.items()}
            for file, lines in self._lines.items()
        }

    def add(self, seconds: dict[str, float], lines: dict[str, dict[str, list[int]]]) -> None:
        """Take in what was measured of some tests; in the lists of lines each stands by its number."""
        names = list(seconds)
        self.seconds |= seconds
        for file, of_file in lines.items():
            known = self._lines.setdefault(file, {})
            for line, tests in of_file.items():
                known[line] = [*known.get(line, ()), *(names[number] for number in tests)]

    def tests_of(self, change: Change, seconds: float) -> list[str]:
        """Those of its line: first those that are named like the module, then the quickest, for so long together.

        Last the other tests of their files: what a fixture that they share computes was measured with the first of them alone.
        """
        path, of_module = change.path, self._lines.get(str(change.path), {})
        # Of a constant alone in its line nothing is measured.
        names = list(of_module.get(str(change.line)) or of_module.get(str(change.statement), []))
        stem = path.stem if path.stem != "__init__" else path.parent.name
        names.sort(key=lambda name: (f"test_{stem}" not in name, self.seconds[name]))
        files, own = {_file_of(name) for name in names}, set(names)
        beside = [name for name in self.seconds if _file_of(name) in files and name not in own]
        left, found = seconds, []
        for name in [*names, *sorted(beside, key=self.seconds.__getitem__)]:
            left -= self.seconds[name]
            if left < 0 and found:
                break
            found.append(name)
        return found


def _file_of(test: str) -> str:
    return test.split("::")[0]


def _forget_readings() -> None:
    """Let each file of tests read its recordings by itself (`tests/readings.py`), so that it is seen to reach what reads them."""
    for one in gc.get_objects():
        if type(one) is _lru_cache_wrapper and one.__module__.endswith("readings"):
            one.cache_clear()


def reach_of(session: pytest.Session, items: list[pytest.Item]) -> dict[str, Any]:
    """Run tests in a process of its own, whose caches no other has, and see what each of them reaches."""
    with tempfile.TemporaryDirectory(prefix="cachescope-reach-") as room:
        path = Path(room) / "reach.json"
        pid = os.fork()
        if pid == 0:
            try:
                session.config._tmp_path_factory._basetemp = Path(room)  # type: ignore[attr-defined]
                tempfile.tempdir = os.environ["TMPDIR"] = room
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                path.write_text(json.dumps(_measured(items)), encoding="utf-8")
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _measured(items: list[pytest.Item]) -> dict[str, Any]:
    root = Path("cachescope").resolve()
    measure = coverage.Coverage(data_file=None, include=[f"{root}/{room}/*" for room in ROOMS])
    seconds: dict[str, float] = {}
    file = ""
    measure.start()
    for item, following in zip(items, [*items[1:], None], strict=True):
        measure.switch_context(item.nodeid)
        if _file_of(item.nodeid) != file:
            file = _file_of(item.nodeid)
            _forget_readings()
        began = time.process_time()
        reports = runtestprotocol(item, nextitem=following, log=False)
        if all(report.passed for report in reports):
            seconds[item.nodeid] = round(time.process_time() - began, 4)
        elif any(report.failed for report in reports):
            print(f"left out, as it fails by itself: {item.nodeid}", file=sys.stderr, flush=True)
    measure.stop()
    data, number = measure.get_data(), {name: at for at, name in enumerate(seconds)}
    return {
        "seconds": seconds,
        "lines": {
            str(Path(file).relative_to(root.parent)): {
                str(line): [number[name] for name in names if name in number]
                for line, names in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        },
    }
