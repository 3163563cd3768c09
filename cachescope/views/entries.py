"""The pane Entries: the contents of the cache directories, and all that is known about one entry, its source highlighted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

import ipywidgets
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from cachescope.answers.chosen import Chosen, Span, is_within
from cachescope.answers.entries import OneEntry
from cachescope.answers.read import Read
from cachescope.figures.entry_files import entry_ages, entry_sizes
from cachescope.figures.picture import Picture
from cachescope.frames.directory_rows import EntryRow
from cachescope.report.blocks import Block, Numbers
from cachescope.report.entries import FILES, entry_numbers, found_pictures, no_entry, one_entry_lines
from cachescope.report.html import blocks_html, safe
from cachescope.report.layout import Line, rest
from cachescope.views.controls import InPython, Pane, Shows, choice, columns, heading, markup, row
from cachescope.views.plot import Plot, first_number, pictured
from cachescope.views.state import State
from cachescope.views.table import ListedRows, Table
from cachescope.wording import harmless, plural

# Highlighting makes an element of every token. Longer sources are shown plain.
_MOST_HIGHLIGHTED: Final = 100_000
_MOST_SHOWN: Final = 400_000


def entry_html(one: OneEntry) -> str:
    """All that is known about an entry: guards, links, kernels, and the source folded away."""
    source = one.source
    lines = blocks_html(one_entry_lines(one))
    if source.text is None:
        return lines + blocks_html([Line(f"no source: {source.why_not}", style="dim")])
    count = plural(len(source.text.splitlines()), "line")
    return f"{lines}<details><summary>Generated source ({count})</summary>{_source(source.text, source.language)}</details>"


def _source(text: str, language: str | None) -> str:
    shown = harmless(text[:_MOST_SHOWN])
    more = blocks_html(rest(len(text) - _MOST_SHOWN, "character", indent=0))
    return f"<pre class='cs-code' tabindex='0' aria-label='generated source'>{_coloured(shown, language)}</pre>{more}"


def _coloured(text: str, language: str | None) -> str:
    if language is None or len(text) > _MOST_HIGHLIGHTED:
        return safe(text)
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return safe(text)
    coloured: str = highlight(text, lexer, HtmlFormatter(nowrap=True))
    return coloured


class Entries(Shows):
    """The files of the cache directories, and one of them."""

    beyond = "Entries are those whose keys were looked up in it, and those written in it. Links and autotuning are of all."

    def __init__(self, scope: Read, state: State) -> None:
        self._rows = scope.tables.entries.rows
        super().__init__(scope, state)

    def words(self) -> Iterable[Block]:
        """Which directory to read as well."""
        return () if self._rows else (Line(no_entry(self._scope)),)

    def parts(self) -> Iterable[ipywidgets.Widget]:
        """All files, and one of them."""
        scope, state, guarded = self._scope, self._state, self._state.guarded
        sized, aged = partial(self._drawn, entry_sizes), partial(self._drawn, entry_ages)
        self.sizes_plot = Plot(sized, "sizes of the entries, in boxes", guarded(self._clicked))
        self.ages_plot = Plot(aged, "ages of the entries", guarded(self._clicked))
        choose = guarded(partial(setattr, state, "entry"))
        self.table = Table(self._listed(), "entries", "There is no such entry.", choose, page_size=20)
        kinds = sorted({(entry.cache, entry.cache) for entry in self._rows})
        self.kind = choice(state, "kind", "What it is", kinds)
        self.one, self.summary = markup(), markup(self._numbers())
        sizes = Pane(heading("Sizes", "A box opens its entry."), self.sizes_plot)
        ages = Pane(heading("Ages"), self.ages_plot)
        below = list(pictured(found_pictures(scope)))
        state.observe(guarded(self._filter), "kind")
        state.observe(guarded(self._show), "entry")
        if state.entry is None:
            state.entry = _first_to_show(self._rows)
        else:
            self._show()
        every = (self.summary, columns(sizes, ages), row(self.kind), self.table)
        one = (heading("One entry", "A row of the table opens another."), self.one)
        return [*every, *one, *([columns(*below)] if below else [])]

    def in_python(self) -> InPython:
        """The files under the key of the entry."""
        if (entry := self._state.entry) is None:
            return "scope.entries", lambda: self._scope.entries
        return f"scope.entry({entry}).frame", lambda: OneEntry.of(self._scope, entry).frame

    def show_chosen(self) -> None:
        """Show only the entries of the chosen lookups."""
        self._rows = _entries_of(self._chosen, self._state.span)
        self.summary.show(self._numbers())
        self.sizes_plot.redraw()
        self.ages_plot.redraw()
        self._filter()

    def _drawn(self, figure: Callable[..., Picture]) -> Picture:
        return figure(self._rows)

    def _numbers(self) -> Numbers:
        return entry_numbers(self._scope, self._rows)

    def _listed(self) -> ListedRows:
        kind = self._state.kind
        return ListedRows(FILES, [(e.entry, e) for e in self._rows if kind in (None, e.cache)])

    def _filter(self, change: object = None) -> None:
        self.table.show(self._listed())

    def _clicked(self, data: object) -> None:
        number = first_number(data)
        if number in self._scope.facts.entries:
            self._state.entry = number

    def _show(self, change: object = None) -> None:
        if self._state.entry is None:
            return
        self.table.selected = self._state.entry
        self.one.value = entry_html(OneEntry.of(self._scope, self._state.entry))


def _first_to_show(entries: Sequence[EntryRow]) -> int:
    """A damaged file, for which people come here; else a compiled one, not a lock or a list of sizes."""
    damaged = (one.entry for one in entries if one.status == "damaged")
    compiled = (one.entry for one in entries if one.time_taken_ns is not None)
    return next(damaged, next(compiled, entries[0].entry))


def _entries_of(chosen: Chosen, span: Span | None) -> list[EntryRow]:
    """The entries whose keys were looked up, in any directory, and those written within the span."""
    entries = chosen.read.tables.entries.rows
    if chosen.is_all or span is None:
        return entries
    keys = {(row.cache, row.cache_key) for row in chosen.rows if row.cache_key is not None}
    return [
        one for one in entries if (one.cache, one.cache_key) in keys or is_within(one.modified_time, span)
    ]
