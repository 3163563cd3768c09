"""Which quick tests reach which line: coverage of each test by itself, measured once."""

from __future__ import annotations

import json
import os
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import coverage
import pytest
from _pytest.runner import runtestprotocol

from mutants.changes import Change

ROOMS = ("analysis", "keys", "readers")


class Reach:
    """Tests by the lines that they reach, and how long each takes."""

    def __init__(self, kept: dict[str, Any]) -> None:
        self.tests: list[str] = kept["tests"]
        self.seconds = dict(zip(self.tests, kept["seconds"], strict=True))
        self._lines: dict[str, dict[str, list[int]]] = kept["lines"]

    def tests_of(self, change: Change, seconds: float) -> list[str]:
        """Those of its line: first those that are named like the module, then the quickest, for so long together."""
        path, of_module = change.path, self._lines.get(str(change.path), {})
        # Of a constant alone in its line nothing is measured.
        numbers = of_module.get(str(change.line)) or of_module.get(str(change.statement), [])
        stem = path.stem if path.stem != "__init__" else path.parent.name
        names = [self.tests[number] for number in numbers]
        names.sort(key=lambda name: (f"test_{stem}" not in name, self.seconds[name]))
        left, found = seconds, []
        for name in names:
            left -= self.seconds[name]
            if left < 0 and found:
                break
            found.append(name)
        return found


def reach_of(session: pytest.Session) -> dict[str, Any]:
    """Run every test in a process of its own kind, whose caches no other has, and see what it reaches."""
    with tempfile.TemporaryDirectory(prefix="cachescope-reach-") as room:
        path = Path(room) / "reach.json"
        pid = os.fork()
        if pid == 0:
            try:
                session.config._tmp_path_factory._basetemp = Path(room)  # type: ignore[attr-defined]
                path.write_text(json.dumps(_measured(session)), encoding="utf-8")
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _measured(session: pytest.Session) -> dict[str, Any]:
    root = Path("cachescope").resolve()
    measure = coverage.Coverage(data_file=None, include=[f"{root}/{room}/*" for room in ROOMS])
    tests: list[str] = []
    seconds: list[float] = []
    measure.start()
    for item, following in zip(session.items, [*session.items[1:], None], strict=True):
        measure.switch_context(item.nodeid)
        began = time.perf_counter()
        reports = runtestprotocol(item, nextitem=following, log=False)
        if all(report.passed for report in reports):
            tests.append(item.nodeid)
            seconds.append(round(time.perf_counter() - began, 4))
        elif any(report.failed for report in reports):
            print(f"left out, as it fails by itself: {item.nodeid}", flush=True)
    measure.stop()
    number = {name: at for at, name in enumerate(tests)}
    data = measure.get_data()
    return {
        "tests": tests,
        "seconds": seconds,
        "lines": {
            str(Path(file).relative_to(root.parent)): {
                str(line): [number[name] for name in names if name in number]
                for line, names in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        },
    }
