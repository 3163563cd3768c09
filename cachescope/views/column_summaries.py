"""What a column holds, above its head: shares of its commonest values, or how its numbers spread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from cachescope.json_types import JsonObject
from cachescope.wording import harmless_cut, percent, plural

_PARTS: Final = 5
_FEW: Final = 4
_BINS: Final = 16
_LONGEST: Final = 60

Codes = npt.NDArray[np.intp]


def distinct(codes: Codes) -> JsonObject:
    """How many values there are; of many, too many to draw."""
    return _summary(plural(len(np.unique(codes[codes >= 0])), "value"), "")


def shares(codes: Codes, values: Sequence[Any], colours: Mapping[str, str]) -> JsonObject:
    """The commonest values, the others as one part. A missing value has code -1: its part is left blank."""
    counts = np.bincount(codes[codes >= 0], minlength=len(values))
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    parts: list[list[Any]] = [
        [harmless_cut(str(values[at]), _LONGEST), int(counts[at]), colours.get(str(values[at]), "")]
        for at in order[:_PARTS].tolist()
    ]
    if rest := order[_PARTS:].tolist():
        parts.append([f"{plural(len(rest), 'other value')}", int(counts[rest].sum()), ""])
    named = [f"{name}: {count:,}" for name, count, _ in parts]
    missing = int(np.count_nonzero(codes < 0))
    said = ", ".join([*named, *([f"none: {missing:,}"] if missing else [])])
    text = plural(len(order), "value")
    if parts and len(order) <= _FEW and isinstance(values[order[0]], str):
        # The share first: what is cut is the end.
        text = f"{percent(parts[0][1] / len(codes))} {parts[0][0]}"
    elif parts and isinstance(values[order[0]], int):
        # Shorter than how many there are, in columns that are narrow.
        numbers = sorted(values[at] for at in order.tolist())
        text = _ends(str(numbers[0]), str(numbers[-1]))
    return _summary(text, said, parts=parts, rows=len(codes))


def spread(numbers: npt.NDArray[np.float64], text: Callable[[float], str], *, log: bool) -> JsonObject:
    """How known numbers spread from the smallest to the largest; with `log`, each bar is so many times the last."""
    known = numbers[~np.isnan(numbers)]
    if not len(known):
        return _summary("", "none is known")
    low, high = float(known.min()), float(known.max())
    ends = _ends(text(low), text(high))
    scaled = np.log(np.maximum(known, 1)) if log else known
    counts, _ = np.histogram(scaled, bins=_BINS if low < high else 1)
    missing = len(numbers) - len(known)
    said = f"{len(known):,} from {ends}" + (f", {missing:,} not known" if missing else "")
    return _summary(ends, said, bars=counts.tolist())


def _ends(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _summary(text: str, said: str, **drawn: Any) -> JsonObject:
    return {"text": text, "said": said, "parts": [], "bars": [], **drawn}
