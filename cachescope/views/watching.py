"""Follows the sources of a scope while a job writes them, and says so: what is watched, the last reading, a button to stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from cachescope.answers.read import Read
from cachescope.errors import CachescopeError, SourceError
from cachescope.readers.file_fingerprints import Stamps, stamps
from cachescope.report.html import safe
from cachescope.views.controls import Pane, button, markup, row

SHORTEST_PAUSE_S: Final = 2.0
PAUSES_PER_WORK: Final = 5
"""A pause is this many times as long as the last look: following takes a sixth of one core at most."""


class Following:
    """The newest reading of the sources of a scope, and how many seconds to wait before the next look."""

    def __init__(self, scope: Read) -> None:
        if not scope.sources:
            raise SourceError("this process", "there is no file to follow: it was recorded as it ran")
        self.scope = scope
        self.pause_s = SHORTEST_PAUSE_S
        # No stamps yet: what was written after the first reading must not be missed.
        self._stamps: Stamps | None = None

    def look(self) -> bool:
        """Look once, in any thread; return whether something changed and `scope` is new."""
        began = time.monotonic()
        try:
            now = stamps(self.scope.sources)
            if now == self._stamps:
                return False
            scope = self.scope.read_again()
            # Computed here, where nobody waits for it.
            _ = scope.facts
            self.scope, self._stamps = scope, now
            return True
        finally:
            self.pause_s = max(SHORTEST_PAUSE_S, PAUSES_PER_WORK * (time.monotonic() - began))


class Watching(Pane):
    """Looks repeatedly in the kernel's event loop; reading runs in a thread, which keeps the page responsive."""

    def __init__(
        self, following: Following, take: Callable[[Read], None], is_seen: Callable[[], bool]
    ) -> None:
        self.following = following
        self._take, self._is_seen = take, is_seen
        self._read_at = time.strftime("%H:%M:%S")
        self._error = ""
        self._task: asyncio.Task[None] | None = None
        self._said = markup()
        self._stop = button("Stop watching", self.stop, "What was read stays")
        super().__init__(row(self._stop, self._said))
        self._say()

    def start(self) -> None:
        """Start following, in the running event loop."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError as error:
            raise CachescopeError(
                "watch=True needs the event loop of a notebook, and none runs here"
            ) from error
        self._task = loop.create_task(self._follow())
        self._say()

    def stop(self) -> None:
        """Stop following. The result of a reading in progress is dropped."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._say()

    def step(self) -> None:
        """Look once, synchronously, and show what changed."""
        self._show(self._look())

    def _look(self) -> bool | Exception:
        try:
            return self.following.look()
        except Exception as error:  # half written, gone, whatever it is: shown in place, and tried again
            return error

    def _show(self, found: bool | Exception) -> None:
        now = time.strftime("%H:%M:%S")
        self._error = f"{now} {type(found).__name__}: {found}" if isinstance(found, Exception) else ""
        if found is True:
            self._read_at = now
            self._take(self.following.scope)
        self._say()

    async def _follow(self) -> None:
        pool = ThreadPoolExecutor(1, thread_name_prefix="cachescope-watch")
        loop = asyncio.get_running_loop()
        try:
            while True:
                await asyncio.sleep(self.following.pause_s)
                if self._is_seen():
                    self._show(await loop.run_in_executor(pool, self._look))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _say(self) -> None:
        sources = self.following.scope.sources
        names = ", ".join(sources[:3]) + (" …" if len(sources) > 3 else "")
        doing = "Stopped watching" if self._task is None else "Watching"
        self._stop.disabled = self._task is None
        markup = (
            f"<span role='status'>{doing} <code>{safe(names)}</code>, last read at {self._read_at}</span>"
        )
        if self._error:
            markup += f"<div class='cs-error' role='alert'>{safe(self._error)}. It is tried again.</div>"
        if markup != self._said.value:
            self._said.value = markup

    def __repr__(self) -> str:
        return f"Watching({'off' if self._task is None else 'on'})"
