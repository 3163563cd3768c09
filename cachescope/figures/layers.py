"""How the layers of a cache directory are connected, with equal references drawn as one ribbon."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
import plotly.graph_objects as go

from cachescope.columns import rows_of
from cachescope.figures.canvas import canvas, empty, note
from cachescope.figures.palette import DAMAGED, GREY, KIND_COLOURS, theme
from cachescope.figures.texts import hover, shown
from cachescope.terms import AOTAUTOGRAD, CODE, ENTRY_KINDS, FXGRAPH, LOCK
from cachescope.wording import file_size, plural

# The reference that leads to a file of generated code decides its layer.
_WRAPPER: Final = "wrapper"
_KERNEL: Final = "kernels"
_COMPILED: Final = "compiled"
_OTHER_CODE: Final = "other code"
_CODE_LAYERS: Final = (_WRAPPER, _KERNEL, _COMPILED, _OTHER_CODE)
_GONE: Final = "gone"
_COMPILED_BY: Final = "the name, which what is compiled from it shares"
_ORDER: Final = (
    AOTAUTOGRAD,
    FXGRAPH,
    _WRAPPER,
    _KERNEL,
    _OTHER_CODE,
    "autotune",
    "best_config",
    _COMPILED,
    "triton",
    _GONE,
)


@dataclass(frozen=True, slots=True)
class _Link:
    """A reference from a file to another."""

    parent: int
    parent_kind: str
    child: int | None
    child_kind: str
    known_by: str


def link_layers(links: pd.DataFrame, entries: pd.DataFrame, *, dark: bool = False) -> go.Figure:
    """References between the layers: AOTAutograd, FX, wrapper, kernel, best configuration, Triton; missing ones in red.

    One node per layer and one ribbon per pair of layers, as wide as its number of references: the picture is as small for
    a million files as for ten. References of locks are counted below it.

    Parameters
    ----------
    links : DataFrame
        The frame links: parent, parent_kind, child, child_kind, known_by.
    entries : DataFrame
        The frame entries: entry, size_bytes.
    dark : bool
        For a dark background.
    """
    rows = rows_of(links, _Link)
    drawn = [row for row in rows if row.parent_kind != LOCK]
    if not drawn:
        reason = "No file refers to another one" if not entries.empty else "No cache directory was read"
        return empty(f"{reason}: there are no links between the layers to show.", dark)
    ribbons, members = _ribbons(drawn, _roles(drawn))
    names = sorted(members, key=lambda n: (_ORDER.index(n) if n in _ORDER else len(_ORDER), n))
    at = {name: i for i, name in enumerate(names)}
    sizes = dict(zip(entries["entry"].tolist(), entries["size_bytes"].tolist(), strict=True))
    look = theme(dark)
    figure = canvas(dark, 360, margin={"l": 10, "r": 10, "t": 16, "b": 24})
    pairs = sorted(ribbons, key=lambda pair: (at[pair[0]], at[pair[1]]))
    figure.add_sankey(
        arrangement="snap",
        textfont={"color": look.text, "size": 12, "shadow": "none"},
        node={
            "label": [_node_label(name, len(members[name])) for name in names],
            "color": [_colour(name) for name in names],
            "line": {"width": 0},
            "pad": 22,
            "thickness": 16,
            "customdata": [_node_hover(name, members[name], sizes) for name in names],
            "hovertemplate": "%{customdata}<extra></extra>",
        },
        link={
            "source": [at[source] for source, _ in pairs],
            "target": [at[target] for _, target in pairs],
            "value": [sum(ribbons[pair].values()) for pair in pairs],
            "color": [
                "rgba(213,94,0,0.45)" if target == _GONE else "rgba(140,140,140,0.35)" for _, target in pairs
            ],
            "customdata": [_ribbon_hover(pair, ribbons[pair]) for pair in pairs],
            "hovertemplate": "%{customdata}<extra></extra>",
        },
    )
    text = "counts are files; a ribbon is as wide as it has references"
    if len(drawn) < len(rows):
        text += f"; {plural(len(rows) - len(drawn), 'reference')} of locks not shown"
    note(figure, text, dark, below=24)
    return figure


def _roles(rows: list[_Link]) -> dict[int, str]:
    """The layer of each file of generated code: the first one that leads to it, from the top down."""
    roles: dict[int, str] = {}
    for row in rows:
        if row.child_kind == CODE and row.child is not None and row.parent_kind in (FXGRAPH, AOTAUTOGRAD):
            roles[row.child] = _WRAPPER
    for row in rows:
        if row.child_kind == CODE and row.known_by == _COMPILED_BY and row.child is not None:
            roles.setdefault(row.child, _COMPILED)
    for row in rows:
        if row.child_kind == CODE and row.child is not None:
            roles.setdefault(row.child, _KERNEL)
    return roles


def _ribbons(
    rows: list[_Link], roles: dict[int, str]
) -> tuple[dict[tuple[str, str], Counter[str]], dict[str, set[object]]]:
    """References by pair of layers and by how they are known, and the files of each layer."""
    ribbons: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    members: dict[str, set[object]] = defaultdict(set)
    for number, row in enumerate(rows):
        parent = _layer(row.parent_kind, row.parent, roles)
        child = _GONE if row.child is None else _layer(row.child_kind, row.child, roles)
        if child == parent or (child, parent) in ribbons:
            # A Sankey flows one way: a target that would close a circle is a layer of its own.
            child = f"other {child}"
        ribbons[parent, child][row.known_by] += 1
        members[parent].add(row.parent)
        # A missing file has no number; each reference to one counts.
        members[child].add(("gone", number) if row.child is None else row.child)
    return ribbons, members


def _layer(kind: str, entry: int, roles: dict[int, str]) -> str:
    return roles.get(entry, _OTHER_CODE) if kind == CODE else str(kind)


def _colour(layer: str) -> str:
    if layer == _GONE:
        return DAMAGED
    kind = CODE if layer in _CODE_LAYERS else layer
    return KIND_COLOURS.get(kind, GREY)


def _node_label(layer: str, count: int) -> str:
    # On two lines: labels of neighbouring layers stand side by side.
    return f"{shown(layer, 24)}<br><b>{count:,}</b>"


def _node_hover(layer: str, members: set[object], sizes: dict[int, Any]) -> str:
    if layer == _GONE:
        return hover(f"{plural(len(members), 'reference')} to files that are gone")
    known = [sizes[m] for m in members if isinstance(m, int) and m in sizes and not pd.isna(sizes[m])]
    meaning = ENTRY_KINDS.get(CODE if layer in _CODE_LAYERS else layer)
    return hover(layer, meaning, f"{plural(len(members), 'file')}, {file_size(int(sum(known)))}")


def _ribbon_hover(pair: tuple[str, str], known_by: Counter[str]) -> str:
    total = sum(known_by.values())
    lines = [f"{count}: {how}" for how, count in known_by.most_common(4)]
    return hover(f"{pair[0]} → {pair[1]}: {plural(total, 'reference')}", *lines)
