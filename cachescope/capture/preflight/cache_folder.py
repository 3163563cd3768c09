"""The cache directory of a pre-flight: an empty one of its own for each that the program chooses.

What the program chose is noted with each lookup: the real run would look there.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

OWN_FOLDER: Final = "CACHESCOPE_PREFLIGHT_CACHE"
"""The variable that names the folder of the pre-flight, in which the directories are."""
INDUCTOR_DIR: Final = "TORCHINDUCTOR_CACHE_DIR"
TRITON_DIR: Final = "TRITON_CACHE_DIR"
BEFORE: Final = "before"
"""The folder in it that holds what lay in each directory that the program chose, before the first lookup there."""
_PLACES: Final = ("aotautograd", "fxgraph", "triton")
PROFILES: Final = "profiles"
"""The folder in it that holds the profiles of sizes that every directory gets, where they are not those that lie there."""

ours: Final[dict[str, str]] = {}
"""The variables of this pre-flight, whatever the program does to its environment."""
meant: Final[dict[str, str]] = {}
"""What variables were before of which the program sees those of the pre-flight."""

_torchs_own: dict[str, Callable[[], str]] = {}


def patch_cache_dir(module: Any, replace: Any) -> None:
    """Make torch's ``cache_dir`` give the own folder (torch/_inductor/runtime/cache_dir_utils.py, 2.5 to 2.15)."""
    default_dir = module.default_cache_dir
    _torchs_own["default_cache_dir"] = default_dir
    # From 2.13 a relative one is that of the first call, wherever the program goes then.
    is_kept = "abspath" in module.cache_dir.__code__.co_names

    def cache_dir() -> str:
        folder, named = meant_cache_dir(), os.environ.get(INDUCTOR_DIR)
        if is_kept and folder is not None and named is not None:
            if named == ours[OWN_FOLDER]:
                meant[INDUCTOR_DIR] = folder
            elif not named.startswith(ours[OWN_FOLDER]):
                show(INDUCTOR_DIR, folder)
        return _own_of(folder or "")

    replace(module, "cache_dir", cache_dir)
    # Below it lie caches that ignore the variable.
    replace(module, "default_cache_dir", lambda: _own_of(default_dir()))


def show(name: str, value: str | None) -> None:
    """Show the program a variable; what native code starts still gets the one of the pre-flight."""
    environment: Any = os.environ
    environment._data.pop(environment.encodekey(name), None)
    if value is not None:
        environment._data[environment.encodekey(name)] = environment.encodevalue(value)


def meant_cache_dir() -> str | None:
    """The directory that the program would use now; None if it is not known."""
    named = named_in(os.environ)
    if named is None and os.environ.get(INDUCTOR_DIR) in (None, ours[OWN_FOLDER]) and _torchs_own:
        named = _torchs_own["default_cache_dir"]()
    return None if named is None else os.path.abspath(named)


def named_in(environment: Mapping[str, str]) -> str | None:
    """The directory that an environment names, in which the program may have found the own folder."""
    named, own, before = environment.get(INDUCTOR_DIR), ours[OWN_FOLDER], meant.get(INDUCTOR_DIR)
    if named is None or not named.startswith(own):
        return named
    # What it derived from the variable, as one folder for each rank, it would derive from the other.
    return None if before is None else before + named.removeprefix(own)


def _own_of(root: str) -> str:
    folder = os.path.join(ours[OWN_FOLDER], _name_of(root))
    with suppress(FileExistsError):
        os.makedirs(folder)
        note_before(root, ours[OWN_FOLDER])
        given = os.path.join(ours[OWN_FOLDER], PROFILES)
        copy_profiles([given if os.path.isdir(given) else root], folder)
    return folder


def note_before(root: str, own: str) -> None:
    """Note which files lie in a directory, once for each."""
    os.makedirs(os.path.join(own, BEFORE), exist_ok=True)
    with suppress(FileExistsError), open(os.path.join(own, BEFORE, _name_of(root)), "x") as file:
        json.dump([root, sorted(files_below(root))], file)


def files_below(root: str) -> set[str]:
    """The files that torch writes in a directory, which may hold much else: entries, and code in folders of two letters."""
    found: set[str] = set()
    for folder, folders, names in os.walk(root):
        if folder == root:
            folders[:] = [name for name in folders if len(name) == 2 or name in _PLACES]
        else:
            found.update(os.path.join(folder, name) for name in names)
    return found


def copy_profiles(roots: Iterable[str], to: str) -> None:
    """Copy what torch stored of the sizes that varied (torch/_dynamo/pgo.py, `code_state_path`): it decides what is compiled."""
    folder = Path(to, "dynamo")
    folder.mkdir(parents=True, exist_ok=True)
    for profile in (profile for root in roots for profile in Path(root, "dynamo").glob("code_state_*.pkl")):
        with suppress(OSError):
            shutil.copyfile(profile, folder / profile.name)


def _name_of(root: str) -> str:
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
