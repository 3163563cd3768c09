"""What to do about a graph whose code changed, by the kind of change."""

from __future__ import annotations

import re
from typing import Final

from cachescope.analysis.differences import FieldChange
from cachescope.analysis.graphs import inner_graphs

_TOKEN: Final = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d+)?(?:e[+-]?\d+)?|[^\w\s]")
_NUMBER: Final = re.compile(r"\d.*")
NAMES_ONLY: Final = (
    "Only names in the code of the graph changed: those of arguments, attributes or locals. The old names bring the "
    "hit back."
)
_NUMBERS_ONLY: Final = (
    "A number in the code of the graph changed. One that varies from run to run may come from a step, a seed or the "
    "environment; keys do not hold the values of tensors that are passed."
)
_NOT_PRINTED: Final = (
    "The printed code is equal: a captured tensor, an attribute or an annotation in the graph may differ."
)
_INNER_NOT_PRINTED: Final = (
    "The printed code is equal, and torch does not print the code of the graphs within it, such as the score_mod of "
    "flex attention: that may differ, or a captured tensor, an attribute or an annotation."
)
_OTHER_CODE: Final = (
    "The code of the graph changed. One that changes with every run often holds a value of its environment."
)


def graph_advice(change: FieldChange) -> str:
    """A sentence on the field ``gm``."""
    if change.before is None or change.after is None:
        return _OTHER_CODE
    if not change.diff:
        return _INNER_NOT_PRINTED if inner_graphs(change.after) else _NOT_PRINTED
    old, new = _TOKEN.findall(change.before), _TOKEN.findall(change.after)
    if len(old) != len(new):
        return _OTHER_CODE
    differing = {(a, b) for a, b in zip(old, new, strict=True) if a != b}
    if all(_NUMBER.fullmatch(a) and _NUMBER.fullmatch(b) for a, b in differing):
        return _NUMBERS_ONLY
    return NAMES_ONLY if _is_renaming(old, new, change) else _OTHER_CODE


def _is_renaming(old: list[str], new: list[str], change: FieldChange) -> bool:
    """Whether each name consistently replaces one other name, and none of them is an operation."""
    mapping: dict[str, str] = {}
    for a, b in zip(old, new, strict=True):
        if mapping.setdefault(a, b) != b:
            return False
    renamed = {a: b for a, b in mapping.items() if a != b}
    names = {name for pair in renamed.items() for name in pair}
    if len(set(mapping.values())) != len(mapping) or not all(map(str.isidentifier, names)):
        return False
    # A called or looked-up name is no local: `torch.sin(`, `.add(`, `aten.mm.default`.
    text = f"{change.before}\n{change.after}"
    return not any(re.search(rf"\.{name}\b|\b{name}[.(]", text) for name in names)
