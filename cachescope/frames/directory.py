"""Frames of the contents of a cache directory."""

from __future__ import annotations

from typing import Final

from cachescope.columns import FLAG, REAL, TEXT, TIME, TUPLE, WHOLE, Column, Frame

ENTRIES: Final = Frame(
    "entries",
    "one file in a cache directory, one folder in it that may not be listed, or one value in a remote cache",
    (
        Column("entry", WHOLE, "number of the entry"),
        Column("cache", TEXT, 'what the file is: ``describe("entry_kinds")``'),
        Column("cache_key", TEXT, "the key, from the name of the file or of its folder; of a lock, what it is for",
               missing="the name holds none"),
        Column("path", TEXT, "path, as reached from the source given; in a remote cache, its address and the key there"),
        Column("root", TEXT, "the cache directory, or the remote cache"),
        Column("size_bytes", WHOLE, "size of the file; of a link that is not followed, its own; of a value in a remote cache, what torch "
               "makes of it", "bytes", "a folder"),
        Column("modified_time", TIME, "last written", "UTC", "not told: in a remote cache"),
        Column("status", TEXT, "ok, damaged, unreadable (it may not be opened, or was not read wholly; nothing is known "
               "to be wrong), temporary (being written, or left behind) or foreign (not known to be torch's, or no file)"),
        Column("damage", TEXT, "what is wrong with it, or why it was not read", missing="nothing"),
        Column("guards_expr", TEXT, "guards that must hold for it", missing="none", torch_name="guards_expr"),
        Column("time_taken_ns", WHOLE, "compile time it stands for", "ns", "not stored", "_time_taken_ns"),
        Column("code_key", TEXT, "key of generated code it needs: of an FX entry its wrapper, of C++ code the header it "
               "includes, of Triton's .ttir the kernel's file", missing="none is named", torch_name="cache_key"),
        Column("device_types", TUPLE, "devices it runs on", torch_name="device_types"),
        Column("cudagraphs_skipped", TEXT, "why its graph cannot run as a CUDA graph, in torch's words",
               missing="nothing stands against it, or not an FX entry", torch_name="disabled_cudagraphs_reason"),
        Column("fx_keys", TUPLE, "FX keys an AOTAutograd entry points to, or a mega-cache holds",
               torch_name="fx_graph_cache_info"),
        Column("fx_guards", TUPLE, "guards that the FX entries of those keys must have, empty for none; nothing where it does "
               "not say (before 2.8)", torch_name="fx_graph_guard_expr"),
        Column("kernel_keys", TUPLE, "kernels, by the hash of their source alone: those that a wrapper holds the source "
               "of, the one that a C++ file is"),
        Column("triton_hashes", TUPLE, "Triton directories it refers to, as 64 hexadecimal digits: those bundled in an "
               "FX entry, the one of a best configuration", torch_name="kernel_hash, triton_cache_hash"),
        Column("detail_set", WHOLE, "code of its set of hash details",
               missing="not stored (before 2.8, AOTAutograd)", torch_name="_fx_graph_cache_debug_lines"),
        Column("name", TEXT, "what it is of: a kernel, a memoized function, a device", missing="its key says all"),
        Column("detail", TEXT, "what the file says, in a few words", missing="nothing beyond the other columns"),
        Column("changed_time", TIME, "last written, renamed, copied here or given other rights, by the clock of the file "
               "system: other than the time of writing, no program can set it", "UTC", "the system does not tell"),
        Column("seen_time", TIME, "when its directory was read", "UTC", "not noted"),
        Column("link", TEXT, "where the link leads through which it was reached", missing="no link leads to it"),
    ),
)  # fmt: skip

GUARDS: Final = Frame(
    "guards",
    "one candidate: an entry under its key, told apart from the others there by its guards",
    (
        Column("entry", WHOLE, "an id into entries"),
        Column("cache", TEXT, "aotautograd or fxgraph"),
        Column("cache_key", TEXT, "the key"),
        Column("modified_time", TIME, "when it was made", "UTC", "vanished while being read"),
        Column("guards_expr", TEXT, "what must hold; see cachescope.holds", missing="no guards: it fits always",
               torch_name="guards_expr"),
        Column("symbols", TUPLE, "the sizes that the guards speak of"),
        Column("beside", TUPLE, "what else lies under its key in its directory: damaged (an entry that cannot be "
               "read), other_guards, equal_guards (raced for, or made again), other_code; empty where it is alone"),
    ),
)  # fmt: skip

DUPLICATES: Final = Frame(
    "duplicates",
    "one group of files of which one would do",
    (
        Column("entries", TUPLE, "the files, ids into entries, the oldest first"),
        Column("cache", TEXT, "their kind"),
        Column("cache_key", TEXT, "the key of the first"),
        Column("copies", WHOLE, "files of the group"),
        Column("size_bytes", WHOLE, "size of the first", "bytes"),
        Column("saved_bytes", WHOLE, "what the others take", "bytes"),
        Column("known_by", TEXT, "what was compared: no file is read for this"),
    ),
)

LOCKS: Final = Frame(
    "locks",
    "one lock file",
    (
        Column("entry", WHOLE, "the file, an id into entries"),
        Column("path", TEXT, "where it is"),
        Column("lock_held", FLAG, "whether a process held it at that moment",
               missing="it is gone, may not be opened, or this system does not tell"),
    ),
)  # fmt: skip

KERNELS: Final = Frame(
    "kernels",
    "one kernel of one FX graph entry",
    (
        Column("entry", WHOLE, "an id into entries"),
        Column("order", WHOLE, "place among the kernels of the entry: those it defines, then the calls of libraries"),
        Column("kernel", TEXT, "its name"),
        Column("kind", TEXT, "cpp, triton or another backend that generates it; extern for a library's",
               torch_name="AsyncCompile"),
        Column("source_nodes", TUPLE, "nodes of the graph it computes; empty where torch wrote no comment above it",
               torch_name="Source Nodes"),
        Column("aten_ops", TUPLE, "ATen operators it stands for", torch_name="Original ATen"),
    ),
)  # fmt: skip

LINKS: Final = Frame(
    "links",
    "one reference from a file of a cache directory to another",
    (
        Column("parent", WHOLE, "the file that refers, an id into entries"),
        Column("parent_kind", TEXT, "its kind"),
        Column("child", WHOLE, "the file it refers to, an id into entries",
               missing="it was not found: it is gone, or lies where nothing was read"),
        Column("child_kind", TEXT, "its kind"),
        Column("child_key", TEXT, "the key by which it is known"),
        Column("known_by", TEXT, "where the reference was read"),
    ),
)  # fmt: skip

ORPHANS: Final = Frame(
    "orphans",
    "one file whose other side is gone, or that nothing refers to",
    (
        Column("entry", WHOLE, "the file, an id into entries"),
        Column("cache", TEXT, "its kind"),
        Column("reason", TEXT, "what is missing"),
    ),
)  # fmt: skip

REMOVABLE: Final = Frame(
    "removable",
    "one file that can go: without it every entry that torch finds is still found, and has what it needs",
    (
        Column("entry", WHOLE, "the file, an id into entries"),
        Column("cache", TEXT, "its kind"),
        Column("path", TEXT, "where it is"),
        Column("size_bytes", WHOLE, "what it takes", "bytes"),
        Column("reason", TEXT, "why nothing needs it"),
    ),
)

AUTOTUNE: Final = Frame(
    "autotune",
    "one choice that max-autotune measured for one operator, its inputs and a precision",
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
        Column("device_name", TEXT, "the device it was measured on", missing="not said: a CPU",
               torch_name="system.device.name"),
        Column("triton_version", TEXT, "version of Triton", missing="not said", torch_name="system.version.triton"),
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
        Column("verdict", TEXT, "key_changed, or no_detail_differs; under one key guard_failed for other guards, and "
               "entry_unavailable for equal ones: raced for, or made again"),
        Column("baseline_entry", WHOLE, "the earlier entry of the graph that it is compared with"),
        Column("is_order_known", FLAG, "whether the times of modification tell that it was made after its baseline: "
               "copies and archives keep none, or whole seconds"),
        Column("changed", TUPLE, "fields whose hash differs; empty under one key"),
        Column("same_code", FLAG, "whether both have byte-identical generated source (equal code keys): the changed "
               "fields were not needed for this graph, as far as its source tells", missing="a code key is not stored"),
        Column("same_binaries", FLAG, "whether the kernels compiled from that source are the same too: flags of the C++ "
               "compiler are in no source; False: the changed fields do matter",
               missing="not known, or the source differs"),
        Column("same_code_known_by", TEXT, "what was compared"),
        Column("time_taken_ns", WHOLE, "compile time of the entry", "ns", "not stored"),
    ),
)  # fmt: skip
