"""Checks who may write to a file or folder, or above it: they can run code in every process that loads it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Final

from cachescope.auditing.findings import Finding

_ROOT_USER: Final = 0
_ADD: Final = ", in which nobody but the owners can replace files: but all can add some"


def me() -> int:
    """The current user; torch is assumed to run as the same user."""
    return os.geteuid() if hasattr(os, "geteuid") else _ROOT_USER


def audit_rights(path: str, found: os.stat_result) -> Iterator[Finding]:
    """Yield the findings on the mode and the owner of a file or folder in a cache."""
    mode = found.st_mode
    what = "folder" if stat.S_ISDIR(mode) else "file"
    which = f"a {what} of mode {_octal(mode)}, which"
    beyond = _ADD if _is_sticky(found) else ""
    if mode & stat.S_IWOTH:
        yield Finding("anyone-can-write", path, f"{which} every user can write{beyond}")
    elif mode & stat.S_IWGRP and not is_own_group(found.st_gid, found.st_uid):
        group = group_name(found.st_gid)
        yield Finding("group-can-write", path, f"{which} the group {group} can write{beyond}")
    if is_stranger(found.st_uid):
        yield Finding("other-owner", path, f"a {what} that belongs to {user_name(found.st_uid)}")
    if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
        yield Finding("special-bits", path, f"a file of mode {_octal(mode)}")


def audit_above(path: str) -> Iterator[Finding]:
    """Yield the findings on the folders above a cache, up to the root of the file system; links in the path are followed.

    In a folder with the sticky bit, such as ``/tmp``, only the owner of a file or of the folder can rename the file.
    """
    for above, below in _steps(path):
        try:
            found, inner = os.lstat(above), os.lstat(below)
        except OSError:
            continue
        others = found.st_mode & stat.S_IWOTH
        of_group = found.st_mode & stat.S_IWGRP and not is_own_group(found.st_gid, found.st_uid)
        name, mode = os.path.basename(below), f"{above} has mode {_octal(found.st_mode)}"
        if is_stranger(found.st_uid):
            message = f"{above} belongs to {user_name(found.st_uid)}, who can exchange {name}"
            yield Finding("root-replaceable", path, message)
        elif others and not _is_sticky(found):
            yield Finding("root-replaceable", path, f"{mode}: others can exchange {name}")
        elif of_group and not _is_sticky(found):
            message = f"{mode}: the group {group_name(found.st_gid)} can exchange {name}"
            yield Finding("group-can-write", path, message)
        elif others and is_stranger(inner.st_uid):
            message = f"{below} belongs to {user_name(inner.st_uid)}, in {above}, where all can make folders"
            yield Finding("root-replaceable", path, message)
        elif others and below == os.path.abspath(path) and _is_predictable(above, name):
            yield Finding("predictable-name", path, f"{name} in {above}, where all can make folders")


def _is_predictable(above: str, name: str) -> bool:
    return name.startswith("torchinductor_") or above in ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108


def _steps(path: str) -> Iterator[tuple[str, str]]:
    """Every folder above a path with the next item below it, for the given path and for the resolved one."""
    seen = set()
    for way in (os.path.abspath(path), os.path.realpath(path)):
        below = way
        while (above := os.path.dirname(below)) != below:
            if (above, below) not in seen:
                seen.add((above, below))
                yield above, below
            below = above


def _is_sticky(found: os.stat_result) -> bool:
    return bool(stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX)


def is_stranger(user: int) -> bool:
    """Whether a user is neither root nor the current user."""
    return user not in (_ROOT_USER, me())


@cache
def is_own_group(group: int, owner: int) -> bool:
    """Whether the owner is known to be the only member of a group: many systems give every user such a group."""
    try:
        import grp
        import pwd

        entry = grp.getgrgid(group)
        name = pwd.getpwuid(owner).pw_name
        first = {user.pw_name for user in pwd.getpwall() if user.pw_gid == group}
    except (ImportError, KeyError, OSError):
        return False
    return owner != _ROOT_USER and entry.gr_name == name and {*entry.gr_mem, *first} <= {name}


@cache
def user_name(user: int) -> str:
    """A user for a message."""
    with suppress(ImportError, KeyError, OSError):
        import pwd

        return f"{pwd.getpwuid(user).pw_name} (user {user})"
    return f"user {user}"


@cache
def group_name(group: int) -> str:
    """A group for a message."""
    with suppress(ImportError, KeyError, OSError):
        import grp

        return f"{grp.getgrgid(group).gr_name} ({group})"
    return str(group)


def _octal(mode: int) -> str:
    return f"{stat.S_IMODE(mode):04o}"
