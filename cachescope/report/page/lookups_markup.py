"""The lookups as HTML: a place for the table, and its columns as codes of their distinct values, in order."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd

from cachescope.figures.palette import OUTCOME_COLOURS
from cachescope.json_types import JsonObject
from cachescope.report.html import json_html
from cachescope.report.page.parts import LookupTable
from cachescope.wording import duration, harmless

_CELL: Final = 600
_HEADS: Final = (
    ("lookup", "Lookup"),
    ("run", "Run"),
    ("rank", "Rank"),
    ("cache", "Cache"),
    ("compile_id", "Compile"),
    ("function", "Function"),
    ("cache_key", "Key"),
    ("outcome", "Outcome"),
    ("verdict", "Verdict"),
    ("time_taken_ns", "Compile time"),
    ("reason", "Why"),
)
_NUMBERS: Final = ("lookup", "run", "rank", "time_taken_ns")
_OPTIONAL: Final = ("rank", "function")
# What is said of one lookup.
_FURTHER: Final = (
    "cause",
    "cause_summary",
    "explained",
    "title",
    "evidence",
    "compared",
    "changed",
    "baseline_lookup",
)


def lookups_html(part: LookupTable) -> str:
    """The place of the table, and its data."""
    return f"<div class='lookups' hidden><script type='application/json'>{json_html(lookups_object(part))}</script></div>"


def lookups_object(part: LookupTable) -> JsonObject:
    """What `lookups.js` reads: of each column the distinct values in their order, and of each row the place among them, or -1."""
    frame = part.frame
    heads = [
        _head(name, label) for name, label in _HEADS if name not in _OPTIONAL or frame[name].notna().any()
    ]
    names = [head["name"] for head in heads]
    return {
        "heads": heads,
        "columns": {name: _coded(frame[name]) for name in (*names, *_FURTHER)},
        "above": _above(frame),
        "times": frame["time_taken_ns"].astype(object).where(frame["time_taken_ns"].notna(), None).tolist(),
        "note": part.note,
    }


def _head(name: str, label: str) -> JsonObject:
    return {
        "name": name,
        "label": label,
        "number": name in _NUMBERS,
        "wide": False,
        "fills": name == "reason",
        "sortable": True,
        "colours": OUTCOME_COLOURS if name == "outcome" else {},
    }


def _coded(column: pd.Series[Any]) -> JsonObject:
    codes, values = pd.factorize(column, sort=True)
    texts = [_text(str(column.name), value) for value in values]
    return {"texts": texts, "codes": codes.tolist()}


def _text(name: str, value: Any) -> str:
    if name == "time_taken_ns":
        return duration(int(value))
    return harmless(" ".join(str(value)[:_CELL].split()))


def _above(frame: pd.DataFrame) -> list[int]:
    """The place of the AOTAutograd lookup that each lookup belongs to, or -1."""
    places = {lookup: place for place, lookup in enumerate(frame["lookup"].tolist())}
    return [-1 if pd.isna(lookup) else places.get(lookup, -1) for lookup in frame["aot_lookup"]]
