"""What was locked, as lines and JSON."""

from __future__ import annotations

from cachescope.json_types import JsonObject
from cachescope.locking.facts import made_by, torch_versions
from cachescope.locking.lock import CacheLock
from cachescope.report.layout import Line
from cachescope.terms import CACHES
from cachescope.version import __version__
from cachescope.wording import file_size, plural


def locked_lines(lock: CacheLock, directory: str, output: str) -> list[Line]:
    """What was locked, for the terminal."""
    keys = sum(1 for _ in lock.entries())
    size = file_size(sum(file.size for file in lock.files.values()))
    what = f"{plural(len(lock.files), 'file')} ({size}), {plural(keys, 'entry', 'entries')}"
    lines = [Line(f"locked {directory} in {output}: {what}", style="bold")]
    lines.append(Line(_made_by(lock), 2))
    if lock.expected is None:
        lines.append(Line("no key is expected: --expect RECORDING says which are", 2, style="dim"))
    else:
        lines.append(Line(f"{plural(len(lock.expected), 'key')} expected", 2))
    lines += [Line(note, 2, style="yellow") for note in notes(lock)]
    return lines


def _made_by(lock: CacheLock) -> str:
    made = made_by(lock)
    by = f"torch {made}" if made else "a torch whose version nothing says"
    return f"keys of {plural(len(lock.contexts), 'context')}, made by {by}"


def notes(lock: CacheLock) -> list[str]:
    """What should be known of a lock before it is trusted."""
    found = []
    there = {(file.kind, file.key) for file in lock.entries()}
    if missing := [key for key in lock.expected or () if key not in there]:
        found.append(f"{plural(len(missing), 'expected key')} without a whole entry here: verify will say so")
    damaged = sum(1 for file in lock.files.values() if file.kind in CACHES and file.key is None)
    if damaged:
        found.append(
            f"{plural(damaged, 'entry', 'entries')} damaged or unfinished: locked as files, under no key"
        )
    if lock.contexts and lock.machine.torch_version not in (None, *torch_versions(lock)):
        found.append(
            f"torch {lock.machine.torch_version}, which is installed here, made none of the keys; the variables "
            "and the device of the lock are those of here"
        )
    if lock.machine.torch_version is None:
        found.append(
            "no torch is installed for this Python: the lock has only what the entries record about theirs"
        )
    return found


def locked_object(lock: CacheLock, directory: str, output: str) -> JsonObject:
    """What was locked, for ``--json``."""
    return {
        "cachescope": __version__,
        "lock": output,
        "directory": directory,
        "files": len(lock.files),
        "size_bytes": sum(file.size for file in lock.files.values()),
        "entries": sum(1 for _ in lock.entries()),
        "contexts": len(lock.contexts),
        "torch_versions": list(torch_versions(lock)),
        "expected": None if lock.expected is None else len(lock.expected),
        "notes": notes(lock),
    }
