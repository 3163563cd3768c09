"""The explorer: all panes over one scope, with one selection and one span of time; it may follow the sources while a job writes them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from typing import Any, Final

import ipywidgets
import pandas as pd
from ipywidgets import Layout
from traitlets.utils.bunch import Bunch

from cachescope.answers.chosen import Chosen, Span
from cachescope.answers.read import Read
from cachescope.errors import CachescopeError, SourceError
from cachescope.readers.file_fingerprints import Stamps, stamps
from cachescope.report.blocks import Block, Group
from cachescope.report.html import lines_html, safe
from cachescope.report.layout import Line
from cachescope.report.subjects import SUBJECTS, told
from cachescope.report.why_missed import summary_html
from cachescope.views.controls import InPython, Opens, Pane, Shows, button, close_all, markup, row, sentence
from cachescope.views.state import LOOKUPS, PANES, TOLD, WHY, State, carried
from cachescope.wording import clock_of, plural

# Below so many nanoseconds, seconds would not tell the ends apart.
_SHORT: Final = 10 * 10**9
# The number of rows in each list of an answer.
_LISTED: Final = 100
SHORTEST_PAUSE_S: Final = 2.0
PAUSES_PER_WORK: Final = 5
"""Each pause is this many times as long as the last look, so that following takes at most a sixth of one core."""


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
            # Computed here, while nobody waits.
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
            missing = "watch=True needs the event loop of a notebook, and none runs here"
            raise CachescopeError(missing) from error
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
        except Exception as error:  # half written, gone, or anything else: shown in place, and tried again
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
        said = f"{doing} <code>{safe(names)}</code>, last read at {self._read_at}"
        markup = f"<span role='status'>{said}</span>"
        if self._error:
            markup += f"<div class='cs-error' role='alert'>{safe(self._error)}. It is tried again.</div>"
        if markup != self._said.value:
            self._said.value = markup

    def __repr__(self) -> str:
        return f"Watching({'off' if self._task is None else 'on'})"


class SpanChip(Pane):
    """The span with its number of lookups, and a button that clears it; nothing if none is chosen."""

    def __init__(self, state: State) -> None:
        self._state = state
        super().__init__(layout=Layout(display="none"))

    def show(self, chosen: Chosen, beyond: str) -> None:
        """Show what is chosen, and what the pane below shows regardless."""
        span = self._state.span
        if span is None or chosen.is_all:
            self.layout.display = "none"
            return
        if not self.children:
            self._make()
        self.said.show(Line(_text(chosen, span), style="bold"))
        self.beyond.show(*([Line(beyond, style="dim")] if beyond else []))
        self.layout.display = ""

    def _make(self) -> None:
        # Most never choose a span.
        self.said, self.beyond = markup(), markup()
        clear = partial(setattr, self._state, "span", None)
        self.clear = button("Clear", clear, "Show all times again, in every pane")
        self.children = [row(self.said, self.clear, classes=["cs-span"]), self.beyond]


def _text(chosen: Chosen, span: Span) -> str:
    clock, is_short = clock_of(span), span[1] - span[0] < _SHORT
    first, last = (clock(ns) + (f".{ns // 10**6 % 1000:03}" if is_short else "") for ns in span)
    every = chosen.read.shown.frame
    untimed = int(every["time"].isna().sum())
    more = f"; {plural(untimed, 'lookup')} without a time left out" if untimed else ""
    return f"{first} to {last} UTC, {len(chosen):,} of {plural(len(every), 'lookup')}{more}"


class Failed(Shows):
    """A pane that could not be made, with the reason."""

    def __init__(self, scope: Read, state: State, error: Exception) -> None:
        self._reason = f"{type(error).__name__}: {error}"
        super().__init__(scope, state)

    def words(self) -> Iterable[Block]:
        """The error."""
        return (Line(f"This pane could not be made: {self._reason}", style="red"),)


class Told(Shows):
    """A pane that shows an answer, by the name of the pane."""

    beyond = "This is of all that was read."

    def __init__(self, scope: Read, state: State, pane: str) -> None:
        self._name = pane.lower()
        super().__init__(scope, state)

    def words(self) -> Iterable[Block]:
        """The answer."""
        blocks = told(self._name).blocks(self._scope, _LISTED, self.query)
        return (Group("", SUBJECTS[self._name].question, tuple(blocks)),)

    def in_python(self) -> InPython:
        """The rows behind the answer."""
        return f"scope.{self._name}", lambda: getattr(self._scope, self._name)


# By name, so that the first pane does not wait for the imports of all.
_MAKES: Final = {
    "Overview": ("cachescope.views.overview", "Overview"),
    LOOKUPS: ("cachescope.views.lookups", "Lookups"),
    WHY: ("cachescope.views.why", "Why"),
    "Compare": ("cachescope.views.compare", "Compare"),
    "Time": ("cachescope.views.time", "Time"),
    "What-if": ("cachescope.views.what_if", "WhatIfView"),
    "Machines": ("cachescope.views.machines", "Machines"),
    "Entries": ("cachescope.views.entries", "Entries"),
    **{name: ("cachescope.views.explorer", "Told", name) for name in TOLD},
}


class Explorer(Pane):
    """Panes over one scope: Overview, Lookups, Why, Compare, Time, Compiles, What-if, Machines, Entries.

    A selection in one pane applies to all: a bar of Overview filters Lookups, a row there opens Why, and a span of time
    that is dragged over narrows every pane. A pane is made when it is first seen, and narrowed when it is seen again.

    Attributes
    ----------
    state : State
        What is chosen, filtered and left out.
    """

    def __init__(self, scope: Read, following: Following | None = None) -> None:
        self.watching: Watching | None = None
        self._scope = scope
        self.state = State()
        self._made: dict[str, Shows] = {}
        self._all = self._chosen = Chosen(scope)
        self._narrowed: dict[str, Chosen] = {}
        self.span = SpanChip(self.state)
        self._error = markup(layout=Layout(display="none"))
        self._line = markup()
        # The tabs stay. If their children changed, the page might go back to the first.
        self._waiting = sentence("One moment …", "dim")
        self._places = {name: Pane(self._waiting) for name in PANES}
        self.tabs = ipywidgets.Tab(list(self._places.values()), titles=PANES, layout=Layout(width="auto"))
        self.tabs.observe(self._turned, "selected_index")
        self.opens = Opens()
        self.opens.observe(self.state.guarded(self._opened), "opened")
        parts = [self.opens, self._error, self.span, self.tabs, self._line]
        if following is not None:
            self.watching = Watching(following, self.state.guarded(self.show), lambda: self._view_count != 0)
            parts = [self.watching, *parts]
        super().__init__(*parts, layout=Layout(), classes=["cs-explorer"])
        self._observe()
        self._follow()
        if self.watching is not None:
            # Counts the places where it is shown: if a cell is run again, the previous explorer stops reading.
            self._view_count = 0
            self.watching.start()

    @property
    def scope(self) -> Read:
        """The scope shown; if it follows its sources, the newest reading."""
        return self._scope

    @property
    def query(self) -> str:
        """A line of Python that returns the frame behind the pane; it needs `scope` and ``cachescope``."""
        return str(self._shown.query)

    def frame(self) -> pd.DataFrame:
        """The frame behind the pane."""
        return self._shown.frame()

    def show(self, scope: Read) -> None:
        """Show another reading of the same sources; pane, filters and selections stay."""
        chosen = carried(self.state, self._scope, scope)
        gone = [name for name in self.state.without if name not in chosen["without"]]
        before = list(self._made.values())
        # The panes observe the state, so they are closed.
        self.state.unobserve_all()
        self._made, self._narrowed, self._scope = {}, {}, scope
        self._all = Chosen(scope)
        for name, value in chosen.items():
            setattr(self.state, name, value)
        self._observe()
        self._choose()
        for name, place in self._places.items():
            if name != self.state.pane:
                place.children = [self._waiting]
        self.pane(self.state.pane)
        for pane in before:
            close_all(pane)
        if gone:
            self.state.error = (
                f"What-if leaves out {', '.join(gone)} no longer: it is in no key that was read."
            )
        self._say()

    def stop(self) -> None:
        """Stop following the sources; what was read stays."""
        if self.watching is not None:
            self.watching.stop()

    def close(self) -> None:
        """Remove it from the page, and stop following."""
        self.stop()
        super().close()

    def pane(self, name: str) -> Any:
        """One of the panes, which is made now if it was not yet seen."""
        if name not in self._made:
            try:
                module, pane, *more = _MAKES[name]
                self._made[name] = getattr(import_module(module), pane)(self._scope, self.state, *more)
            except Exception as error:  # one pane that fails leaves the others usable
                self._made[name] = Failed(self._scope, self.state, error)
            self._places[name].children = [self._made[name]]
        made = self._made[name]
        before, self._narrowed[name] = self._narrowed.get(name, self._all), self._chosen
        if before is not self._chosen:
            made.narrow(self._chosen)
        return made

    @property
    def _shown(self) -> Shows:
        shown: Shows = self.pane(self.state.pane)
        return shown

    def _spanned(self, change: Bunch) -> None:
        self._choose()
        self.pane(self.state.pane)

    def _choose(self) -> None:
        span = self.state.span
        is_any = span is not None and len(self._all) > 0
        self._chosen = Chosen.within(self._scope, span) if is_any else self._all

    def _observe(self) -> None:
        # First, because the panes refer to it.
        self.state.observe(self.state.guarded(self._spanned), "span")
        self.state.observe(self._follow, "pane")
        self.state.observe(self._tell, "error")
        self.state.observe(lambda change: self._say(), [n for n in self.state.trait_names() if n != "error"])

    def _opened(self, change: Bunch) -> None:
        match change["new"]:
            case [pane, number, _] if pane == WHY and number in self._scope.facts.lookups:
                self.state.show_why(number)
            case [pane, number, _] if pane == LOOKUPS:
                self.state.show_lookups(cause=number)
            case ["Back", *_]:
                self.state.go_back()

    def _turned(self, change: Bunch) -> None:
        if change["new"] is not None:
            self.state.turn_to(PANES[change["new"]])

    def _follow(self, change: object = None) -> None:
        self.pane(self.state.pane)
        self.tabs.selected_index = PANES.index(self.state.pane)
        self._say()

    def _tell(self, change: Bunch) -> None:
        said = change["new"]
        self._error.value = f"<div role='alert'>{lines_html([Line(said, style='red')])}</div>" if said else ""
        self._error.layout.display = "" if said else "none"

    def _say(self) -> None:
        if self.state.pane not in self._made:
            # The pane is being made, and chooses what it opens with.
            return
        self.span.show(self._chosen, self._shown.beyond)
        line = f"<pre tabindex='0'>{safe(self.query)}</pre>"
        self._line.value = f"<details class='cs-long'><summary>This in Python</summary>{line}</details>"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The widget, and a short answer for pages without a kernel, which would else show one line of text."""
        still = f"<div>{summary_html(self._scope)}<p>The explorer itself is here when the notebook runs.</p></div>"
        return {**(super()._repr_mimebundle_(**kwargs) or {}), "text/html": still}

    def __repr__(self) -> str:
        facts = self._scope.facts
        return f"Explorer({plural(len(facts.lookups), 'lookup')}, {plural(len(facts.runs), 'run')}; {self.state.pane})"
