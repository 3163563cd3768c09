"""Colours: Okabe and Ito's, which colour-blind people can distinguish. An outcome has the same one in every figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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
    "orange": ORANGE,
    "sky": SKY,
    "yellow": YELLOW,
    "blue": BLUE,
    "vermillion": VERMILLION,
    "purple": PURPLE,
    "grey": GREY,
}

# From good to bad: a mark for several lookups shows the last of them.
OUTCOME_COLOURS: Final = {
    "hit": GREEN,
    "would_hit": GREEN,
    "disabled": GREY,
    "bypass": PURPLE,
    "would_bypass": PURPLE,
    "unknown": SKY,
    "not_known": SKY,
    "guard_miss": ORANGE,
    "full_miss": VERMILLION,
    "would_miss": VERMILLION,
}
# By why it was compiled; a limit is an attempt that torch gave up.
COMPILE_COLOURS: Final = {
    "first": SKY,
    "backward": BLUE,
    "resume": YELLOW,
    "recompile": VERMILLION,
    "limit": PURPLE,
}
AFFECTS_COLOURS: Final = {
    "host": GREEN,
    "unknown": YELLOW,
    "inputs": SKY,
    "graph": BLUE,
    "generated code": VERMILLION,
}
# The kinds people look for; the others share grey.
KIND_COLOURS: Final = {
    "fxgraph": SKY,
    "aotautograd": PURPLE,
    "code": GREEN,
    "triton": ORANGE,
    "best_config": YELLOW,
    "autotune": BLUE,
    "vllm": GREEN,
}
DAMAGED: Final = VERMILLION
CYCLE: Final = (SKY, ORANGE, GREEN, YELLOW, BLUE, PURPLE, VERMILLION)

_DARK_TEXT: Final = "#111111"
_ON_DARK: Final = frozenset({BLUE})


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours that differ between light and dark pages; the background is the page's own.

    No colour of the light theme is in the palette: a figure can be recoloured without drawing it again.
    """

    text: str
    muted: str
    grid: str
    faint: str
    unknown: str
    surface: str


LIGHT: Final = Theme("#333333", "#6b6b6b", "rgba(128,128,128,0.25)", "#d9d9d9", "#a8a8a8", "#fefefe")
DARK: Final = Theme("#dddddd", "#a6a6a6", "rgba(160,160,160,0.25)", "#3d3d3d", "#777777", "#1f1f1f")


def theme(dark: bool) -> Theme:
    """The theme for a light or dark page."""
    return DARK if dark else LIGHT


def text_on(colour: str) -> str:
    """The colour of a text on one of the palette's colours: the one of at least 4.5:1 contrast (WCAG 2.1, AA)."""
    return "#ffffff" if colour in _ON_DARK else _DARK_TEXT
