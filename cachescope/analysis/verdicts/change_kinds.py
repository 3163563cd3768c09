"""Distinguishes changed keys with the same changed fields: how the code of the graph changed, and which torch it was.

Two edits of two graphs both change the field ``gm``, but are two causes. A change of torch changes a hundred fields at
once, but is one cause.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final

from cachescope.analysis.graphs import graph_diff
from cachescope.analysis.verdicts.option_defaults import default_hashes
from cachescope.details import HashDetails
from cachescope.frames.recorded_rows import RunRow
from cachescope.verdict_kinds import UPGRADE

TORCH_VERSION: Final = "torch_version"
# Numbers that dynamo gives to the variables of a graph: the same edit in another graph has other numbers.
_NUMBERING: Final = re.compile(r"(?<=[a-z])_\d+\b")


class ChangeKinds:
    """Names the kinds of changed keys; answers are cached."""

    def __init__(self, details: HashDetails, runs: Sequence[RunRow]) -> None:
        self._details = details
        self._runs = {run.run: run for run in runs}
        self._edits: dict[tuple[int | None, int | None], str] = {}

    def kind(self, before: int, after: int, runs: tuple[int | None, int]) -> str:
        """The kind of the change from one set of hash details to another; empty if its fields describe it completely."""
        graph = None
        for field, old, new in self._details.changes(before, after):
            name = self._details.fields[field]
            if name == TORCH_VERSION:
                return UPGRADE + self._versions(*runs)
            if name == "gm":
                graph = old, new
        return "" if graph is None else self._edit(*graph)

    def changed_besides(self, before: int, after: int, runs: tuple[int | None, int]) -> tuple[str, ...]:
        """Options that had torch's default before an upgrade but not the default of the new torch: the user set them."""
        old_version, new_version = self._version(runs[0]), self._version(runs[1])
        if old_version is None or new_version is None:
            return ()
        return tuple(
            self._details.fields[field]
            for field, old, new in self._details.changes(before, after)
            if self._has_default(field, old, old_version)
            and self._has_default(field, new, new_version) is False
        )

    def _has_default(self, field: int, component: int | None, version: str) -> bool | None:
        defaults = default_hashes(self._details.fields[field], version)
        if component is None or not defaults:
            return None
        return self._details.components[component][1:52] in defaults

    def _versions(self, before: int | None, after: int) -> str:
        """``torch 2.13.0 -> 2.15.0, Python 3.13 -> 3.14``, as far as the logs record them."""
        old, new = (None if run is None else self._runs.get(run) for run in (before, after))
        versions = self._version(before), self._version(after)
        if None in versions:
            text = "another torch" if versions[1] is None else f"another torch -> {versions[1]}"
        elif versions[0] == versions[1]:
            text = f"another build of torch {versions[0]}, or files in it were edited"
        else:
            text = f"torch {versions[0]} -> {versions[1]}"
        pythons = [None if run is None else run.python_version for run in (old, new)]
        if None not in pythons and pythons[0] != pythons[1]:
            text += f", Python {pythons[0]} -> {pythons[1]}"
        return text

    def _version(self, run: int | None) -> str | None:
        found = None if run is None else self._runs.get(run)
        return None if found is None else found.torch_version

    def _edit(self, before: int | None, after: int | None) -> str:
        pair = before, after
        if pair not in self._edits:
            self._edits[pair] = _edit_of(*(self._text(code) for code in pair))
        return self._edits[pair]

    def _text(self, component: int | None) -> str:
        found = self._details.parsed(component)
        return "" if found is None else found.value_text


def _edit_of(before: str, after: str) -> str:
    """A digest of the lines that an edit removed and added; empty if the printed code is equal."""
    lines = graph_diff(before, after, context=0).split("\n")[2:]
    edit = [_NUMBERING.sub("", line) for line in lines if line[:1] in ("+", "-")]
    if not edit:
        return ""
    digest = hashlib.sha256("\n".join(edit).encode("utf-8", "replace")).hexdigest()
    return f"edit {digest[:8]}"
