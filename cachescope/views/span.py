"""The chosen span of time, above the panes that it narrows."""

from __future__ import annotations

from ipywidgets import Layout

from cachescope.answers.chosen import Chosen, Span
from cachescope.views import html
from cachescope.views.controls import Pane, button, markup, row
from cachescope.views.state import State
from cachescope.wording import clock, date, plural

# Below so many nanoseconds, seconds would not tell the ends apart.
_SHORT = 10 * 10**9


class SpanChip(Pane):
    """The span with how many lookups it has, and a button that clears it; nothing if none is chosen.

    Parameters
    ----------
    state : State
    """

    def __init__(self, state: State) -> None:
        self._state = state
        super().__init__(layout=Layout(display="none"))

    def show(self, chosen: Chosen, beyond: str) -> None:
        """Say what is chosen, and what the pane below shows besides."""
        span = self._state.span
        if span is None or chosen.is_all:
            self.layout.display = "none"
            return
        if not self.children:
            self._make()
        self.said.value = html.paragraph(_text(chosen, span), "strong")
        self.beyond.value = html.paragraph(beyond, "faint") if beyond else ""
        self.layout.display = ""

    def _make(self) -> None:
        # Most never choose a span.
        self.said, self.beyond = markup(), markup()
        self.clear = button("Clear", self._clear, "Show all times again, in every pane")
        self.children = [row(self.said, self.clear, classes=["cs-span"]), self.beyond]

    def _clear(self) -> None:
        self._state.span = None


def _text(chosen: Chosen, span: Span) -> str:
    first, last = _ends(span)
    every = chosen.read.lookups
    untimed = int(every["time"].isna().sum())
    more = f"; {plural(untimed, 'lookup')} without a time left out" if untimed else ""
    return f"{first} to {last} UTC, {len(chosen):,} of {len(every):,} {'lookup' if len(every) == 1 else 'lookups'}{more}"


def _ends(span: Span) -> tuple[str, str]:
    first, last = span
    is_one_day = date(first) == date(last)
    is_short = last - first < _SHORT

    def moment(ns: int) -> str:
        day = "" if is_one_day else f"{date(ns)} "
        return f"{day}{clock(ns)}" + (f".{ns // 10**6 % 1000:03}" if is_short else "")

    return moment(first), moment(last)
