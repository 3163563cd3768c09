"""The few controls that panes share, each with a label that is visible and readable by screen readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import ipywidgets
from traitlets.utils.bunch import Bunch

from cachescope.views.state import State
from cachescope.wording import harmless


class Pane(ipywidgets.VBox):
    """Widgets below each other, with a short repr."""

    def __init__(self, children: Iterable[ipywidgets.Widget] = ()) -> None:
        super().__init__(tuple(children))
        self.add_class("cs")
        self.layout.width = "auto"
        self.layout.overflow = "visible"

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def close_all(widget: ipywidgets.Widget) -> None:
    """Remove a widget and everything in it from the page and from the kernel."""
    for child in getattr(widget, "children", ()):
        close_all(child)
    widget.close()


def markup(html: str = "") -> ipywidgets.HTML:
    """A place for HTML."""
    place = ipywidgets.HTML(html)
    place.layout.width = "auto"
    place.add_class("cs")
    return place


def row(*widgets: ipywidgets.Widget) -> ipywidgets.HBox:
    """Widgets side by side, wrapped if there is no room."""
    return ipywidgets.HBox(widgets, layout=_wrapping("center", "0 14px"))


def columns(*widgets: ipywidgets.Widget, widths: tuple[int, ...] = (420, 420)) -> ipywidgets.HBox:
    """Widgets side by side, in pixels and in these proportions; below each other if the page is narrow."""
    for widget, width in zip(widgets, widths, strict=False):
        widget.layout.flex = f"{width} 1 {width}px"
        widget.layout.min_width = "0px"
        widget.layout.width = "auto"
    return ipywidgets.HBox(widgets, layout=_wrapping("flex-start", "12px 28px"))


def _wrapping(align: str, gap: str) -> ipywidgets.Layout:
    # The old name of CSS's gap, which also applies to flex boxes; ipywidgets lacks the new one.
    return ipywidgets.Layout(flex_flow="row wrap", align_items=align, width="auto", grid_gap=gap)


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
