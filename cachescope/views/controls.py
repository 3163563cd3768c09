"""What the widgets share: scripts, one style sheet, and the few controls of panes, each with a label for screen readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import anywidget
import ipywidgets
import pandas as pd
import traitlets
from traitlets.utils.bunch import Bunch

from cachescope.answers.chosen import Chosen
from cachescope.answers.read import Read
from cachescope.report.blocks import Block, Group
from cachescope.report.html import blocks_html
from cachescope.report.layout import Line
from cachescope.views.state import State
from cachescope.wording import harmless

# Without a tooltip, the page would show "null".
_LABELLED: Final[dict[str, Any]] = {"tooltip": "", "style": {"description_width": "initial"}}
# Some of the files are of a report's page, too.
_FOLDERS: Final = (Path(__file__).parent, Path(__file__).parent.parent / "report/page")

InPython = tuple[str, Callable[[], pd.DataFrame]]
"""A line of Python, which needs `scope` and ``cachescope``, and a function for the frame that it returns."""

NOTHING: Final = "No lookups were read, so there is none to list. A trace (TORCH_TRACE) or a text log of the cache loggers holds them; cachescope record sets both."


def script(*names: str) -> str:
    """The files concatenated; the last one exports the widget."""
    places = (next(filter(Path.exists, (folder / name for folder in _FOLDERS))) for name in names)
    return "\n".join(place.read_text(encoding="utf-8") for place in places)


STYLE: Final = script("tree.css", "style.css")
"""The style sheet of all panes."""


# In ipywidgets each layout and style is another widget: a message from the kernel, a model and a view. With those of every
# text and box, an explorer would have three times as many, and its first numbers would wait for them.
def bare(kind: type[ipywidgets.Widget]) -> Any:
    """The trait of a layout or style, which exists only if it was given."""
    return traitlets.Instance(kind, allow_none=True).tag(sync=True, **ipywidgets.widget_serialization)


class Control(anywidget.AnyWidget):
    """A widget with its own JavaScript."""

    layout = bare(ipywidgets.Layout)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Opens(Control):
    """Shows nothing. It hears clicks on what opens a pane, and brings the style sheet to a page without a table or figure."""

    _esm = script("focus.js", "opens.js")
    _css = STYLE

    opened: Any = traitlets.List().tag(sync=True)
    """What was clicked: a pane, a number, and a time, so that opening the same one again is a change."""

    def __init__(self) -> None:
        super().__init__(_dom_classes=("cs-style",))


class Pane(ipywidgets.VBox):
    """Widgets below each other. `layout` is for what the style sheet lacks, and `classes` are class names besides ``cs``."""

    layout = bare(ipywidgets.Layout)

    def __init__(
        self,
        *children: ipywidgets.Widget,
        layout: ipywidgets.Layout | None = None,
        classes: Iterable[str] = (),
    ) -> None:
        super().__init__(children, layout=layout, _dom_classes=("cs", *classes))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Shows(Pane):
    """The content of a tab of the explorer: a frame of all lookups or some, and the line of Python that returns it."""

    beyond = ""
    """What it shows that is not restricted to the chosen span."""

    def __init__(self, scope: Read, state: State | None = None) -> None:
        self._scope, self._state, self._chosen = scope, state or State(), Chosen(scope)
        words = tuple(self.words())
        self.has_parts = not words
        super().__init__(*([markup(*words)] if words else self.parts()))

    def words(self) -> Iterable[Block]:
        """The blocks of a pane of words only: an answer, or a note that there is nothing to show."""
        return () if self._scope.facts.lookups else (Line(NOTHING),)

    def parts(self) -> Iterable[ipywidgets.Widget]:
        """Its widgets."""
        return ()

    def in_python(self) -> InPython:
        """The line that returns what is on screen."""
        return "scope", pd.DataFrame

    @property
    def query(self) -> str:
        """The line of Python that returns the frame that it shows."""
        return self.in_python()[0]

    def frame(self) -> pd.DataFrame:
        """The frame that it shows; empty if there is none."""
        return self.in_python()[1]()

    def narrow(self, chosen: Chosen) -> None:
        """Show only some of the lookups, if it can."""
        self._chosen = chosen
        if self.has_parts:
            self.show_chosen()

    def show_chosen(self) -> None:
        """Show what is now chosen."""


def close_all(widget: ipywidgets.Widget) -> None:
    """Remove a widget and everything in it from the page and from the kernel."""
    for child in getattr(widget, "children", ()):
        close_all(child)
    widget.close()


class Markup(ipywidgets.HTML):
    """A place for blocks."""

    layout = bare(ipywidgets.Layout)
    style = bare(ipywidgets.widgets.widget_string.HTMLStyle)

    def show(self, *blocks: Block) -> None:
        """Show other blocks."""
        self.value = blocks_html(blocks)


def markup(*blocks: Block, layout: ipywidgets.Layout | None = None) -> Markup:
    """A place with these blocks."""
    return Markup(blocks_html(blocks), layout=layout, _dom_classes=("cs",))


class SideBySide(ipywidgets.HBox):
    """Widgets side by side, wrapped if there is no room."""

    layout = bare(ipywidgets.Layout)


def row(*widgets: ipywidgets.Widget, classes: Iterable[str] = ()) -> SideBySide:
    """Controls side by side."""
    return SideBySide(widgets, _dom_classes=("cs-row", *classes))


def columns(*widgets: ipywidgets.Widget, widths: tuple[int, ...] = (420, 420)) -> SideBySide:
    """Widgets side by side with these widths in pixels, which also set their proportions; below each other if the page is narrow."""
    for widget, width in zip(widgets, widths, strict=False):
        widget.layout = ipywidgets.Layout(flex=f"{width} 1 {width}px", min_width="0px", width="auto")
    return SideBySide(widgets, _dom_classes=("cs-columns",))


def heading(text: str, note: str = "") -> Markup:
    """The heading of a part of a pane, and a sentence below it."""
    return markup(Group("", text, (Line(note, style="dim"),) if note else ()))


def sentence(text: str, style: str = "") -> Markup:
    """A sentence."""
    return markup(Line(text, style=style))


def dropdown(
    label: str, options: list[tuple[str, int]], width: int = 420, **settings: Any
) -> ipywidgets.Dropdown:
    """A list to choose from."""
    layout = ipywidgets.Layout(width="auto", max_width=f"{width}px")
    return ipywidgets.Dropdown(options=options, description=label, layout=layout, **_LABELLED, **settings)


def text_box(label: str, hint: str, width: int, **settings: Any) -> ipywidgets.Text:
    """A line to write in."""
    layout = ipywidgets.Layout(width=f"{width}px")
    return ipywidgets.Text(description=label, placeholder=hint, layout=layout, **_LABELLED, **settings)


def toggle_buttons(label: str, **settings: Any) -> ipywidgets.ToggleButtons:
    """Buttons, one of which is pressed."""
    look = {**_LABELLED, "style": {"button_width": "auto", **_LABELLED["style"]}}
    return ipywidgets.ToggleButtons(description=label, layout={"width": "auto"}, **look, **settings)


def button(label: str, act: Callable[[], None], hint: str = "") -> ipywidgets.Button:
    """A button."""
    layout = ipywidgets.Layout(width="auto", flex="0 0 auto")
    made = ipywidgets.Button(description=label, tooltip=hint, layout=layout)
    made.on_click(lambda _: act())
    return made


def choice(state: State, name: str, label: str, options: Iterable[tuple[str, Any]]) -> ipywidgets.Dropdown:
    """A list that shows and sets one trait of the state; its first line clears it."""
    listed = [("all", None), *options]
    values = [value for _, value in listed]

    def place(value: Any) -> int:
        return values.index(value) if value in values else 0

    # By position, since the value None means for a Dropdown that nothing is chosen.
    shown = [(harmless(text)[:80], at) for at, (text, _) in enumerate(listed)]
    made = dropdown(label, shown, 330, value=place(getattr(state, name)))

    def follow(change: Bunch) -> None:
        made.value = place(change["new"])

    made.observe(lambda change: setattr(state, name, values[change["new"]]), "value")
    state.observe(follow, name)
    return made
