"""What to do about a key that holds a value of one process: a rank, a path, a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from cachescope.analysis.differences import FieldChange
from cachescope.analysis.process_values.kinds import Kind

# What it is, and what to do about it.
_OF_KIND: Final[Mapping[Kind, tuple[str, str]]] = {
    "rank": ("the rank of the process", "no rank finds what another one stored"),
    "host": ("the name of a host", "no other host finds what was stored; or use one name for all hosts"),
    "path": ("a path", "only a run with the same path finds what was stored; or use one path in every run"),
    "port": ("a port", "only a run with the same port finds what was stored; or use one port in every run"),
    "time": ("a time", "no later run finds what was stored"),
    "address": (
        "the address of an object",
        "it is another one in every process; name the object by what it is, and not by its repr",
    ),
    "pid": ("the id of the process", "no other process finds what was stored"),
    "random number": (
        "a random number",
        "only a run that draws the same number finds what was stored; or choose it once for all runs",
    ),
    "bundle index": (
        "the bundles of Ray that the process has",
        "no process of other bundles finds what was stored",
    ),
}


def process_advice(change: FieldChange) -> Iterator[str]:
    """One sentence for each value of a process by which a field differs.

    Examples
    --------
    >>> from cachescope.analysis.differences import field_change
    >>> list(process_advice(field_change("x", "1", "2")))
    []
    """
    found = change.process_values
    if found is None:
        return
    holds = "holds" if found.is_certain else "apparently holds"
    where = "The graph" if change.kind == "graph" else change.field
    for kind in found.kinds:
        what, why = _OF_KIND[kind]
        yield f"{where} {holds} {what}: keep it out of the key, because {why}."
