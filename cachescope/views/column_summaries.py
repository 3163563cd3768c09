"""What the columns of a table hold in short: drawn below their heads."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from cachescope.json_types import JsonObject
from cachescope.wording import harmless_cut, percent, plural

_PARTS: Final = 5
_FEW: Final = 4
_BINS: Final = 16
_LONGEST: Final = 60


def distinct(values: Iterable[Any]) -> JsonObject:
    """How many values there are; of many, too many to draw."""
    return _summary(plural(len({*values} - {None}), "value"), "")


def shares(values: Iterable[Any], colours: Mapping[str, str]) -> JsonObject:
    """The commonest values, the others as one part. The part of missing values is left blank."""
    counts = Counter(values)
    every, missing = counts.total(), counts.pop(None, 0)
    ordered = counts.most_common()
    parts: list[list[Any]] = [
        [harmless_cut(str(value), _LONGEST), count, colours.get(str(value), "")]
        for value, count in ordered[:_PARTS]
    ]
    if rest := ordered[_PARTS:]:
        parts.append([plural(len(rest), "other value"), sum(count for _, count in rest), ""])
    named = [f"{name}: {count:,}" for name, count, _ in parts]
    said = ", ".join([*named, *([f"none: {missing:,}"] if missing else [])])
    text = plural(len(ordered), "value")
    if parts and len(ordered) <= _FEW and isinstance(ordered[0][0], str):
        # The share first: what is cut is the end.
        text = f"{percent(parts[0][1] / every)} {parts[0][0]}"
    elif parts and isinstance(ordered[0][0], int):
        # Shorter than how many there are, in columns that are narrow.
        text = _ends(str(min(counts)), str(max(counts)))
    return _summary(text, said, parts=parts, rows=every)


def spread(numbers: Iterable[int | None], text: Callable[[int], str], *, log: bool) -> JsonObject:
    """How known numbers spread from the smallest to the largest; with `log`, each bar is so many times the last."""
    every = list(numbers)
    known = [number for number in every if number is not None]
    if not known:
        return _summary("", "none is known")
    scaled = [math.log(max(number, 1)) for number in known] if log else known
    low, high = min(scaled), max(scaled)
    bars = [0] * (_BINS if low < high else 1)
    for number in scaled:
        bars[min(int((number - low) / (high - low) * _BINS), _BINS - 1) if low < high else 0] += 1
    ends = _ends(text(min(known)), text(max(known)))
    missing = len(every) - len(known)
    said = f"{len(known):,} from {ends}" + (f", {missing:,} not known" if missing else "")
    return _summary(ends, said, bars=bars)


def _ends(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _summary(text: str, said: str, **drawn: Any) -> JsonObject:
    return {"text": text, "said": said, "parts": [], "bars": [], **drawn}
