"""What `cachescope record` cannot have seen: which logs did not reach it, and entries that no recorded lookup made."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Final

from cachescope.wording import plural

if TYPE_CHECKING:
    from cachescope.capture.new_entries import NewEntries
    from cachescope.capture.recording import Recorded
    from cachescope.scope import Scope

_NO_TORCH: Final = (
    "nothing was recorded: no process that had the variables of this recording (TORCH_LOGS_OUT and others) "
    "imported torch. A process that was started with an environment of its own is not seen."
)
_SILENT: Final = (
    "nothing was recorded: torch was imported, and not a word of its caches reached the log or the trace. It compiled "
    "nothing, or its loggers were disabled: logging.config.dictConfig and fileConfig disable them unless "
    "disable_existing_loggers is False, and logging.disable does."
)
_NO_TEXT: Final = (
    "no line of the cache loggers reached the log: the program sets its own TORCH_LOGS, or changes its loggers. "
    "What stands here is from the trace."
)
_NO_TRACE: Final = (
    "no trace was written: the program changes TORCH_TRACE, or disables its logger. What stands here is from the "
    "text log, which has no compile times."
)
_KEEP_VARIABLES: Final = (
    "Processes that the command starts have to keep TORCH_TRACE, TORCH_LOGS and TORCH_LOGS_OUT."
)


def what_is_missing(scope: Scope, runs: Collection[int], recorded: Recorded) -> list[str]:
    """What of a recording is not there, and what else is known of it: one sentence or two for each.

    Parameters
    ----------
    scope : Scope
        What was read.
    runs : collection of int
        The runs of it that were recorded just now.
    recorded : Recorded
        The recording.
    """
    mine = scope.lookups[scope.lookups["run"].isin(set(runs))]
    keys = set(mine["cache_key"].dropna())
    if not runs:
        notes = [_SILENT if recorded.has_torch_log else _NO_TORCH]
    else:
        notes = list(_missing_logs(scope, set(mine["run"]))) if len(mine) else []
    nothing = not len(mine)
    return notes + [text for one in recorded.new_entries for text in _entry_note(one, keys, nothing)]


def recorded_object(scope: Scope, runs: Collection[int], recorded: Recorded) -> dict[str, Any]:
    """What ``--json`` says of the recording itself."""
    return {
        "folder": str(recorded.folder),
        "runs": sorted(runs),
        "exit_status": recorded.exit_status,
        "not_recorded": what_is_missing(scope, runs, recorded),
    }


def _missing_logs(scope: Scope, runs: Collection[int]) -> Iterator[str]:
    from cachescope.capture.recording import LOG_NAME

    logs = [[os.path.basename(source) for source in scope.facts.runs[run]["sources"]] for run in runs]
    if all(LOG_NAME not in names for names in logs):
        yield _NO_TEXT
    if all(names == [LOG_NAME] for names in logs):
        yield _NO_TRACE


def _entry_note(new: NewEntries, keys: Collection[str], nothing: bool) -> Iterator[str]:
    """Entries that no recorded lookup made; with nothing recorded, also that there are none."""
    if not new.is_listed:
        yield f"{new.root} cannot be listed: whether entries came into it is not known."
    elif others := [key for key in new.keys if key not in keys]:
        yield (
            f"{plural(len(others), 'entry', 'entries')} came into {new.root} meanwhile that no recorded lookup made: lookups "
            f"missed whose logs did not reach us, in the command or in another process. {_KEEP_VARIABLES}"
        )
    elif nothing and os.path.isdir(new.root):
        yield f"No entry came into {new.root} meanwhile, so no lookup missed that stores there; hits leave nothing."
