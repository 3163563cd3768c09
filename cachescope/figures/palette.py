"""Colours: Okabe and Ito's, which colour-blind people can distinguish, the same for an outcome everywhere; and light made dark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Final

ORANGE: Final = "#E69F00"
SKY: Final = "#56B4E9"
GREEN: Final = "#009E73"
YELLOW: Final = "#F0E442"
BLUE: Final = "#0072B2"
VERMILLION: Final = "#D55E00"
PURPLE: Final = "#CC79A7"
GREY: Final = "#999999"
# As `cachescope.verdict_kinds` names them.
BY_NAME: Final = {
    "orange": ORANGE, "sky": SKY, "yellow": YELLOW, "blue": BLUE, "vermillion": VERMILLION, "purple": PURPLE,
    "grey": GREY,
}  # fmt: skip

# From good to bad: a mark for several lookups shows the last of them.
OUTCOME_COLOURS: Final = {
    "hit": GREEN, "would_hit": GREEN, "disabled": GREY, "bypass": PURPLE, "would_bypass": PURPLE,
    "unknown": SKY, "not_known": SKY, "guard_miss": ORANGE, "full_miss": VERMILLION, "would_miss": VERMILLION,
}  # fmt: skip
# By why it was compiled; a limit is an attempt that torch gave up.
COMPILE_COLOURS: Final = {
    "first": SKY, "backward": BLUE, "resume": YELLOW, "recompile": VERMILLION, "limit": PURPLE,
}  # fmt: skip
AFFECTS_COLOURS: Final = {
    "host": GREEN, "unknown": YELLOW, "inputs": SKY, "graph": BLUE, "generated code": VERMILLION,
}  # fmt: skip
# The kinds people look for; the others share grey.
KIND_COLOURS: Final = {
    "fxgraph": SKY, "aotautograd": PURPLE, "code": GREEN, "triton": ORANGE, "best_config": YELLOW,
    "autotune": BLUE, "vllm": GREEN,
}  # fmt: skip
# Of the phases of `cachescope.analysis.phases.names`; the others share grey. None is the colour of a hit or a miss.
# Those that Okabe and Ito do not have are of Paul Tol's light and muted schemes.
PHASE_COLOURS: Final = {
    "Dynamo tracing": "#77AADD", "guards": "#99DDFF", "AOTAutograd": "#AAAA00", "torch's own key": "#FFAABB",
    "keys and lookups": PURPLE, "loading": YELLOW, "Inductor passes": "#BBCC33", "Inductor lowering": "#DDCC77",
    "code generation": ORANGE, "vector instruction test": SKY, "C++ compiler": BLUE, "Triton compiler": "#332288",
    "autotuning": "#AA4499", "waiting for other ranks": "#CC6677", "waiting for a vector test": "#882255",
    "waiting for another's compile": "#EE8866", "waiting for compilers": "#44AA99", "precompiled headers": "#999933",
    "no event covers": "#DDDDDD",
}  # fmt: skip
DAMAGED: Final = VERMILLION
CYCLE: Final = (SKY, ORANGE, GREEN, YELLOW, BLUE, PURPLE, VERMILLION)

_DARK_TEXT: Final = "#111111"
_ON_DARK: Final = frozenset({BLUE, "#332288", "#AA4499", "#882255"})


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours that differ between light and dark pages; the background is the page's own.

    No colour of the light theme is in the palette: a figure is drawn in light colours, and recoloured in the dark.
    """

    text: str
    muted: str
    grid: str
    faint: str
    unknown: str
    surface: str


LIGHT: Final = Theme("#333333", "#6b6b6b", "rgba(128,128,128,0.25)", "#d9d9d9", "#a8a8a8", "#fefefe")
DARK: Final = Theme("#dddddd", "#a6a6a6", "rgba(160,160,160,0.25)", "#3d3d3d", "#777777", "#1f1f1f")


def text_on(colour: str) -> str:
    """The colour of a text on one of the palette's colours: the one of at least 4.5:1 contrast (WCAG 2.1, AA)."""
    return "#ffffff" if colour in _ON_DARK else _DARK_TEXT


_DARKER: Final = {getattr(LIGHT, one.name): getattr(DARK, one.name) for one in fields(LIGHT)}
# Only the figures write colours within a text: texts from logs are escaped.
_STYLED: Final = {f"style='color:{light}'": f"style='color:{dark}'" for light, dark in _DARKER.items()}
_OF_COLOURS: Final = ("color", "colors", "colorscale")


def in_the_dark(figure: Any, is_colour: bool = False) -> Iterator[tuple[list[str | int], str]]:
    """The places of a drawn figure that differ in the dark, and their dark values.

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
            yield from (([place, *path], darker) for path, darker in in_the_dark(value, coloured))


def _styled(text: str) -> str:
    if "style='color:" in text:
        for light, dark in _STYLED.items():
            text = text.replace(light, dark)
    return text
