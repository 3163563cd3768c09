"""Compares this machine with what made the keys of a lock: each fact, with the cost of a difference.

A key holds the hashes of its fields, so a fact is compared by hash where the fields are known, and with the machine that
the lock was made on where they are not. What cannot be asked here is `unknown`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cachescope.catalogue.facts import release_of
from cachescope.components import Detail
from cachescope.keys.detail_hash import default_protocol, torch_detail_hashes
from cachescope.keys.printed_values import printed_value
from cachescope.locking.lock import CacheLock, KeyField, Machine
from cachescope.terms import CACHES
from cachescope.wording import listed

EQUAL: Final = "equal"
PARTLY: Final = "partly"
DIFFERS: Final = "differs"
UNKNOWN: Final = "unknown"

Context = Mapping[str, KeyField]

_TORCH: Final = "torch_version"
_VERSION: Final = "system_info[version]"
_DEVICE: Final = "system_info[device]"
_NAMED: Final = 4
_NO_TRITON: Final = "none"
_LONGEST: Final = 100_000


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact of this machine, compared."""

    # ``torch``, ``Triton``, ``Python``, ``device``, ``toolkit``, ``CPU``, or the name of a variable.
    name: str
    # `PARTLY`: equal to that of some of the keys.
    state: str
    # What it was and what it is, in short.
    locked: str | None
    here: str | None
    reason: str
    # The contexts whose keys cannot be found here because of it; None where that is not known.
    lost: frozenset[int] | None = frozenset()
    # The caches of which nothing at all can be found here because of it, keys of an unknown context included.
    loses: tuple[str, ...] = ()
    # What that costs, once it is counted: how many FX and AOTAutograd entries, None where that is not known, and their
    # compile time, as far as they record it.
    entries: int | None = None
    time_ns: int | None = None


def machine_facts(lock: CacheLock, here: Machine, unknown: Mapping[str, str]) -> Iterator[Fact]:
    """Compare everything but the variables; `unknown` says why ``torch``, ``triton`` or ``device`` is not known here."""
    yield _torch(lock, here, unknown.get("torch", ""))
    yield _triton(lock, here, unknown.get("triton", ""))
    if (toolkit := _toolkit(lock, here)) is not None:
        yield toolkit
    yield _device(lock, here, unknown.get("device", ""))
    yield _python(lock, here)
    yield _cpu(lock, here)


def holds_triton(lock: CacheLock) -> bool:
    """Whether its keys hold Triton's own key: through torch 2.14 those of GPUs alone do."""
    return any(_VERSION in context for context in lock.contexts)


def _torch(lock: CacheLock, here: Machine, why_not: str) -> Fact:
    made = made_by(lock)
    name, key = "torch", here.torch_key
    if key is None:
        return Fact(name, UNKNOWN, made, here.torch_version, why_not, None)
    mine = torch_detail_hashes(key)
    recorded = [context.get(_TORCH) for context in lock.contexts]
    if not any(recorded):
        made = made or lock.machine.torch_version
        return _with_locked(name, made, lock.machine.torch_key, key, here.torch_version)
    holds = [None if field is None else field.detail_hash in mine for field in recorded]
    return _of_contexts(name, holds, made, here.torch_version, "every key holds the hash of torch's sources")


def torch_versions(lock: CacheLock) -> tuple[str, ...]:
    """The versions of torch that made the keys, as far as something says them."""
    found = {process.torch_version for process in lock.processes} - {None}
    machine = lock.machine
    hashes = {context[_TORCH].detail_hash for context in lock.contexts if _TORCH in context}
    if machine.torch_version is not None and hashes & torch_detail_hashes(machine.torch_key):
        found.add(machine.torch_version)
    # The fields of a key tell its release, but not the patch of that.
    found = found or {release_of(context) for context in lock.contexts}
    return tuple(sorted(text for text in found if text))


def made_by(lock: CacheLock) -> str | None:
    """Which torch made the keys, in short; None if nothing says it."""
    versions = list(torch_versions(lock))
    others = len({one[_TORCH].detail_hash for one in lock.contexts if _TORCH in one}) - len(versions)
    if versions and others > 0:
        versions.append("another" if others == 1 else f"{others} others")
    return listed(versions, _NAMED) if versions else None


def _triton(lock: CacheLock, here: Machine, why_not: str) -> Fact:
    name = "Triton"
    if not holds_triton(lock):
        made, mine = lock.machine.triton_version or _NO_TRITON, here.triton_version or _NO_TRITON
        state = EQUAL if made == mine else DIFFERS
        reason = "no key of this cache holds it; compared with where the lock was made"
        return Fact(name, state, made, mine, reason)
    recorded = [_parts(context.get(_VERSION)) for context in lock.contexts]
    if here.triton_version is not None and here.triton_key is None:
        return Fact(name, UNKNOWN, _triton_names(recorded), here.triton_version, why_not, None)
    holds = [
        _VERSION not in context or (None if parts is None else parts.get("triton") == here.triton_key)
        for context, parts in zip(lock.contexts, recorded, strict=True)
    ]
    shown = here.triton_version or _NO_TRITON
    reason = "keys hold the hashes of Triton's sources"
    return _of_contexts(name, holds, _triton_names(recorded), shown, reason)


def _triton_names(recorded: Sequence[Mapping[str, object] | None]) -> str | None:
    """The versions, which a key begins with: a sha256 follows without a separator."""
    keys = {parts.get("triton") for parts in recorded if parts is not None}
    names = {key.partition("-")[0][:-64] if isinstance(key, str) else _NO_TRITON for key in keys}
    return listed(sorted(names), _NAMED) if names else None


def _toolkit(lock: CacheLock, here: Machine) -> Fact | None:
    """CUDA or HIP, which keys hold where there is a GPU; None if none does."""
    recorded = [_parts(context.get(_VERSION)) for context in lock.contexts]
    named = [None if parts is None else parts.get("cuda", parts.get("hip")) for parts in recorded]
    if not any(named):
        return None
    mine = here.cuda or here.hip
    shown = listed(sorted({str(one) for one in named if one is not None}), _NAMED)
    if here.torch_version is None:
        return Fact("toolkit", UNKNOWN, shown, None, "torch, which says it, is not installed here", None)
    # Keys that were made without a GPU hold none.
    holds = [True if one is None else one == mine for one in named]
    return _of_contexts("toolkit", holds, shown, mine, "keys hold the version that torch was built for")


def _device(lock: CacheLock, here: Machine, why_not: str) -> Fact:
    name = "device"
    recorded = [_parts(context.get(_DEVICE)) for context in lock.contexts]
    made = sorted({str(parts["name"]) for parts in recorded if parts is not None and "name" in parts})
    locked = listed(made, _NAMED) if made else ("no GPU" if lock.contexts else _named(lock.machine.devices))
    mine = _named(here.devices)
    is_without = here.torch_version is not None and not here.cuda and not here.hip
    if not lock.contexts:
        return _with_locked(name, locked, lock.machine.devices, here.devices, mine, why_not)
    if is_without:
        without: list[bool | None] = [_DEVICE not in context for context in lock.contexts]
        reason = "keys hold the model of the GPU, and this torch can use none"
        return _of_contexts(name, without, locked, "no GPU", reason)
    if here.devices is None:
        return Fact(name, UNKNOWN, locked, None, why_not, None)
    if here.hip:
        return Fact(name, UNKNOWN, locked, mine, "the driver of ROCm is not asked", None)
    models = [None if parts is None else parts.get("name") for parts in recorded]
    holds = [_is_there(model, here.devices) for model in models]
    return _of_contexts(name, holds, locked, mine, "keys hold the model of the GPU")


def _is_there(model: object, devices: Sequence[str]) -> bool | None:
    """Whether torch takes a board of a model here; not known where it has the choice, or keys were made without any."""
    if not isinstance(model, str):
        return None
    if model not in devices:
        return False
    return True if len(set(devices)) == 1 else None


def _named(devices: Sequence[str] | None) -> str | None:
    if devices is None:
        return None
    return listed(dict.fromkeys(devices), _NAMED) if devices else "no GPU"


def _python(lock: CacheLock, here: Machine) -> Fact:
    recorded = [process.python_version for process in lock.processes if process.python_version]
    versions = recorded or [lock.machine.python_version]
    made = listed(sorted(set(versions)), _NAMED)
    mine = _minor(here.python_version)
    if mine in map(_minor, versions):
        state = EQUAL if {*map(_minor, versions)} == {mine} else PARTLY
        return Fact("Python", state, made, here.python_version, "patch releases count as one")
    loses: tuple[str, ...] = CACHES
    reason = "pickles, and with them all keys, are other ones from Python 3.14 on"
    if {default_protocol(version) for version in versions} == {default_protocol(here.python_version)}:
        loses, reason = (), "no key holds it; the code that torch reads of a program may be another"
    return Fact("Python", DIFFERS, made, here.python_version, reason, loses=loses)


def _minor(version: str) -> tuple[str, ...]:
    return tuple(version.split(".")[:2])


def _cpu(lock: CacheLock, here: Machine) -> Fact:
    """The CPU, which no key holds, and for which torch compiles its kernels (torch/_inductor/cpp_builder.py, -march=native)."""
    made, mine = lock.machine, here
    state = DIFFERS
    lost: frozenset[int] | None = None
    if made.architecture != mine.architecture:
        reason = "kernels for the CPU are compiled for the machine they are made on"
    elif made.cpu_features is None or mine.cpu_features is None:
        state, reason = UNKNOWN, "its instructions are not listed"
    elif lacking := sorted({*made.cpu_features} - {*mine.cpu_features}):
        reason = (
            f"it lacks {listed(lacking, _NAMED)}: no key holds that, so torch loads kernels that were compiled with them, "
            "and they may crash or compute wrong numbers here"
        )
        lost = frozenset()
    else:
        state, reason = EQUAL, "it has every instruction of the one that the lock was made on"
        lost = frozenset()
    return Fact("CPU", state, made.architecture, mine.architecture, reason, lost)


def _with_locked(
    name: str, locked: str | None, made: object, mine: object, here: str | None, why_not: str = ""
) -> Fact:
    """A fact of a lock whose entries say nothing of their processes."""
    if made is None or mine is None:
        reason = why_not or "neither the keys nor where the lock was made say it"
        return Fact(name, UNKNOWN, locked, here, reason, None)
    reason = "the entries do not say it; compared with where the lock was made"
    if made == mine:
        return Fact(name, EQUAL, locked, here, reason)
    return Fact(name, DIFFERS, locked, here, reason, None)


def _of_contexts(
    name: str, holds: Sequence[bool | None], locked: str | None, here: str | None, reason: str
) -> Fact:
    """A fact from whether it holds for each context (None: not known)."""
    lost = frozenset(at for at, one in enumerate(holds) if one is False)
    return Fact(name, state_of(holds), locked, here, reason, lost)


def state_of(holds: Sequence[bool | None]) -> str:
    """What holds for each context, in one word.

    >>> state_of([True, True]), state_of([True, False]), state_of([False, None]), state_of([True, None])
    ('equal', 'partly', 'differs', 'unknown')
    """
    if False in holds:
        return PARTLY if True in holds else DIFFERS
    return UNKNOWN if None in holds or not holds else EQUAL


def _parts(field: KeyField | None) -> Mapping[str, object] | None:
    """The dict that a field is the text of; None if there is no field, or its text is not what torch hashed."""
    if field is None or field.text is None or len(field.text) > _LONGEST:
        return None
    value = printed_value(Detail("", field.detail_hash, field.text))
    return value if isinstance(value, dict) else None
