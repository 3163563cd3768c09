"""What a recording does not show: which logs did not reach it, entries that no recorded lookup made, and those that it was not compared with."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Set
from typing import Final

from cachescope.answers.chosen import Chosen
from cachescope.answers.recording import Recording
from cachescope.capture.preflight.notes import LOG_NAME
from cachescope.capture.recording import Listing, Recorded
from cachescope.locking.variables import COMPILING_OFF
from cachescope.readers.directory.default_root import default_root
from cachescope.readers.logs.notes import WHY_SILENT
from cachescope.verdict_kinds import kind_of
from cachescope.wording import plural

_NO_TORCH: Final = "nothing was recorded: no process that had the variables of this recording imported torch. One that was started with an environment of its own is not seen."
_SILENT: Final = f"nothing was recorded: torch was imported, and not a word of its caches reached the log or the trace. Either {WHY_SILENT}."
_NO_TEXT: Final = "no line of the cache loggers reached the log: the program sets TORCH_LOGS itself, or calls logging.disable. This answer is from the trace."
_NO_TRACE: Final = "no trace was written: the program sets TORCH_TRACE itself, or disables its logger. This answer is from the text log, which has no compile times."
_CHILDREN: Final = "A process that the command starts needs TORCH_TRACE, TORCH_LOGS and TORCH_LOGS_OUT"


def what_is_missing(read: Recording, runs: Set[int], recorded: Recorded) -> list[str]:
    """What of a recording is not there, and what else is known of it: one sentence or two for each."""
    mine = [row for row in read.facts.lookups.values() if row.run in runs]
    keys = {row.cache_key for row in mine if row.cache_key is not None}
    if not mine and runs <= read.tables.compiled.keys():
        off = [name for name in COMPILING_OFF if os.environ.get(name) == "1"]
        silent = f"nothing was recorded: {off[0]}=1 switches torch.compile off." if off else _SILENT
        notes = [silent if recorded.has_torch_log else _NO_TORCH]
    else:
        # Where the caches are off, the loggers have nothing to say.
        notes = list(_missing_logs(read, {row.run for row in mine if row.outcome != "disabled"}))
    arrived = {
        root: None
        if names is None or (now := recorded.after[root]) is None
        else [key for key, _ in now - names]
        for root, names in recorded.before.items()
    }
    came = [text for root, new in arrived.items() if (text := _came(root, new or (), keys))]
    # Of the directory that the program was given: torch's own default is not used beside another one.
    if not came and not mine and (given := default_root()) in arrived and os.path.isdir(given):
        came = [
            f"{given} cannot be listed: whether entries came into it is not known."
            if arrived[given] is None
            else f"No entry of a graph came into {given} meanwhile. Hits leave none."
        ]
    return notes + came


def keys_beside(read: Recording, runs: Set[int], listed: Listing) -> int:
    """How many keys the directory of this process holds that nothing that was read has, if misses of some runs may be first lookups."""
    if not any(kind_of(cause).may_be_first for cause in Chosen.of_runs(read, runs).causes):
        return 0
    known = {row.cache_key for row in read.facts.lookups.values()}
    known |= {row.cache_key for row in read.facts.entries.values()}
    return len({key for key, _ in listed.get(default_root()) or ()} - known)


def _missing_logs(read: Recording, runs: Collection[int]) -> Iterator[str]:
    logs = [[os.path.basename(source) for source in read.facts.runs[run].sources] for run in runs]
    if logs and all(LOG_NAME not in names for names in logs):
        yield _NO_TEXT
    if logs and all(names == [LOG_NAME] for names in logs):
        yield _NO_TRACE


def _came(root: str, new: Collection[str], keys: Collection[str]) -> str | None:
    """Entries that no recorded lookup made."""
    others = [key for key in new if key not in keys]
    if not others:
        return None
    return (
        f"{plural(len(others), 'entry')} came into {root} meanwhile that no recorded lookup made: a mega-cache "
        "was loaded, or lookups missed whose logs did not reach us, in the command or in another program; which of these is "
        f"not known. {_CHILDREN}."
    )
