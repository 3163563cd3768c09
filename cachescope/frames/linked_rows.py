"""Rows of how the files of a cache directory belong together, and which are of no use."""

from __future__ import annotations

from cachescope.rows import Time, col, row

# fmt: off


@row("duplicates")
class DuplicateRow:
    """One group of files of which a single one would be enough."""

    entries: tuple[int, ...] = col("the files, ids into entries, the oldest first")
    cache: str = col("their kind")
    cache_key: str = col("the key of the first")
    copies: int = col("number of files in the group")
    size_bytes: int = col("size of the first", unit="bytes")
    saved_bytes: int = col("size of the others", unit="bytes")
    known_by: str = col("what was compared; no file is read for this")


@row("locks")
class LockRow:
    """One lock file."""

    entry: int = col("the file, an id into entries")
    path: str = col("where it is")
    lock_held: bool | None = col(
        "whether a process held it at that moment", missing="it is gone, could not be opened, or the system does not tell")


@row("links")
class LinkRow:
    """One reference from a file of a cache directory to another."""

    parent: int = col("the file that refers, an id into entries")
    parent_kind: str = col("its kind")
    child: int | None = col(
        "the file it refers to, an id into entries", missing="not found: it is gone, or is in a place that was not read")
    child_kind: str = col("its kind")
    child_key: str = col("the key by which it is referred to")
    known_by: str = col("where the reference was read")


@row("orphans")
class OrphanRow:
    """One file that nothing refers to, or that refers to something that is gone."""

    entry: int = col("the file, an id into entries")
    cache: str = col("its kind")
    reason: str = col("what is missing")


@row("removable")
class RemovableRow:
    """One file that can go: without it, torch still finds every entry that it finds now, with everything the
    entry needs.
    """

    entry: int = col("the file, an id into entries")
    cache: str = col("its kind")
    path: str = col("where it is")
    size_bytes: int = col("its size", unit="bytes")
    reason: str = col("why nothing needs it")


@row("past_misses")
class PastMiss:
    """One FX graph entry, by its time the second or a later one of its graph: a miss read from the directory."""

    entry: int = col("the entry that the miss made, an id into entries")
    cache_key: str = col("its key")
    graph: int = col("number of the graph (equal gm, equal direction), in the order of first entries")
    direction: str | None = col("forward, backward or inference", missing="not recorded")
    made_time: Time | None = col("when it was made", unit="UTC", missing="vanished while being read")
    verdict: str = col(
        "key_changed, or no_detail_differs; under the same key guard_failed for different guards, and entry_unavailable for "
        "equal ones: two processes raced, or it was made again")
    baseline_entry: int = col("the earlier entry of the graph that it is compared with")
    is_order_known: bool = col(
        "whether modification times show that its baseline was stored before it was compiled: ranks that compile at once do not "
        "wait for each other, and copies and archives keep no times, or only whole seconds")
    changed: tuple[str, ...] = col("fields whose hash differs; empty under the same key")
    same_code: bool | None = col(
        "whether both have byte-identical generated source (equal code keys): then, going by the source, the changed fields were "
        "not needed for this graph",
        missing="a code key is not stored")
    same_binaries: bool | None = col(
        "whether the kernels compiled from that source are the same too (C++ compiler flags are not in the source); False: the "
        "changed fields do matter",
        missing="not known, or the source differs")
    same_code_known_by: str = col("what was compared")
    time_taken_ns: int | None = col("compile time of the entry", unit="ns", missing="not stored")
