"""A lock and its verification as lines and JSON. Imports no pandas, because this runs before every start of a container."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Final

from cachescope.json_types import JsonObject
from cachescope.locking import verifying
from cachescope.locking.facts import DIFFERS, EQUAL, PARTLY, UNKNOWN, Fact, made_by, torch_versions
from cachescope.locking.lock import CacheLock, Key, LockedFile
from cachescope.locking.verifying import compile_time_ns
from cachescope.report.html import Reprs
from cachescope.report.json_text import values_of
from cachescope.report.layout import Line, firsts
from cachescope.terms import CACHES
from cachescope.wording import duration, file_size, listed, plural

_NAMED: Final = 4
_STATES: Final = {EQUAL: "equal", PARTLY: "equal to some", DIFFERS: "differs", UNKNOWN: "not known"}
_STYLES: Final = {PARTLY: "yellow", DIFFERS: "bold red", UNKNOWN: "dim"}
_WIDTH_OF_A_NAME: Final = 12
_OF_A_FACT: Final = ("name", "state", "locked", "here", "reason", "entries", "time_ns")


def verify(
    lock: str | os.PathLike[str] | CacheLock, directory: str | os.PathLike[str] | None = None
) -> Verification:
    """Check a cache directory and this machine against a lock, without torch and without pandas.

    Parameters
    ----------
    lock : path or CacheLock
        The result of `cachescope.lock`, or its file.
    directory : path, optional
        The directory; by default the one that torch would use here.

    Returns
    -------
    Verification
        ``.passed``; ``.findings``: files that differ from the lock; ``.facts``: this machine's torch, Triton, Python,
        device, CPU and variables, and whether each equals what made the keys, with the entries that it costs; ``.missing_keys``,
        ``.lost_keys``: expected keys without an entry, or whose entry cannot be found here; ``.unexpected``: entries that
        nothing expects.

    Raises
    ------
    SourceError
        If the lock or the directory does not exist or cannot be read, or the lock is invalid or of another version.

    Examples
    --------
    >>> import cachescope
    >>> cache = cachescope.sample("entry_truncated") / "cache"
    >>> found = cachescope.verify(cachescope.lock(cache), cache)
    >>> found.findings, [fact.name for fact in found.differing]
    ((), [])
    """
    return Verification.of(lock, directory)


def verification_lines(found: verifying.Verification) -> Iterator[Line]:
    """The verification for the terminal: whether everything is as locked, then what differs."""
    yield Line(_headline(found), style="bold" if found.passed else "bold red")
    findings = [(f"{one.path}: {one.message}", one.kind) for one in found.findings]
    yield from _listed(findings, "files that are not as they were locked")
    yield from (Line(), Line("this machine, and what made the keys", style="bold"))
    for fact in found.facts:
        style, right = _STYLES.get(fact.state, ""), _STATES[fact.state]
        yield Line(_values(fact), 2, style, right, hang=_WIDTH_OF_A_NAME, label=f"{fact.name}  ")
        if fact.state != EQUAL:
            yield Line(f"{fact.reason}{_cost(fact)}", 2 + _WIDTH_OF_A_NAME)
    if found.lost:
        amount = _amount(len(found.lost), compile_time_ns(found.lost))
        of = plural(found.entries, "entry")
        yield from (Line(), Line(f"cannot be found here, of {of}: {amount}", style="yellow"))
    yield from _keys(found.missing_keys, "expected, and without an entry")
    yield from _keys(found.lost_keys, "expected, and with no entry that can be found here")
    unexpected = [(file.path, file_size(file.size)) for file in found.unexpected or ()]
    size = file_size(sum(file.size for file in found.unexpected or ()))
    what = plural(len(unexpected), "entry")
    yield from _listed(unexpected, f"nothing expects {what}, {size}: they can be pruned")


class Verification(Reprs, verifying.Verification):
    """A verification with its reprs."""

    __slots__ = ()

    _blocks = verification_lines


def _headline(found: verifying.Verification) -> str:
    files = f"{plural(found.files, 'file')}, {file_size(found.size_bytes)}"
    what = files if found.files else "the lock has no file"
    if found.passed:
        unknown = [fact.name for fact in found.not_known]
        but = f"; not known: {listed(unknown, _NAMED)}" if unknown else ""
        return f"as locked: {what}, {plural(found.entries, 'entry')}{but}"
    extra = sum(one.kind == verifying.EXTRA for one in found.findings)
    changed, missing, lost = len(found.findings) - extra, len(found.missing_keys), len(found.lost_keys)
    differing = listed([fact.name for fact in found.differing], _NAMED)
    wrong = (
        (changed, f"{plural(changed, 'file')} of {what}"),
        (extra, f"{plural(extra, 'file')} that the lock does not have"),
        (found.differing, f"{differing} of this machine"),
        (missing, f"{plural(missing, 'expected key')} without an entry"),
        (lost, f"{plural(lost, 'expected key')} that cannot be found here"),
    )
    said = "; ".join(text for is_any, text in wrong if is_any)
    return f"not as locked: {said or 'no entry can be found here'}"


def _values(fact: Fact) -> str:
    if fact.name == "variables":
        return fact.reason
    locked, here = fact.locked or "not known", fact.here or "not known"
    return here if locked == here else f"{locked} -> {here}"


def _cost(fact: Fact) -> str:
    if fact.state == UNKNOWN:
        return ""
    if fact.entries is None:
        return "; how many entries that costs is not known"
    return f"; costs {_amount(fact.entries, fact.time_ns)}" if fact.entries else "; costs no entry"


def _amount(entries: int, time_ns: int | None) -> str:
    took = "" if time_ns is None else f", which took {duration(time_ns)} to compile"
    return f"{plural(entries, 'entry')}{took}"


def _listed(rows: Sequence[tuple[str, str]], title: str, style: str = "bold") -> list[Line]:
    """The first of some texts below a title, each with a note at the right."""
    if not rows:
        return []
    lines = (Line(text, 2, right=right) for text, right in rows)
    shown = firsts(lines, 20, where="--json lists all", indent=2, style="")
    return [Line(), Line(title, style=style), *shown]


def _keys(keys: Sequence[Key], title: str) -> list[Line]:
    return _listed([(key, cache) for cache, key in keys], title, "red")


def keys_without_entry(keys: Sequence[Key]) -> list[Line]:
    """The keys that a command makes without finding an entry."""
    return _keys(keys, "the command makes these keys, and would find nothing under them")


def verification_object(found: verifying.Verification) -> JsonObject:
    """The verification for ``--json``."""
    return {
        **values_of(found, "directory", "passed", "files", "size_bytes", "entries"),
        "findings": [asdict(one) for one in found.findings],
        "facts": [values_of(fact, *_OF_A_FACT) for fact in found.facts],
        "lost": [_entry(file) for file in found.lost],
        "missing_keys": [_key(key) for key in found.missing_keys],
        "lost_keys": [_key(key) for key in found.lost_keys],
        "unexpected": None if found.unexpected is None else [_entry(file) for file in found.unexpected],
    }


def _entry(file: LockedFile) -> JsonObject:
    key = {"cache": file.kind, "cache_key": file.key}
    return {**key, "path": file.path, "size_bytes": file.size, "time_taken_ns": file.time_taken_ns}


def _key(key: Key) -> JsonObject:
    return {"cache": key[0], "cache_key": key[1]}


def locked_lines(lock: CacheLock, directory: str, output: str) -> Iterator[Line]:
    """What was locked, for the terminal."""
    keys = sum(1 for _ in lock.entries())
    size = file_size(sum(file.size for file in lock.files.values()))
    what = f"{plural(len(lock.files), 'file')} ({size}), {plural(keys, 'entry')}"
    yield Line(f"locked {directory} in {output}: {what}", style="bold")
    made = made_by(lock)
    by = f"torch {made}" if made else "a torch whose version nothing says"
    yield Line(f"keys of {plural(len(lock.contexts), 'context')}, made by {by}", 2)
    if lock.expected is None:
        yield Line("no key is expected: --expect RECORDING says which are", 2, style="dim")
    else:
        yield Line(f"{plural(len(lock.expected), 'key')} expected", 2)
    yield from (Line(note, 2, style="yellow") for note in notes(lock))


def notes(lock: CacheLock) -> Iterator[str]:
    """What to know about a lock before trusting it."""
    there = {(file.kind, file.key) for file in lock.entries()}
    if missing := [key for key in lock.expected or () if key not in there]:
        yield f"{plural(len(missing), 'expected key')} without a whole entry here: verify will say so"
    damaged = sum(1 for file in lock.files.values() if file.kind in CACHES and file.key is None)
    if damaged:
        yield f"{plural(damaged, 'entry')} damaged or unfinished: locked as files, under no key"
    if lock.contexts and lock.machine.torch_version not in (None, *torch_versions(lock)):
        here = f"torch {lock.machine.torch_version}, which is installed here"
        yield f"{here}, made none of the keys; the variables and the device of the lock are those of here"
    if lock.machine.torch_version is None:
        yield "no torch is installed for this Python: the lock has only what the entries record of theirs"


def locked_object(lock: CacheLock, directory: str, output: str) -> JsonObject:
    """What was locked, for ``--json``."""
    return {
        "lock": output,
        "directory": directory,
        "files": len(lock.files),
        "size_bytes": sum(file.size for file in lock.files.values()),
        "entries": sum(1 for _ in lock.entries()),
        "contexts": len(lock.contexts),
        "torch_versions": list(torch_versions(lock)),
        "expected": None if lock.expected is None else len(lock.expected),
        "notes": list(notes(lock)),
    }
