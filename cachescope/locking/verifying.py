"""Checks a directory and this machine against a lock."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final, Self

from cachescope.grouping import by_key
from cachescope.locking.facts import DIFFERS, UNKNOWN, Fact, holds_triton, machine_facts
from cachescope.locking.lock import CacheLock, Key, LockedFile, read_lock
from cachescope.locking.machine import installed_torch, installed_triton, machine_with
from cachescope.locking.tree import FILE, LINK, Content, Found, contents, walk
from cachescope.locking.variables import environment, variable_facts
from cachescope.readers.directory.default_root import default_root
from cachescope.terms import FXGRAPH

MISSING: Final = "missing"
EXTRA: Final = "extra"
ALTERED: Final = "altered"
UNREADABLE: Final = "unreadable"
LINKED: Final = "link"


@dataclass(frozen=True, slots=True)
class FileFinding:
    """A file that is not as it was locked."""

    # ``missing``, ``extra``, ``altered``, ``unreadable``, or ``link``: one that leaves the directory, leads nowhere
    # or elsewhere, or stands where a file was.
    kind: str
    path: str
    # What the file is, as the lock says; None of an extra one.
    cache: str | None
    key: str | None
    message: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What a lock says and what is there.

    Attributes
    ----------
    directory : str
    files, size_bytes : int
        How many files the lock has, and how large they are together.
    findings : tuple of FileFinding
        By kind, then by path.
    facts : tuple of Fact
        Of this machine.
    entries : int
        The FX and AOTAutograd entries that the lock has.
    lost : tuple of LockedFile
        Those that cannot be found here, because of any fact.
    missing_keys : tuple of (cache, key)
        Expected, and no whole entry is under them.
    lost_keys : tuple of (cache, key)
        Expected, and all entries under them are among the lost.
    unexpected : tuple of LockedFile, or None
        Entries that nothing expects; None if the lock does not say what is expected.
    """

    directory: str
    files: int
    size_bytes: int
    findings: tuple[FileFinding, ...]
    facts: tuple[Fact, ...]
    entries: int
    lost: tuple[LockedFile, ...]
    missing_keys: tuple[Key, ...]
    lost_keys: tuple[Key, ...]
    unexpected: tuple[LockedFile, ...] | None

    @property
    def differing(self) -> tuple[Fact, ...]:
        """The facts that differ from what made all of the keys."""
        return tuple(fact for fact in self.facts if fact.state == DIFFERS)

    @property
    def not_known(self) -> tuple[Fact, ...]:
        """The facts that could not be asked here."""
        return tuple(fact for fact in self.facts if fact.state == UNKNOWN)

    @property
    def passed(self) -> bool:
        """Whether all files are whole, nothing is known to differ, and every expected key has an entry."""
        is_useless = self.entries > 0 and len(self.lost) == self.entries
        return not (self.findings or self.differing or self.missing_keys or self.lost_keys or is_useless)

    @classmethod
    def of(cls, lock: CacheLock | str | os.PathLike[str], directory: str | os.PathLike[str] | None) -> Self:
        """Hold a directory and this machine against a lock; see `cachescope.verify`."""
        root = default_root() if directory is None else os.fspath(directory)
        own = None if isinstance(lock, CacheLock) else os.path.realpath(lock)
        # What is installed is hashed while the rest is read.
        with ThreadPoolExecutor(2) as pool:
            torch = pool.submit(installed_torch)
            held = lock if isinstance(lock, CacheLock) else read_lock(lock)
            # Triton's library has hundreds of megabytes.
            triton = pool.submit(installed_triton, with_key=holds_triton(held))
            found = [one for one in walk(root) if one.path != own]
            findings = tuple(sorted(_findings(held, found), key=lambda one: (_ORDER[one.kind], one.path)))
            here, unknown = machine_with(torch.result(), triton.result())
        facts = [*machine_facts(held, here, unknown), *variable_facts(held, environment(held.variables))]
        contexts = frozenset[int]().union(*(fact.lost or () for fact in facts))
        lost = tuple(_files_lost(held, contexts, frozenset[str]().union(*(fact.loses for fact in facts))))
        bad = {one.path for one in findings}
        gone = {file.path for file in lost}
        whole = {(file.kind, file.key) for file in held.entries() if file.path not in bad}
        left = {(file.kind, file.key) for file in held.entries() if file.path not in bad | gone}
        found_elsewhere = whole - left
        return cls(
            directory=root,
            files=len(held.files),
            size_bytes=sum(file.size for file in held.files.values()),
            findings=findings,
            facts=tuple(_with_cost(fact, held) for fact in facts),
            entries=sum(1 for _ in held.entries()),
            lost=lost,
            missing_keys=tuple(key for key in held.expected or () if key not in whole),
            lost_keys=tuple(key for key in held.expected or () if key in found_elsewhere),
            unexpected=_unexpected(held),
        )


_ORDER: Final = {kind: at for at, kind in enumerate((ALTERED, LINKED, UNREADABLE, MISSING, EXTRA))}


def _findings(lock: CacheLock, found: Iterable[Found]) -> Iterator[FileFinding]:
    """What is not as the lock says it."""
    seen: set[str] = set()
    files: list[Found] = []
    for one in found:
        if one.name in seen:
            yield FileFinding(EXTRA, one.name, None, None, "another name with the same spelling")
            continue
        seen.add(one.name)
        locked = lock.files.get(one.name)
        if one.kind == FILE and locked is not None:
            files.append(one)
        elif one.kind == LINK and one.problem is None and lock.links.get(one.name) == one.target:
            continue
        else:
            yield _odd(one, locked, lock.links.get(one.name))
    for name, content in contents(files, {file.path: file.size for file in lock.files.values()}).items():
        if (finding := _compared(lock.files[name], content)) is not None:
            yield finding
    for path, file in lock.files.items():
        if path not in seen:
            yield FileFinding(MISSING, path, file.kind, file.key, "it is not there")
    for path in lock.links:
        if path not in seen:
            yield FileFinding(MISSING, path, None, None, "the link is not there")


def _odd(one: Found, locked: LockedFile | None, link: str | None) -> FileFinding:
    """Something that is no file of the lock, or no file any more."""
    cache, key = (None, None) if locked is None else (locked.kind, locked.key)
    if one.kind == LINK:
        leads = one.problem or f"a link to {one.target}"
        was = " in the place of a file" if locked is not None else ""
        was = f", not to {link}" if link is not None else was
        return FileFinding(LINKED, one.name, cache, key, f"{leads}{was}")
    if one.problem is not None:
        return FileFinding(UNREADABLE, one.name, cache, key, one.problem)
    message = "the lock does not have it" if link is None else "a file in the place of a link"
    return FileFinding(EXTRA if link is None else ALTERED, one.name, cache, key, message)


def _compared(file: LockedFile, content: Content) -> FileFinding | None:
    if content.problem is not None:
        return FileFinding(UNREADABLE, file.path, file.kind, file.key, content.problem)
    if content.size != file.size:
        message = f"{content.size} bytes, not {file.size}"
    elif content.sha256 != file.sha256:
        message = "of the same size, with other content"
    else:
        return None
    return FileFinding(ALTERED, file.path, file.kind, file.key, message)


def _files_lost(lock: CacheLock, contexts: frozenset[int], caches: frozenset[str]) -> Iterator[LockedFile]:
    """The entries of some contexts and of some caches, and what points to graphs of which no other is left."""
    of_key = by_key((file.key, file.context in contexts) for file in lock.entries() if file.kind == FXGRAPH)
    for file in lock.entries():
        needs = any(all(of_key.get(key, [False])) for key in file.needs)
        if file.kind in caches or file.context in contexts or needs:
            yield file


def _with_cost(fact: Fact, lock: CacheLock) -> Fact:
    if fact.lost is None:
        return fact
    files = list(_files_lost(lock, fact.lost, frozenset(fact.loses)))
    return replace(fact, entries=len(files), time_ns=compile_time_ns(files))


def compile_time_ns(files: Iterable[LockedFile]) -> int | None:
    """What compiling some entries took; None if none of them records it.

    The time of an AOTAutograd entry contains that of the graphs that it points to.
    """
    files = list(files)
    within = {key for file in files for key in file.needs}
    own = [file for file in files if not (file.kind == FXGRAPH and file.key in within)]
    times = [file.time_taken_ns for file in own if file.time_taken_ns is not None]
    return sum(times) if times else None


def _unexpected(lock: CacheLock) -> tuple[LockedFile, ...] | None:
    """The entries that no recording looked up, and that no entry points to that one did."""
    if lock.expected is None:
        return None
    wanted: Mapping[Key, None] = dict.fromkeys(lock.expected)
    pointed = {key for file in lock.entries() if (file.kind, file.key) in wanted for key in file.needs}
    return tuple(
        file
        for file in lock.entries()
        if (file.kind, file.key) not in wanted and not (file.kind == FXGRAPH and file.key in pointed)
    )
