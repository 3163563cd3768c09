"""Histories made by hand: a few lookups in a few processes, put together as the readers put theirs together.

What is asked of them goes through `Scope`, frames in and frames out. Times are seconds after some noon; hash details are dicts of
a field and a text, of which the hash is made. They are nothing that torch wrote, and say so by the shortness of their keys.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pandas as pd

from cachescope.details import HashDetails
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.assemble import assemble
from cachescope.readers.reading import Process, Reading
from cachescope.scope import Scope
from cachescope.terms import AOTAUTOGRAD, FXGRAPH

NOON_NS = 1_795_348_800 * 10**9
SECOND_NS = 10**9
CODE = "def forward(self, x):\n    a = torch.mm(x, x)\n    b = torch.relu(a)\n    return (b,)"
Details = Mapping[str, str]
# An entry of a directory, and what went into its key.
Stored = tuple[EntryRow, Details | None]


def component(name: str, text: str) -> str:
    """A line of hash details as torch prints it, the hash made from its text."""
    digest = hashlib.sha256(text.encode()).digest() * 2
    return f"[{''.join(chr(ord('a') + byte % 26) for byte in digest[:51])}] {name}: {text}"


def set_of(store: HashDetails, fields: Details) -> int:
    """The number of a set of hash details, made of the texts of some fields."""
    code, rejected = store.add(component(name, text) for name, text in fields.items())
    assert code is not None and not rejected
    return code


def ns(seconds: float | None) -> int | None:
    return None if seconds is None else NOON_NS + int(seconds * SECOND_NS)


@dataclass
class Made:
    """A lookup as it is written down in a test."""

    cache: str
    key: str | None
    outcome: str
    details: Details | None
    at: float | None
    took: float | None
    told: dict[str, Any] = field(default_factory=dict)


def looked_up(
    cache: str,
    key: str | None,
    outcome: str = "full_miss",
    details: Details | None = None,
    *,
    at: float | None = None,
    took: float | None = None,
    **told: Any,
) -> Made:
    return Made(cache, key, outcome, details, at, took, {"compile_id": "0/0", **told})


aot = partial(looked_up, AOTAUTOGRAD)
fx = partial(looked_up, FXGRAPH)


@dataclass
class Run:
    """A process: what it looked up, and what else is known of it."""

    lookups: Sequence[Made]
    told: dict[str, Any]


def run(*lookups: Made, **told: Any) -> Run:
    return Run(lookups, told)


def entry(
    cache: str,
    key: str,
    details: Details | None = None,
    *,
    at: float | None = None,
    root: str = "/cache",
    status: str = "ok",
    name: str = "entry",
    **told: Any,
) -> Stored:
    usual: dict[str, Any] = {
        "cache": cache, "cache_key": key, "path": f"{root}/{cache}/{key[1:3]}/{key}/{name}", "root": root,
        "size_bytes": 100, "modified_time": ns(at), "changed_time": ns(at), "status": status,
    }  # fmt: skip
    return EntryRow(**(usual | told)), details


def scope_of(*runs: Run, entries: Sequence[Stored] = (), **told: Any) -> Scope:
    """The Scope of some processes, and of the entries of a directory."""
    reading = Reading()
    for number, one in enumerate(runs):
        moments = [made.at for made in one.lookups if made.at is not None]
        start = ns(min(moments)) if moments else None
        usual = {"pid": 1000 + number, "start_time": start}
        process = Process(source=f"/logs/{number}.log", kind="trace", **(usual | one.told))
        process.lookups = [_lookup(reading, made) for made in one.lookups]
        reading.processes.append(process)
    for made_entry, details in entries:
        made_entry.detail_set = None if details is None else set_of(reading.details, details)
        reading.entries.append(made_entry)
    return Scope(assemble(reading), **told)


def _lookup(reading: Reading, made: Made) -> LookupRow:
    usual = {
        "time": ns(made.at),
        "detail_set": None if made.details is None else set_of(reading.details, made.details),
        "time_taken_ns": None if made.took is None else int(made.took * SECOND_NS),
    }  # fmt: skip
    return LookupRow(cache=made.cache, cache_key=made.key, outcome=made.outcome, **(usual | made.told))


def miss_rows(scope: Scope) -> list[dict[str, Any]]:
    """The frame misses, what is missing as None."""
    rows: list[dict[str, Any]] = scope.misses.astype(object).to_dict("records")
    return [{name: _plain(value) for name, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    return value if isinstance(value, tuple) else None if pd.isna(value) else value
