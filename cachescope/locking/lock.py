"""What a lock holds, as plain values; `lock_text` has its JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from cachescope.terms import CACHES
from cachescope.wording import plural

LOCK_VERSION: Final = 1

Key = tuple[str, str]
"""A cache, and a key in it."""


@dataclass(frozen=True, slots=True)
class LockedFile:
    """One file of the cache."""

    # Relative to the directory, with ``/``.
    path: str
    # As the column ``cache`` of ``entries``.
    kind: str
    size: int
    sha256: str
    # The key that it is an entry under, and the number of the context that made it; None where nothing says.
    key: str | None = None
    context: int | None = None
    # Of an AOTAutograd entry, the keys of the FX graphs that it points to.
    needs: tuple[str, ...] = ()
    time_taken_ns: int | None = None
    device_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyField:
    """One field of a key: torch's hash of its value, and the beginning of its text if it has one."""

    detail_hash: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Process:
    """What a recording says of one of its processes."""

    torch_version: str | None = None
    python_version: str | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """How torch makes the value of a field from a variable."""

    # ``switch``: whether it is ``1``; ``int``, ``text``; ``other``: in a way that is not known here.
    kind: str
    # What counts where the variable is not set.
    unset: str | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable that enters keys: its value where the lock was made, and the fields that it sets."""

    value: str | None
    fields: Mapping[str, Rule] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine and the Python that a lock was made with; None is not known, or not there."""

    python_version: str
    architecture: str
    # The torch beside this Python, the key that it makes of its sources, and the toolkits that it was built for.
    torch_version: str | None = None
    torch_key: str | None = None
    cuda: str | None = None
    hip: str | None = None
    triton_version: str | None = None
    triton_key: str | None = None
    # The models of its GPUs, as the driver names them.
    devices: tuple[str, ...] | None = None
    # Those of its vector instructions.
    cpu_features: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, repr=False)
class CacheLock:
    """The lock of a cache.

    Attributes
    ----------
    machine : Machine
        Where the lock was made.
    variables : mapping
        By name, every variable that is known to enter keys.
    contexts : tuple of mapping
        Of each distinct process that made keys, what its keys hold beside graph and inputs: field to `KeyField`.
    processes : tuple of Process
        Those of the recordings.
    files : mapping
        By path, the files.
    links : mapping
        By path, the links in the directory, and what in it they lead to.
    expected : tuple of (cache, key), or None
        The keys that the recordings looked up; None if there was none.
    """

    machine: Machine
    variables: Mapping[str, Variable] = field(default_factory=dict)
    contexts: tuple[Mapping[str, KeyField], ...] = ()
    processes: tuple[Process, ...] = ()
    files: Mapping[str, LockedFile] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    expected: tuple[Key, ...] | None = None

    def __repr__(self) -> str:
        keys = sum(1 for _ in self.entries())
        parts = [plural(len(self.files), "file"), plural(keys, "entry", "entries")]
        parts.append(plural(len(self.contexts), "context"))
        parts += [] if self.expected is None else [plural(len(self.expected), "expected key")]
        return f"<{', '.join(parts)}>"

    def entries(self) -> Iterator[LockedFile]:
        """The FX and AOTAutograd entries, whose keys hold what a process is."""
        return (file for file in self.files.values() if file.key is not None and file.kind in CACHES)
