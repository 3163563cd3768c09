"""Rows of the contents of a cache directory."""

from __future__ import annotations

import os

from cachescope.rows import Time, col, row
from cachescope.terms import OTHER_NAME, REFUSED

# fmt: off


@row("entries", frozen=False)
class EntryRow:
    """One file in a cache directory, one folder in it that could not be listed or is temporary and empty, or one
    value in a remote cache.
    """

    entry: int = col("number of the entry", default=0)
    cache: str = col('what the file is: ``describe("entry_kinds")``', default="")
    cache_key: str | None = col(
        "the key, from the name of the file or of its folder; for a lock, what it locks", missing="the name contains none",
        default=None)
    path: str = col("path, as reached from the given source; in a remote cache, its address and the key there", default="")
    root: str = col("the cache directory, or the remote cache", default="")
    size_bytes: int | None = col(
        "size of the file; for a link that is not followed, of the link itself; for a value in a remote cache, the decoded size",
        unit="bytes", missing="a folder", default=None)
    modified_time: Time | None = col("last written", unit="UTC", missing="not available: in a remote cache", default=None)
    status: str = col(
        "ok, damaged, unreadable (no permission to open it, or not read completely; nothing is known to be wrong), temporary "
        "(being written, or left behind) or foreign (not known to be torch's, or not a file)",
        words=("ok", "damaged", "unreadable", "temporary", "foreign"), default="ok")
    damage: str | None = col("what is wrong with it, or why it was not read", missing="nothing", default=None)
    guards_expr: str | None = col("guards that must hold for it", missing="none", torch_name="guards_expr", default=None)
    time_taken_ns: int | None = col(
        "compile time that a hit saves", unit="ns", missing="not stored", torch_name="_time_taken_ns", default=None)
    code_key: str | None = col(
        "key of the generated code that it needs: for an FX entry its wrapper, for C++ code the header it includes, for Triton's "
        ".ttir the kernel's file",
        missing="none is named", torch_name="cache_key", default=None)
    device_types: tuple[str, ...] = col("devices it runs on", torch_name="device_types", default=())
    cudagraphs_skipped: str | None = col(
        "why its graph cannot run as a CUDA graph, in torch's words", missing="it can run as one, or not an FX entry",
        torch_name="disabled_cudagraphs_reason", default=None)
    fx_keys: tuple[str, ...] = col(
        "FX keys that an AOTAutograd entry points to, or that a mega-cache contains", torch_name="fx_graph_cache_info",
        default=())
    fx_guards: tuple[str, ...] = col(
        "guards that the FX entries of those keys must have, empty text for no guards; an empty tuple if not recorded (before "
        "2.8)",
        torch_name="fx_graph_guard_expr", default=())
    fx_detail_sets: tuple[int, ...] = col(
        "codes of the sets of hash details of the FX graphs that a mega-cache contains, in the order of their keys; an empty tuple if "
        "not all are stored (before 2.8)",
        torch_name="_fx_graph_cache_debug_lines", default=())
    kernel_keys: tuple[str, ...] = col(
        "kernels, by the hash of their source: for a wrapper, those whose source it contains; for a C++ file, its own",
        default=())
    triton_hashes: tuple[str, ...] = col(
        "Triton directories that it refers to, as 64 hexadecimal digits: for an FX entry those bundled in it, for a best "
        "configuration its own",
        torch_name="kernel_hash, triton_cache_hash", default=())
    detail_set: int | None = col(
        "code of its set of hash details", missing="not stored (before 2.8, AOTAutograd)",
        torch_name="_fx_graph_cache_debug_lines", default=None)
    name: str | None = col(
        "what it belongs to: a kernel, a memoized function, a device", missing="its key is enough", default=None)
    detail: str | None = col("the content of the file in a few words", missing="nothing beyond the other columns", default=None)
    changed_time: Time | None = col(
        "last written, renamed, copied here or given other permissions, by the clock of the file system: unlike the modification "
        "time, no program can set it",
        unit="UTC", missing="the system does not have it", default=None)
    seen_time: Time | None = col("when its directory was read", unit="UTC", missing="not recorded", default=None)
    link: str | None = col("target of the link through which it was reached", missing="not reached through a link", default=None)
    source_code: str | None = None
    """The code that torch generated, if the entry contains it."""

    def take_times(self, found: os.stat_result) -> None:
        """Take its size and times from what the system says of it."""
        self.size_bytes, self.modified_time, self.changed_time = found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def take_content(self, other: EntryRow) -> None:
        """Take what another entry of equal content says."""
        for column in OF_CONTENT:
            setattr(self, column, getattr(other, column))

    @property
    def is_refused(self) -> bool:
        """Whether torch itself cannot load it: its bytes are not a complete pickle.

        torch may still load any other damaged entry: it compares neither names nor keys, and has no limits.
        """
        return self.damage is not None and self.damage.startswith(REFUSED)

    @property
    def is_loadable(self) -> bool | None:
        """Whether torch could load it; None if that is not known, as of what was not understood here."""
        if self.status == "ok" or self.damage == OTHER_NAME:
            return True
        is_none = self.status in ("temporary", "foreign") or (self.status == "damaged" and self.is_refused)
        return False if is_none else None


OF_CONTENT = (
    "guards_expr", "time_taken_ns", "code_key", "device_types", "cudagraphs_skipped", "fx_keys", "fx_guards", "kernel_keys",
    "triton_hashes", "detail_set", "name", "detail", "source_code",
)


@row("guards")
class Candidate:
    """One candidate: an entry under its key, distinguished from the others there by its guards."""

    entry: int = col("an id into entries")
    cache: str = col("aotautograd or fxgraph")
    cache_key: str = col("the key")
    modified_time: Time | None = col("when it was made", unit="UTC", missing="vanished while being read")
    guards_expr: str | None = col(
        "what must hold; see cachescope.holds", missing="no guards: it always fits", torch_name="guards_expr")
    symbols: tuple[str, ...] = col("the sizes in the guards")
    beside: tuple[str, ...] = col(
        "what else is under its key in its directory: damaged (an entry that cannot be read), other_guards, equal_guards (two "
        "processes raced, or it was made again), other_code; empty if it is alone")



@row("kernels", frozen=False)
class KernelRow:
    """One kernel of one FX graph entry."""

    entry: int = col("an id into entries")
    order: int = col("position among the kernels of the entry: those it defines, then library calls")
    kernel: str = col("its name")
    kind: str = col("cpp, triton or another backend that generates it; extern for a library's", torch_name="AsyncCompile")
    source_nodes: tuple[str, ...] = col(
        "graph nodes that it computes; empty if torch wrote no comment above it", torch_name="Source Nodes")
    aten_ops: tuple[str, ...] = col("ATen operators that it implements", torch_name="Original ATen")



@row("autotune", frozen=False)
class TimingRow:
    """One choice that max-autotune measured for one operator, with its inputs and a precision."""

    entry: int = col("the file, an id into entries")
    op: str = col("the operator")
    inputs: str = col("its inputs, as torch printed them")
    precision: str = col("float32 matmul precision", torch_name="torch.get_float32_matmul_precision")
    choice: str = col("the kernel, by the hash or name that torch gave it", torch_name="hash_key")
    time_ms: float | None = col("measured time", unit="ms", missing="the choice failed")
    is_failed: bool = col("whether it could not be run (stored as Infinity)")
    is_chosen: bool = col("whether it is the fastest", default=False)
    margin: float | None = col("time of the second best / its own", missing="not the fastest, or the only one", default=None)
    device_name: str | None = col(
        "the device on which it was measured", missing="not recorded: a CPU", torch_name="system.device.name", default=None)
    triton_version: str | None = col("version of Triton", missing="not recorded", torch_name="system.version.triton", default=None)
    runtime: str | None = col("cuda or hip", missing="neither", torch_name="system.version", default=None)
    runtime_version: str | None = col("its version", missing="neither", torch_name="system.version", default=None)
    file: EntryRow | None = None
    """The file, whose number is known once all sources are read."""
