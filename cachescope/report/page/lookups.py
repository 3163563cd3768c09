"""Every lookup, for the table of the page that sorts and filters them: its rows, and their columns as codes of distinct values."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

from cachescope.answers.cards import cause_names
from cachescope.answers.names import baseline_name, lookup_in_run
from cachescope.answers.read import Read
from cachescope.figures.palette import OUTCOME_COLOURS
from cachescope.json_types import JsonObject
from cachescope.report.blocks import LookupTable, cut_note
from cachescope.report.html import json_html
from cachescope.wording import duration, harmless

MOST: Final = 2000
_SHOWN: Final = (
    "lookup", "run", "rank", "cache", "compile_id", "function", "cache_key", "outcome", "verdict", "time_taken_ns", "reason",
    "aot_lookup", "cause", "baseline_lookup",
)  # fmt: skip

_CELL: Final = 600
_HEADS: Final = (
    ("lookup", "Lookup"), ("run", "Run"), ("rank", "Rank"), ("cache", "Cache"), ("compile_id", "Compile"),
    ("function", "Function"), ("cache_key", "Key"), ("outcome", "Outcome"), ("verdict", "Verdict"),
    ("time_taken_ns", "Compile time"), ("reason", "Why"),
)  # fmt: skip
_NUMBERS: Final = ("lookup", "run", "rank", "time_taken_ns")
# What is said of one lookup.
_FURTHER: Final = (
    "cause", "cause_summary", "explained", "title", "evidence", "compared", "changed", "baseline_lookup",
)  # fmt: skip


def lookups_frame(scope: Read) -> pd.DataFrame:
    """Every lookup with the rank of its run and why it missed."""
    lookups = scope.lookups.merge(scope.misses, on="lookup", how="left")
    return lookups.merge(scope.runs[["run", "rank"]], on="run", how="left")


def lookup_table(scope: Read, explained: dict[int, int], most: int = MOST) -> LookupTable:
    """The lookups as a part of the page."""
    frame = lookups_frame(scope)[list(_SHOWN)]
    note = ""
    if len(frame) > most:
        times = frame["time_taken_ns"].fillna(0).to_numpy(dtype=np.int64)
        note = cut_note(most, len(frame), "lookups by compile time", "scope.lookups")
        frame = frame.iloc[np.sort(np.argsort(-times, kind="stable")[:most])]
    frame = frame.reset_index(drop=True)
    names = {cause: name for name, cause in cause_names(scope)}
    causes = [None if pd.isna(cause) else int(cause) for cause in frame["cause"]]
    words = zip(*(_words(scope, lookup) for lookup in frame["lookup"].tolist()), strict=True)
    said = dict(zip(("title", "evidence", "compared", "changed"), words, strict=True))
    groups = [None if cause is None else explained.get(cause) for cause in causes]
    frame = frame.assign(
        cause_summary=pd.Series([None if cause is None else names[cause] for cause in causes], dtype="str"),
        explained=pd.array(groups, dtype="Int64"),
        **{name: pd.Series(texts, dtype="str") for name, texts in said.items()},
    )
    return LookupTable(frame, note)


def _words(scope: Read, lookup: int) -> tuple[str | None, ...]:
    """What it is, what the verdict rests on, what it is compared with, and what changed."""
    facts = scope.facts
    title = lookup_in_run(facts, facts.lookups[lookup])
    miss = facts.misses.get(lookup)
    if miss is None:
        return title, None, None, None
    evidence = f"evidence: {miss.evidence.replace('_', ' ')} ({miss.evidence_text})"
    return title, evidence, baseline_name(facts, miss), ", ".join(miss.changed) or None


def lookups_html(part: LookupTable) -> str:
    """The place of the table, and its data."""
    return f"<div class='lookups' hidden><script type='application/json'>{json_html(lookups_object(part))}</script></div>"


def lookups_object(part: LookupTable) -> JsonObject:
    """What `lookups.js` reads: of each column the distinct values in their order, and of each row the place among them, or -1."""
    frame = part.frame
    heads = heads_of(frame)
    names = [head["name"] for head in heads]
    places = {lookup: place for place, lookup in enumerate(frame["lookup"].tolist())}
    return {
        "heads": heads,
        "columns": {name: _coded(frame[name]) for name in (*names, *_FURTHER)},
        # The place of the AOTAutograd lookup that each lookup belongs to, or -1.
        "above": [-1 if pd.isna(one) else places.get(one, -1) for one in frame["aot_lookup"]],
        "times": frame["time_taken_ns"].astype(object).where(frame["time_taken_ns"].notna(), None).tolist(),
        "note": part.note,
    }


def heads_of(frame: pd.DataFrame) -> list[Any]:
    """The columns of the lookups, but for ranks and functions where none is known."""
    return [
        {
            "name": name,
            "label": label,
            "number": name in _NUMBERS,
            "wide": False,
            "fills": name == "reason",
            "sortable": True,
            "colours": OUTCOME_COLOURS if name == "outcome" else {},
        }
        for name, label in _HEADS
        if name not in ("rank", "function") or frame[name].notna().any()
    ]


def _coded(column: pd.Series[Any]) -> JsonObject:
    codes, values = pd.factorize(column, sort=True)
    texts = [_text(str(column.name), value) for value in values]
    return {"texts": texts, "codes": codes.tolist()}


def _text(name: str, value: Any) -> str:
    if name == "time_taken_ns":
        return duration(int(value))
    return harmless(" ".join(str(value)[:_CELL].split()))
