"""The few controls that panes share, each with a label that is visible and readable by screen readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import ipywidgets
from traitlets.utils.bunch import Bunch

from cachescope.views.state import State
from cachescope.views.widget_base import bare
from cachescope.wording import harmless


class Pane(ipywidgets.VBox):
    """Widgets below each other, with a short repr.

    Parameters
    ----------
    children : iterable of Widget
    layout : Layout, optional
        For what the style sheet does not say.
    classes : sequence of str
        Names in the style sheet, besides ``cs``.
    """

    layout = bare(ipywidgets.Layout)

    def __init__(
        self,
        children: Iterable[ipywidgets.Widget] = (),
        layout: ipywidgets.Layout | None = None,
        classes: Iterable[str] = (),
    ) -> None:
        super().__init__(tuple(children), layout=layout, _dom_classes=("cs", *classes))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def close_all(widget: ipywidgets.Widget) -> None:
    """Remove a widget and everything in it from the page and from the kernel."""
    for child in getattr(widget, "children", ()):
        close_all(child)
    widget.close()


class Markup(ipywidgets.HTML):
    """A place for HTML."""

    layout = bare(ipywidgets.Layout)
    style = bare(ipywidgets.widgets.widget_string.HTMLStyle)


def markup(html: str = "", layout: ipywidgets.Layout | None = None) -> Markup:
    """A place for HTML."""
    return Markup(html, layout=layout, _dom_classes=("cs",))


class SideBySide(ipywidgets.HBox):
    """Widgets beside each other, wrapped if there is no room."""

    layout = bare(ipywidgets.Layout)


def row(*widgets: ipywidgets.Widget, classes: Iterable[str] = ()) -> SideBySide:
    """Controls side by side."""
    return SideBySide(widgets, _dom_classes=("cs-row", *classes))


def columns(*widgets: ipywidgets.Widget, widths: tuple[int, ...] = (420, 420)) -> SideBySide:
    """Widgets side by side, in pixels and in these proportions; below each other if the page is narrow."""
    for widget, width in zip(widgets, widths, strict=False):
        widget.layout = ipywidgets.Layout(flex=f"{width} 1 {width}px", min_width="0px", width="auto")
    return SideBySide(widgets, _dom_classes=("cs-columns",))


def button(label: str, act: Callable[[], None], hint: str = "") -> ipywidgets.Button:
    """A button."""
    made = ipywidgets.Button(
        description=label, tooltip=hint, layout=ipywidgets.Layout(width="auto", flex="0 0 auto")
    )
    made.on_click(lambda _: act())
    return made


def choice(state: State, name: str, label: str, options: Iterable[tuple[str, Any]]) -> ipywidgets.Dropdown:
    """A list that shows and sets one trait of the state; its first line clears it."""
    listed = [("all", None), *options]
    values = [value for _, value in listed]

    def place(value: Any) -> int:
        return values.index(value) if value in values else 0

    # By place: to a Dropdown the value None means that nothing is chosen.
    made = ipywidgets.Dropdown(
        options=[(harmless(text)[:80], at) for at, (text, _) in enumerate(listed)],
        value=place(getattr(state, name)),
        description=label,
        tooltip="",  # without it, the page says null
        style={"description_width": "initial"},
        layout=ipywidgets.Layout(width="auto", max_width="330px"),
    )

    def follow(change: Bunch) -> None:
        made.value = place(change["new"])

    made.observe(lambda change: setattr(state, name, values[change["new"]]), "value")
    state.observe(follow, name)
    return made
