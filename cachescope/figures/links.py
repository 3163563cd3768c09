"""How the layers of a cache directory are connected: how many references lead from which to which."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from cachescope.figures.canvas import bars, count_axis, empty, note, stacked_rows
from cachescope.figures.palette import DAMAGED, GREY, KIND_COLOURS
from cachescope.figures.picture import Picture
from cachescope.figures.texts import hover, shown
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.linked_rows import LinkRow
from cachescope.terms import AOTAUTOGRAD, CODE, ENTRY_KINDS, FXGRAPH, LOCK
from cachescope.wording import file_size, plural

# The reference that leads to a file of generated code decides its layer.
_WRAPPER: Final = "wrapper"
_KERNEL: Final = "kernels"
_COMPILED: Final = "compiled"
_OTHER_CODE: Final = "other code"
_CODE_LAYERS: Final = (_WRAPPER, _KERNEL, _COMPILED, _OTHER_CODE)
_GONE: Final = "gone"
# Room for the text beside the longest bar.
_ROOM: Final = 1.45
_COMPILED_BY: Final = "the name, which what is compiled from it shares"
_ORDER: Final = (
    AOTAUTOGRAD, FXGRAPH, _WRAPPER, _KERNEL, _OTHER_CODE, "autotune", "best_config", _COMPILED, "triton",
    _GONE,
)  # fmt: skip


def link_layers(links: Sequence[LinkRow], entries: Sequence[EntryRow], *, dark: bool = False) -> Picture:
    """References between the layers: AOTAutograd, FX, wrapper, kernel, best configuration, Triton; missing ones in red.

    One bar per pair of layers, as long as its number of references: the picture is as small for a
    million files as for ten. References of locks are counted below it.

    Parameters
    ----------
    links : DataFrame or sequence of its rows
        The frame links: parent, parent_kind, child, child_kind, known_by.
    entries : DataFrame or sequence of its rows
        The frame entries: entry, size_bytes.
    """
    drawn = [row for row in links if row.parent_kind != LOCK]
    if not drawn:
        reason = "No file refers to another one" if entries else "No cache directory was read"
        return empty(f"{reason}: there are no links between the layers to show.", dark)
    sizes = {row.entry: row.size_bytes or 0 for row in entries}
    pairs = _pairs(drawn, _roles(drawn))
    names = sorted(pairs, key=lambda pair: tuple(map(_place, pair)))
    counts = [sum(pairs[name].known_by.values()) for name in names]
    labels = [f"{shown(parent, 20)} → {shown(child, 20)}" for parent, child in names]
    most = max(counts) * _ROOM
    figure = stacked_rows(labels, 8, dark, xaxis=count_axis(dark, int(most), range=[0, most]))
    bars(
        figure,
        counts,
        list(range(len(names))),
        [_colour(child) for _, child in names],
        [_hover(name, pairs[name], sizes) for name in names],
        text=[_text(child, pairs[parent, child]) for parent, child in names],
        textposition="outside",
        cliponaxis=False,
        showlegend=False,
    )
    locks = len(links) - len(drawn)
    of_locks = f"{plural(locks, 'reference')} of locks not shown" if locks else ""
    note(figure, dark, "counts are references", of_locks)
    return figure


@dataclass(slots=True)
class _Pair:
    """The references from one layer to another: how each is known, and the files at both ends."""

    known_by: Counter[str] = field(default_factory=Counter)
    parents: set[int] = field(default_factory=set)
    children: set[int] = field(default_factory=set)


def _roles(rows: list[LinkRow]) -> dict[int, str]:
    """The layer of each file of generated code: the first one that leads to it, from the top down."""
    found: dict[str, dict[int, str]] = {_KERNEL: {}, _COMPILED: {}, _WRAPPER: {}}
    for row in rows:
        if row.child_kind == CODE and row.child is not None:
            is_graph = row.parent_kind in (FXGRAPH, AOTAUTOGRAD)
            role = _WRAPPER if is_graph else _COMPILED if row.known_by == _COMPILED_BY else _KERNEL
            found[role][row.child] = role
    return found[_KERNEL] | found[_COMPILED] | found[_WRAPPER]


def _pairs(rows: list[LinkRow], roles: dict[int, str]) -> dict[tuple[str, str], _Pair]:
    """The references by pair of layers."""
    pairs: dict[tuple[str, str], _Pair] = defaultdict(_Pair)
    for row in rows:
        child = _GONE if row.child is None else _layer(row.child_kind, row.child, roles)
        pair = pairs[_layer(row.parent_kind, row.parent, roles), child]
        pair.known_by[row.known_by] += 1
        pair.parents.add(row.parent)
        if row.child is not None:
            pair.children.add(row.child)
    return pairs


def _place(layer: str) -> tuple[int, str]:
    return _ORDER.index(layer) if layer in _ORDER else len(_ORDER), layer


def _layer(kind: str, entry: int, roles: dict[int, str]) -> str:
    return roles.get(entry, _OTHER_CODE) if kind == CODE else str(kind)


def _colour(layer: str) -> str:
    if layer == _GONE:
        return DAMAGED
    kind = CODE if layer in _CODE_LAYERS else layer
    return KIND_COLOURS.get(kind, GREY)


def _text(child: str, pair: _Pair) -> str:
    count = pair.known_by.total()
    if child == _GONE:
        return f"{count:,} to files that are gone"
    return f"{count:,} from {plural(len(pair.parents), 'file')} to {len(pair.children):,}"


def _hover(name: tuple[str, str], pair: _Pair, sizes: dict[int, int]) -> str:
    parent, child = name
    meaning = ENTRY_KINDS.get(CODE if child in _CODE_LAYERS else child)
    size = file_size(sum(sizes.get(one, 0) for one in pair.children))
    files = None if meaning is None else f"{child}: {meaning}, {plural(len(pair.children), 'file')}, {size}"
    known_by = (f"{count}: {how}" for how, count in pair.known_by.most_common(4))
    return hover(f"{parent} → {child}: {plural(pair.known_by.total(), 'reference')}", files, *known_by)
