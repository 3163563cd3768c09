"""The notes that cachescope itself writes beside torch's logs.

`cachescope record` writes one next to the logs of a run: the command, its exit status, when it began and ended. Those of a pre-flight
(`cachescope/capture/preflight/notes.py`) stand in its trace, and are put to the lookups that they are about: for an FX graph, both notes
come before torch's record, which is written once the graph is compiled; for AOTAutograd the one about storing comes after it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Final, NamedTuple, Self

from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key
from cachescope.json_types import JsonObject
from cachescope.readers.json_record import Record, are_texts, load_json, moment_ns
from cachescope.readers.logs.remote import is_address
from cachescope.readers.reading import Process, Reading
from cachescope.terms import RUN_NOTE

_MAX_BYTES: Final = 1 << 20
_OURS: Final = b"cachescope_run"
WHY_SILENT: Final = "torch compiled nothing, compiled with a backend that asks no cache (as aot_eager), or loaded what had been compiled ahead of time; or its loggers were disabled: logging.config.dictConfig and fileConfig do that to every logger that is there, unless disable_existing_loggers is False"
"""What leaves no word of the caches in the logs of a process that imports torch."""


def tell_of_runs(reading: Reading) -> None:
    """Set what it says of the command on each process that has a note.

    The note is read with the logs every time: it is written when the run begins and again when it ends.
    """
    known = cache(partial(_note, reading))
    for process in reading.processes:
        if not is_address(process.source):
            for name, value in known(os.path.join(os.path.dirname(process.source), RUN_NOTE)).items():
                setattr(process, name, value)


def labels_of(runs: Sequence[Process]) -> list[str | None]:
    """Each run's own label; else what tells it from the others: words of its command, each with the option before it, variables, the commit."""
    told = [
        (*(run.command or "").split(), *variables, *([] if run.commit is None else [f"commit {run.commit}"]))
        for run, variables in zip(runs, _variables_of(runs), strict=True)
    ]
    shared = set[str].intersection(*(set(words) for words in told if words)) if any(told) else set()
    return [run.label or " ".join(_own(words, shared)) or None for run, words in zip(runs, told, strict=True)]


def _variables_of(runs: Sequence[Process]) -> Iterator[list[str]]:
    """The variables of each run without what most have alike; of paths what lies below the folder that all values of a variable share."""
    pairs = [[text.partition("=") for text in run.environment] for run in runs]
    values = by_key((name, value) for of_run in pairs for name, _, value in of_run)
    # Without the name behind the last slash: that one is told.
    shared = {name: os.path.commonprefix(paths).rpartition("/")[0] for name, paths in values.items()}  # noqa: RUF071
    # What a run without the variable has is not known to be the same.
    counted = {name: Counter(found) for name, found in values.items() if len(found) == len(runs)}
    most = ((name, *found.most_common(1)[0]) for name, found in counted.items())
    usual = {name: value for name, value, times in most if 2 * times > len(runs)}
    for of_run in pairs:
        yield [
            f"{name}={f'…{value[len(shared[name]) :]}' if value.startswith('/') and shared[name] else value}"
            for name, _, value in of_run
            if usual.get(name) != value
        ]


def _own(words: Sequence[str], shared: set[str]) -> Iterator[str]:
    for before, word in pairwise(["", *words]):
        if word not in shared:
            if before.startswith("-") and before in shared:
                yield before
            yield word


def holds_a_note(folder: str) -> bool:
    """Whether `cachescope record` wrote a note into a folder."""
    return _OURS in _bytes_of(os.path.join(folder, RUN_NOTE))


def _bytes_of(path: str) -> bytes:
    # A pipe of that name would never end.
    with contextlib.suppress(OSError):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                return file.read(_MAX_BYTES)
    return b""


def _note(reading: Reading, path: str) -> JsonObject:
    """What a note says, by the names that a process has for it; nothing if the file is not a note of `cachescope record`."""
    data = _bytes_of(path)
    try:
        values = load_json(data)
    except ValueError as error:
        if _OURS in data:
            reading.problem(path, "", "not_json", str(error))
        return {}
    if not isinstance(values, dict) or _OURS.decode() not in values:
        return {}
    note = Record(values)
    words, status = note.texts("command"), note.whole("exit_status", least=-(1 << 31))
    start, end = _moment(note, "start_time"), _moment(note, "end_time")
    # A process that was not reached compiled for real, and into a cache of its own.
    is_preflight = note.flag("preflight") or None
    variables = note.record("environment")
    set_to = () if variables is None else ((name, variables.text(name)) for name in variables.values)
    told: JsonObject = {
        "command": None if words is None else shlex.join(words),
        "environment": tuple(f"{name}={value}" for name, value in set_to if value is not None),
        "commit": note.text("commit"),
        "label": note.text("label"),
        "filled_dir": note.text("filled_dir"),
        "exit_status": status,
        "is_preflight": is_preflight,
        "command_start_time": start,
        "command_end_time": None if start is None or (end or 0) < start else end,
    }
    if note.wrong:
        reading.problem(path, "", "bad_value", "; ".join(note.wrong))
    return {name: value for name, value in told.items() if value is not None}


def _moment(note: Record, name: str) -> int | None:
    text = note.text(name)
    found = moment_ns(text)
    if text is not None and found is None:
        note.wrong.append(f"{name} is no time")
    return found


PRECOMPILED: Final = "precompiled"
WHY_OPEN: Final = {
    "without_values": "the graph holds a constant whose values are part of the key, and the program ran without weights: "
    "a real run makes another key",
    "brought": "the program itself puts an entry under this key, from a mega-cache for example",
    "counts_read": "the program has read torch's counts of hits and misses, which a real run counts otherwise",
    PRECOMPILED: "with caching_precompile each process makes other keys, and may load what was precompiled instead",
}
"""What a process notes of a lookup that cannot be predicted, and what that means."""

_About = tuple[str | None, str | None]


class LookupNote(NamedTuple):
    """What is noted of one lookup."""

    # The sizes in guards, in their order; None for one that is not a number.
    sizes: tuple[float | None, ...] = ()
    cache_dir: str | None = None  # the directory that the program would use; None for torch's default one
    is_local: bool = True  # whether it would look in that directory, and in a remote cache
    is_remote: bool = False
    skips_guards: bool = False  # whether torch would take the first entry, whatever its guards
    open: str | None = None  # why it cannot be predicted, if the process knew that: one of `WHY_OPEN`
    # The vector instructions that the process generates code for, and its architecture.
    cpu: str | None = None
    is_stored: bool = False  # whether torch would store what it compiles after a miss
    stored_guards: str | None = None  # the guards of what it would store
    # The processes of the command that had ended when this one began.
    ended_before: frozenset[int] = frozenset()
    functorch_config: dict[str, str] | None = None  # the options that its key has as ``autograd_config``

    @classmethod
    def of_json(cls, text: str) -> Self:
        """From the JSON that a lookup has; what cannot be read in it is as if it were not noted."""
        try:
            values = Record(load_json(text.encode("utf-8", "surrogatepass"))).values
        except ValueError:
            values = {}
        asked, stored = Record(values.get("lookup") or {}), Record(values.get("stored") or {})
        sizes, after = asked.values.get("sizes"), asked.values.get("after")
        listed = sizes if isinstance(sizes, list) else []
        return cls(
            tuple(size if isinstance(size, (bool, int, float)) else None for size in listed),
            asked.text("cache_dir"),
            not asked.flag("not_local"),
            bool(asked.flag("remote")),
            bool(asked.flag("guards_skipped")),
            next((name for name in WHY_OPEN if asked.flag(name)), None),
            asked.text("cpu"),
            bool(stored.values) and stored.text("why_not") is None,
            stored.text("guards"),
            frozenset(pid for pid in after if type(pid) is int) if isinstance(after, list) else frozenset(),
            options if are_texts(options := asked.values.get("functorch_config")) else None,
        )


class PreflightNotes:
    """The notes about lookups whose records are still to come."""

    def __init__(self) -> None:
        self._open: dict[_About, list[JsonObject]] = defaultdict(list)
        # The latest of each key that has a note: what it would store may be noted after it.
        self._noted: dict[_About, LookupRow] = {}

    def add(self, note: JsonObject) -> None:
        """Take a note."""
        stored = note.get("stored")
        if isinstance(note.get("lookup"), dict):
            self._open[_about(note["lookup"])].append({"lookup": note["lookup"]})
        elif isinstance(stored, dict):
            about = _about(stored)
            if waiting := self._open.get(about):
                waiting[-1]["stored"] = stored
            elif (lookup := self._noted.get(about)) is not None:
                note = json.loads(lookup.preflight_note or "{}")
                lookup.preflight_note = json.dumps({**note, "stored": stored})

    def tell_of(self, lookup: LookupRow) -> None:
        """Give a lookup the note about it, if there is one."""
        about = (lookup.cache, lookup.cache_key)
        if waiting := self._open.get(about):
            lookup.preflight_note = json.dumps(waiting.pop())
            self._noted[about] = lookup


def _about(note: object) -> _About:
    of = Record(note)
    return of.text("cache"), of.text("key")
