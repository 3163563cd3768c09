"""One input after the other: made, watched while it is read, counted, and kept where it fails."""

import random
import time
import traceback
from collections import Counter
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Protocol

from cachescope import analysis, answers, readers
from fuzz.files import file_kinds
from fuzz.kept import kept_kinds, table_kinds
from fuzz.logs import VllmLogs, log_kinds
from fuzz.seeds import Seeds
from fuzz.shown import Shown
from fuzz.watch import Watch

# How often a kind comes. No medium has most of them, and what takes long comes seldom: a directory takes as long as hundreds of pickles.
WEIGHTS = {
    "pickles": 1_700, "trace records": 500, "traces in parts": 100, "text lines": 500, "entries": 300,
    "JSON files": 100, "files of a directory": 100, "mega-caches": 100, "shipped files": 40, "vLLM logs": 20,
    "remote caches": 40, "packed logs": 40, "locks": 40, "indexes": 40, "planted recordings": 12,
    "directories": 4, "saved scopes": 4, "collected logs": 4,
}  # fmt: skip
_SAY_SECONDS = 30
_MOST_KEPT = 200


class Kind(Protocol):
    name: str

    def make(self, chance: random.Random) -> bytes: ...

    def check(self, data: bytes, folder: Path) -> None: ...


class Driver:
    """Makes inputs of some kinds, and feeds them; writes to `folder` alone, and what fails to `keep`."""

    def __init__(self, folder: Path, seed: int, keep: Path, only: list[str] | None = None) -> None:
        self._folder = folder / "work"
        self._folder.mkdir()
        self._seed, self._keep = seed, keep
        seeds = Seeds(folder / "seeds")
        kinds: list[Kind] = [
            *log_kinds(seeds),
            VllmLogs(seeds),
            *file_kinds(seeds),
            *table_kinds(seeds, folder),
            *kept_kinds(seeds),
            Shown(seeds),
        ]  # type: ignore[list-item]
        assert {kind.name for kind in kinds} == set(WEIGHTS)
        self.kinds = [kind for kind in kinds if only is None or kind.name in only]
        self._weights = [WEIGHTS[kind.name] for kind in self.kinds]
        self.counts: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self._warm_up(kinds)
        self._watch = Watch(folder)

    def _warm_up(self, kinds: list[Kind]) -> None:
        """What is loaded when it is first needed is loaded before anyone looks on: making its classes executes code."""
        for room in (analysis, answers, readers):
            for module in walk_packages(room.__path__, f"{room.__name__}."):
                import_module(module.name)
        for kind in kinds:
            for number in range(30):
                chance = random.Random(f"warm/{kind.name}/{number}")
                data = kind.make(chance)
                try:
                    kind.check(data, self._folder)
                except Exception:
                    continue

    def run(self, inputs: int, minutes: float | None = None, first: int = 0) -> int:
        """Feed so many inputs, or for so long; 1 where one failed."""
        began = said = time.monotonic()
        number = first
        for number in range(first, first + inputs):
            self.feed(number)
            now = time.monotonic()
            if now - said > _SAY_SECONDS:
                self._say(number + 1, now - began)
                said = now
            if minutes is not None and now - began > 60 * minutes:
                break
        self._say(number + 1, time.monotonic() - began)
        return 1 if self.failed else 0

    def feed(self, number: int) -> None:
        """Make one input, and keep it where it fails."""
        try:
            kind, data = self._made(number)
        except Exception as error:
            # No input fails here, but the harness: it is counted, and goes on.
            self._fail("made", number, b"", error)
            return
        self.counts[kind.name] += 1
        try:
            with self._watch.over():
                kind.check(data, self._folder)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._fail(kind.name, number, data, error)

    def again(self, number: int) -> None:
        """Make one input again, without anybody looking on."""
        kind, data = self._made(number)
        print(f"{kind.name}, {len(data)} bytes: {data[:300]!r}", flush=True)
        kind.check(data, self._folder)

    def _made(self, number: int) -> tuple[Kind, bytes]:
        chance = random.Random(f"{self._seed}/{number}")
        (kind,) = chance.choices(self.kinds, self._weights)
        return kind, kind.make(chance)

    def _fail(self, name: str, number: int, data: bytes, error: BaseException) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        where = frames[-1] if frames else None
        what = (
            f"{name}: {type(error).__name__} {where and Path(where.filename).name}:{where and where.lineno}"
        )
        self.failed[what] += 1
        if self.failed[what] > 1 or len(self.failed) > _MOST_KEPT:
            return
        self._keep.mkdir(parents=True, exist_ok=True)
        stem = f"{self._seed}-{number}-{name.replace(' ', '_')}"
        (self._keep / f"{stem}.bin").write_bytes(data)
        told = "".join(traceback.format_exception(error))[-20_000:]
        (self._keep / f"{stem}.txt").write_text(told, errors="backslashreplace")
        print(f"FAILED --seed {self._seed} --only {number}  {what}: {str(error)[:200]!r}", flush=True)

    def _say(self, number: int, seconds: float) -> None:
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.most_common())
        failed = sum(self.failed.values())
        print(
            f"seed {self._seed}: {sum(self.counts.values())} inputs up to number {number} in {seconds:.0f} s"
            f" ({counts}); {failed} failed, {len(self.failed)} kinds of failure",
            flush=True,
        )
