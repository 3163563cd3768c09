"""Frames of the contents of a cache directory."""

from __future__ import annotations

from typing import Final

from cachescope.columns import FLAG, REAL, TEXT, TIME, TUPLE, WHOLE, Column, Frame

ENTRIES: Final = Frame(
    "entries",
    "one file in a cache directory, one folder in it that could not be listed, or one value in a remote cache",
    (
        Column("entry", WHOLE, "number of the entry"),
        Column("cache", TEXT, 'what the file is: ``describe("entry_kinds")``'),
        Column("cache_key", TEXT, "the key, from the name of the file or of its folder; for a lock, what it locks",
               missing="the name contains none"),
        Column("path", TEXT, "path, as reached from the given source; in a remote cache, its address and the key there"),
        Column("root", TEXT, "the cache directory, or the remote cache"),
        Column("size_bytes", WHOLE, "size of the file; for a link that is not followed, of the link itself; for a value in a remote cache, the "
               "decoded size", "bytes", "a folder"),
        Column("modified_time", TIME, "last written", "UTC", "not available: in a remote cache"),
        Column("status", TEXT, "ok, damaged, unreadable (no permission to open it, or not read completely; nothing is known "
               "to be wrong), temporary (being written, or left behind) or foreign (not known to be torch's, or not a file)"),
        Column("damage", TEXT, "what is wrong with it, or why it was not read", missing="nothing"),
        Column("guards_expr", TEXT, "guards that must hold for it", missing="none", torch_name="guards_expr"),
        Column("time_taken_ns", WHOLE, "compile time that a hit saves", "ns", "not stored", "_time_taken_ns"),
        Column("code_key", TEXT, "key of the generated code that it needs: for an FX entry its wrapper, for C++ code the header it "
               "includes, for Triton's .ttir the kernel's file", missing="none is named", torch_name="cache_key"),
        Column("device_types", TUPLE, "devices it runs on", torch_name="device_types"),
        Column("cudagraphs_skipped", TEXT, "why its graph cannot run as a CUDA graph, in torch's words",
               missing="it can run as one, or not an FX entry", torch_name="disabled_cudagraphs_reason"),
        Column("fx_keys", TUPLE, "FX keys that an AOTAutograd entry points to, or that a mega-cache contains",
               torch_name="fx_graph_cache_info"),
        Column("fx_guards", TUPLE, "guards that the FX entries of those keys must have, empty text for no guards; an empty tuple if not "
               "recorded (before 2.8)", torch_name="fx_graph_guard_expr"),
        Column("kernel_keys", TUPLE, "kernels, by the hash of their source: for a wrapper, those whose source it contains; "
               "for a C++ file, its own"),
        Column("triton_hashes", TUPLE, "Triton directories that it refers to, as 64 hexadecimal digits: for an FX entry those bundled in "
               "it, for a best configuration its own", torch_name="kernel_hash, triton_cache_hash"),
        Column("detail_set", WHOLE, "code of its set of hash details",
               missing="not stored (before 2.8, AOTAutograd)", torch_name="_fx_graph_cache_debug_lines"),
        Column("name", TEXT, "what it belongs to: a kernel, a memoized function, a device", missing="its key is enough"),
        Column("detail", TEXT, "the content of the file in a few words", missing="nothing beyond the other columns"),
        Column("changed_time", TIME, "last written, renamed, copied here or given other permissions, by the clock of the file "
               "system: unlike the modification time, no program can set it", "UTC", "the system does not have it"),
        Column("seen_time", TIME, "when its directory was read", "UTC", "not recorded"),
        Column("link", TEXT, "target of the link through which it was reached", missing="not reached through a link"),
    ),
)  # fmt: skip

GUARDS: Final = Frame(
    "guards",
    "one candidate: an entry under its key, distinguished from the others there by its guards",
    (
        Column("entry", WHOLE, "an id into entries"),
        Column("cache", TEXT, "aotautograd or fxgraph"),
        Column("cache_key", TEXT, "the key"),
        Column("modified_time", TIME, "when it was made", "UTC", "vanished while being read"),
        Column("guards_expr", TEXT, "what must hold; see cachescope.holds", missing="no guards: it always fits",
               torch_name="guards_expr"),
        Column("symbols", TUPLE, "the sizes in the guards"),
        Column("beside", TUPLE, "what else is under its key in its directory: damaged (an entry that cannot be "
               "read), other_guards, equal_guards (two processes raced, or it was made again), other_code; empty if it is alone"),
    ),
)  # fmt: skip

DUPLICATES: Final = Frame(
    "duplicates",
    "one group of files of which a single one would be enough",
    (
        Column("entries", TUPLE, "the files, ids into entries, the oldest first"),
        Column("cache", TEXT, "their kind"),
        Column("cache_key", TEXT, "the key of the first"),
        Column("copies", WHOLE, "number of files in the group"),
        Column("size_bytes", WHOLE, "size of the first", "bytes"),
        Column("saved_bytes", WHOLE, "size of the others", "bytes"),
        Column("known_by", TEXT, "what was compared; no file is read for this"),
    ),
)

LOCKS: Final = Frame(
    "locks",
    "one lock file",
    (
        Column("entry", WHOLE, "the file, an id into entries"),
        Column("path", TEXT, "where it is"),
        Column("lock_held", FLAG, "whether a process held it at that moment",
               missing="it is gone, could not be opened, or the system does not tell"),
    ),
)  # fmt: skip

KERNELS: Final = Frame(
    "kernels",
    "one kernel of one FX graph entry",
    (
        Column("entry", WHOLE, "an id into entries"),
        Column("order", WHOLE, "position among the kernels of the entry: those it defines, then library calls"),
        Column("kernel", TEXT, "its name"),
        Column("kind", TEXT, "cpp, triton or another backend that generates it; extern for a library's",
               torch_name="AsyncCompile"),
        Column("source_nodes", TUPLE, "graph nodes that it computes; empty if torch wrote no comment above it",
               torch_name="Source Nodes"),
        Column("aten_ops", TUPLE, "ATen operators that it implements", torch_name="Original ATen"),
    ),
)  # fmt: skip

LINKS: Final = Frame(
    "links",
    "one reference from a file of a cache directory to another",
    (
        Column("parent", WHOLE, "the file that refers, an id into entries"),
        Column("parent_kind", TEXT, "its kind"),
        Column("child", WHOLE, "the file it refers to, an id into entries",
               missing="not found: it is gone, or is in a place that was not read"),
        Column("child_kind", TEXT, "its kind"),
        Column("child_key", TEXT, "the key by which it is referred to"),
        Column("known_by", TEXT, "where the reference was read"),
    ),
)  # fmt: skip

ORPHANS: Final = Frame(
    "orphans",
    "one file that nothing refers to, or that refers to something that is gone",
    (
        Column("entry", WHOLE, "the file, an id into entries"),
        Column("cache", TEXT, "its kind"),
        Column("reason", TEXT, "what is missing"),
    ),
)  # fmt: skip

REMOVABLE: Final = Frame(
    "removable",
    "one file that can go: without it, torch still finds every entry that it finds now, with everything the entry needs",
    (
        Column("entry", WHOLE, "the file, an id into entries"),
        Column("cache", TEXT, "its kind"),
        Column("path", TEXT, "where it is"),
        Column("size_bytes", WHOLE, "its size", "bytes"),
        Column("reason", TEXT, "why nothing needs it"),
    ),
)

AUTOTUNE: Final = Frame(
    "autotune",
    "one choice that max-autotune measured for one operator, with its inputs and a precision",
    (
        Column("entry", WHOLE, "the file, an id into entries"),
        Column("op", TEXT, "the operator"),
        Column("inputs", TEXT, "its inputs, as torch printed them"),
        Column("precision", TEXT, "float32 matmul precision", torch_name="torch.get_float32_matmul_precision"),
        Column("choice", TEXT, "the kernel, by the hash or name that torch gave it", torch_name="hash_key"),
        Column("time_ms", REAL, "measured time", "ms", "the choice failed"),
        Column("is_failed", FLAG, "whether it could not be run (stored as Infinity)"),
        Column("is_chosen", FLAG, "whether it is the fastest"),
        Column("margin", REAL, "time of the second best / its own", missing="not the fastest, or the only one"),
        Column("device_name", TEXT, "the device on which it was measured", missing="not recorded: a CPU",
               torch_name="system.device.name"),
        Column("triton_version", TEXT, "version of Triton", missing="not recorded", torch_name="system.version.triton"),
        Column("runtime", TEXT, "cuda or hip", missing="neither", torch_name="system.version"),
        Column("runtime_version", TEXT, "its version", missing="neither", torch_name="system.version"),
    ),
)  # fmt: skip

PAST_MISSES: Final = Frame(
    "past_misses",
    "one FX graph entry that was made although its graph had been stored before: a miss read from the directory",
    (
        Column("entry", WHOLE, "the entry that the miss made, an id into entries"),
        Column("cache_key", TEXT, "its key"),
        Column("graph", WHOLE, "number of the graph (equal gm, equal direction), in the order of first entries"),
        Column("direction", TEXT, "forward, backward or inference", missing="not recorded"),
        Column("made_time", TIME, "when it was made", "UTC", "vanished while being read"),
        Column("verdict", TEXT, "key_changed, or no_detail_differs; under the same key guard_failed for different guards, and "
               "entry_unavailable for equal ones: two processes raced, or it was made again"),
        Column("baseline_entry", WHOLE, "the earlier entry of the graph that it is compared with"),
        Column("is_order_known", FLAG, "whether modification times show that it was made after its baseline: "
               "copies and archives keep none, or only whole seconds"),
        Column("changed", TUPLE, "fields whose hash differs; empty under the same key"),
        Column("same_code", FLAG, "whether both have byte-identical generated source (equal code keys): then, going by the source, the "
               "changed fields were not needed for this graph", missing="a code key is not stored"),
        Column("same_binaries", FLAG, "whether the kernels compiled from that source are the same too (C++ compiler flags are not in the "
               "source); False: the changed fields do matter",
               missing="not known, or the source differs"),
        Column("same_code_known_by", TEXT, "what was compared"),
        Column("time_taken_ns", WHOLE, "compile time of the entry", "ns", "not stored"),
    ),
)  # fmt: skip
