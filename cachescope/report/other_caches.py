"""The compile caches of a serving start, for the terminal and as JSON: what each is for, whether it lasts, what to set or mount."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cachescope.json_types import JsonObject
from cachescope.readers.other_caches import FoundCache
from cachescope.report.json_text import values_of
from cachescope.report.layout import Line, parted, titled
from cachescope.wording import file_size, file_time, plural

_STATES = {
    "unknown": "holds nothing of the layout that its releases write",
    "empty": "holds no file",
    "unreadable": "cannot be read",
}


def other_cache_lines(found: Sequence[FoundCache]) -> Iterator[Line]:
    """Each cache that is there, then what is not claimed, then what is not there."""
    there = [one for one in found if one.status == "cache"]
    size = file_size(sum(one.size_bytes for one in there))
    title = f"{plural(len(there), 'compile cache')} of {len(found)} that are known: {size}"
    yield Line(title, style="bold")
    if lost := [one.known.name for one in there if one.mount and one.mount.outlasts is False]:
        yield Line(f"Lost with the container: {', '.join(lost)}", style="yellow")
    unclaimed = titled("Nothing is claimed of:", (_place(one) for one in found if one.status in _STATES))
    absent = titled("Not there:", (_place(one) for one in found if one.status == "absent"))
    yield from parted((*map(_cache_lines, there), unclaimed, absent))


def _place(one: FoundCache) -> Line:
    return Line(f"{one.known.name}: {one.path} {_STATES.get(one.status, '')}".rstrip(), 3, whole=True)


def _cache_lines(one: FoundCache) -> Iterator[Line]:
    count = ("more than " if one.is_cut else "") + plural(one.files, "file")
    yield Line(one.known.name, style="bold", right=f"{file_size(one.size_bytes)}, {count}")
    yield Line(one.path, 3, whole=True)
    made_for = ", ".join(sorted(one.architectures)) or "not known from its names"
    yield Line(f"made for: {made_for}", 3)
    if one.oldest_ns is not None and one.newest_ns is not None:
        yield Line(f"written: {file_time(one.oldest_ns)} to {file_time(one.newest_ns)}", 3)
    if one.other_files:
        others = f"{plural(one.other_files, 'file')} of {file_size(one.other_bytes)}"
        yield Line(f"beside it: {others} of no layout that is known here, not counted", 3)
    if one.unread_folders:
        folders = plural(one.unread_folders, "folder")
        yield Line(f"{folders} in it cannot be read: there may be more", 3, "yellow")
    if one.switched_off_by:
        yield Line(f"switched off here by {one.switched_off_by}: nothing reads it", 3, "yellow")
    yield Line(_lasting(one), 3)
    yield Line(f"keep: {_to_keep(one)}", 3)
    yield Line(f"made again after: {one.known.stale}", 3)


def _lasting(one: FoundCache) -> str:
    """Whether what is in it is there for the next container."""
    if one.mount is None:
        return "how long it lasts is not known: nothing says which file system it is on"
    of = f"{one.mount.kind} at {one.mount.point}"
    if one.mount.outlasts is None:
        return f"kept as long as the root file system ({of}); if that is an image's, as long as the container"
    if one.mount.outlasts:
        return f"on a mount of its own ({of}), which outlasts the container unless it was made for it"
    return f"lost with the container ({of})"


def _to_keep(one: FoundCache) -> str:
    """What to mount or set."""
    if one.mount is not None and one.mount.outlasts:
        return "mount the same at the next start"
    volume = re.sub(r"[^a-z0-9]+", "-", one.known.name.lower())
    return f"docker run -v {volume}:{one.path} …, or {one.known.variable}=/a/mounted/folder"


def other_caches_object(found: Sequence[FoundCache]) -> JsonObject:
    """Every known cache, those that are not there among them."""
    return {"caches": [_object(one) for one in found]}


def _object(one: FoundCache) -> JsonObject:
    times = {"oldest_time": one.oldest_ns, "newest_time": one.newest_ns}
    mount = one.mount
    return {
        "name": one.known.name,
        **values_of(one, "status", "path", "set_by", "switched_off_by", "files", "size_bytes"),
        **values_of(one, "other_files", "other_bytes", "is_cut", "unread_folders"),
        **{name: None if ns is None else f"{file_time(ns)} UTC" for name, ns in times.items()},
        "made_for": sorted(one.architectures),
        "file_system": mount and mount.kind,
        "mount_point": mount and mount.point,
        "outlasts_container": mount and mount.outlasts,
        "keep": _to_keep(one) if one.status == "cache" else None,
        "made_again_after": one.known.stale,
        **values_of(one.known, "variable", "source"),
    }
