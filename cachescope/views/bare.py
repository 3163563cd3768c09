"""Widgets without a layout or style of their own: the style sheet has what is common to them.

To ipywidgets each layout and style is another widget: a message of the kernel, and a model and a view of the page. With
those of every text and box, an explorer would be three times as many, and its first numbers would wait for them.
"""

from __future__ import annotations

from typing import Any

import anywidget
import ipywidgets
import traitlets


def bare(kind: type[ipywidgets.Widget]) -> Any:
    """The trait of a layout or style that is there only if it was given."""
    return traitlets.Instance(kind, allow_none=True).tag(sync=True, **ipywidgets.widget_serialization)


class Control(anywidget.AnyWidget):
    """A widget with JavaScript of ours."""

    layout = bare(ipywidgets.Layout)
