"""The changes that turn a figure drawn in light colours into a dark one, without drawing it again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

from cachescope.figures.palette import DARK, LIGHT

_DARKER: Final = {getattr(LIGHT, one.name): getattr(DARK, one.name) for one in fields(LIGHT)}
# Only the figures write colours within a text: texts from logs are escaped.
_STYLED: Final = {f"style='color:{light}'": f"style='color:{dark}'" for light, dark in _DARKER.items()}
_OF_COLOURS: Final = ("color", "colors", "colorscale")


def in_the_dark(figure: Any, is_colour: bool = False) -> Iterator[tuple[list[str | int], str]]:
    """The places of a drawn figure that differ in the dark, and their dark values.

    Parameters
    ----------
    figure : dict or list
        A figure drawn for a light background, as plain values; or a part of one.
    is_colour : bool
        Whether the texts of this part are colours.

    Examples
    --------
    >>> list(in_the_dark({"font": {"color": "#333333"}, "text": ["#333333"]}))
    [(['font', 'color'], '#dddddd')]
    """
    places: Any = figure.items() if isinstance(figure, dict) else enumerate(figure)
    for place, value in places:
        coloured = place.endswith(_OF_COLOURS) if isinstance(place, str) else is_colour
        if isinstance(value, str):
            darker = _DARKER.get(value, value) if coloured else _styled(value)
            if darker != value:
                yield [place], darker
        # Rows of numbers and texts may have thousands of items, none of them a colour.
        elif isinstance(value, dict) or (isinstance(value, list) and (coloured or isinstance(place, str))):
            for path, darker in in_the_dark(value, coloured):
                yield [place, *path], darker


def _styled(text: str) -> str:
    if "style='color:" in text:
        for light, dark in _STYLED.items():
            text = text.replace(light, dark)
    return text
