"""Why lookups miss: the verdicts, their kinds, and what holds for each. No other module compares their words.

What depends on more than the kind is asked elsewhere, by an attribute of it: the order in which verdicts are given is that of
`cachescope.analysis.verdicts.judging`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, Protocol

from cachescope.terms import HOW_TO_RECORD, VLLM

Verdict = Literal[
    "first_lookup", "key_changed", "guard_failed", "entry_unavailable", "compiled_concurrently", "bypassed",
    "disabled", "details_not_recorded", "no_detail_differs",
]  # fmt: skip

# Meanings are shown to users: `cachescope.describe("verdicts")`.
VERDICTS: Final[dict[str, str]] = {
    "first_lookup": "nothing that was read before is of this graph, as at every cold start",
    "key_changed": "the same graph has a different key: a field's hash differs, is new or is gone",
    "guard_failed": "the key was found, but no stored entry's guards held",
    "entry_unavailable": "the same key had been stored, but was not found or could not be loaded",
    "compiled_concurrently": "another process was compiling the same key at that moment",
    "bypassed": "torch would not cache it, and gave a reason",
    "disabled": "caching was switched off",
    "details_not_recorded": "it missed, and nothing shows what was in the key",
    "no_detail_differs": "the keys differ, but every recorded field is equal",
}

NOT_KNOWN: Final = "not known"
"""The kind if no source records the reason."""
NOT_RECORDED: Final = "no lookup recorded"
"""A graph missed below an AOTAutograd key that had been looked up before, and no lookup of the graph is recorded of then."""
NEW_GRAPH: Final = "new graph"
"""The kind of a first lookup in a cache that others had filled."""
CONCURRENT: Final = "concurrent"
"""The kind of a first lookup while another run was compiling the same graph under another key."""
ELSEWHERE: Final = "perhaps in another directory"
"""The kind of a first lookup whose key lies in a directory in which its run did not look."""
OTHER_KEY: Final = "perhaps stored under another key"
"""The kind of a first lookup of whose graph a directory or a bundle holds another key, and nothing shows whether it was there."""
UPGRADE: Final = "upgrade: "
"""The prefix of the kind of a key that another torch made."""
RECOMPILE: Final = "compiled again: "
"""The prefix of the kind of what a function missed that was compiled again in one process, since a guard of its earlier compiles failed."""
SIZES: Final = "sizes or integers became "
"""The prefix of the kind of a key whose graph has more symbolic sizes and integers than before, or fewer."""
ANOTHER_TYPE: Final = "an argument is "
"""The prefix of the kind of a key whose graph takes an integer where it took a float, or the other way round."""
OTHER_INPUTS: Final = "other inputs of the same code: "
"""The prefix of the kind of a key whose inputs differ, and not what Dynamo traced but for what may follow from them."""
OTHERWISE: Final = "the same code, compiled otherwise: "
"""The prefix of the kind of a key whose graph alone differs, and not what Dynamo traced."""
ANOTHER_DEVICE: Final = "another default device: "
"""The prefix of the kind of a key whose graph was traced under another default device."""
SPLIT: Final = "split otherwise by DDPOptimizer: "
"""The prefix of the kind of a key whose graph is a part of what Dynamo traced, and what it traced is the same."""
SPLIT_OR_EDITED: Final = f"edited, or {SPLIT}"
"""The same where it is not recorded what Dynamo traced."""
NAMED_AT_RANDOM: Final = "a random name"
"""The kind of a changed AOTAutograd key that holds a name which each process draws."""
NAMED_AND_MORE: Final = f"{NAMED_AT_RANDOM}, and more"
"""The same where fields of its graphs' keys changed, too: the graphs may be found without that."""
BESIDE_A_MESH: Final = "beside a DeviceMesh"
"""The kind of a changed key that holds a DeviceMesh, of which torch records no hash that could be compared."""
IMPORTS: Final = "imports in another order"
"""The kind of a key whose inputs differ in nothing but where pickle found their memory format."""
EXPLAINED_BY_GRAPHS: Final = "as the graphs below it"
"""The kind of a changed AOTAutograd key that follows from the misses of its graphs, where others explain them."""
AOT_INDUCTOR: Final = "AOTInductor"
"""The kind of the verdict disabled where AOTInductor compiled, whatever the settings."""
BELOW_A_LOOKUP: Final = "below a lookup"
"""The kind of the verdict disabled where AOTAutograd's cache was asked in the same compile."""

Cost = Literal[
    "avoidable", "fields", "first", "at once", "guards", "sizes", "inputs", "upgrade", "not cached", "unknown"
]
"""What its compile was: ``avoidable`` one that had been made before; ``fields``: what changed says it; ``first``; ``at once``: made by
several processes; ``guards``: of other sizes or values; ``sizes``: of symbolic sizes, or of fixed ones again; ``inputs``: of other inputs; by another torch; of no cache; or not known."""
AdviceFrom = Literal["changes", "bypass", "save", "directory", "other directory", "access", "lines", "mesh"]

_NEW: Final[frozenset[Verdict]] = frozenset({"first_lookup", "details_not_recorded"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What holds for each miss of one kind of a verdict."""

    # In figures, a name of the palette: that of the outcome it explains; a cold start cannot be avoided and stays in the background.
    colour: str
    # The cause in a few words; ``{kind}``, ``{fields}``, ``{upgrade}`` and ``{more}`` are filled in. The second where other words are
    # used of vLLM's own lookups.
    summary: str
    vllm_summary: str = ""
    # What to do about it, where nothing more is certain; of vLLM's own lookups.
    advice: str | None = None
    vllm_advice: str | None = None
    # The facts that advice depends on, which `cachescope.analysis.verdicts.causes` looks at.
    advice_from: AdviceFrom | None = None
    cost: Cost = "unknown"
    by: str = ""  # what an avoidable compile was made by, where no field says it, or why one is not cached
    is_miss: bool = True  # whether it is counted as a miss; otherwise it never reached the cache
    # Whether nothing earlier is known to compare it with; and whether nothing is left to explain in that.
    may_be_first: bool = False
    is_first: bool = False
    is_beside: bool = False  # whether another run was compiling the same graph under another key
    is_other_key: bool = False  # whether another key of the graph was read, which may have been there
    is_unexplained: bool = False  # whether nothing that was read says why it missed
    is_by_guards: bool = False  # whether guards decided: one cause in whichever cache they failed
    is_upgrade: bool = False  # whether another torch did: one cause, however many fields follow
    # Whether a failed guard, or inputs of another kind, are one cause a function; and whether Dynamo traced the same code.
    is_of_function: bool = False
    is_same_code: bool = False
    is_graph_gone: bool = False  # whether an AOTAutograd entry was found, and not the FX entry it points to
    is_unavailable: bool = False  # whether the key was known, and no entry of it there
    is_pending: bool = False  # whether it follows from a miss of its key that is not yet compiled to the end
    is_below: bool = False  # whether it always follows from the AOTAutograd miss of the same compile
    is_shown_by_graphs: bool = False  # whether only the misses of the graphs below show what changed
    # Of an AOTAutograd miss: the verdicts of the FX misses of the same compile that it explains; whether it explains those of the same
    # verdict and kind; those whose fields changed above, too, or are of the graph; and the verdicts of a backward graph that is new
    # because this is the miss of its forward graph.
    explains: frozenset[Verdict] = frozenset()
    explains_same_kind: bool = False
    explains_fields: bool = False
    explains_backward: frozenset[Verdict] = frozenset()
    may_differ_more: bool = False  # whether more may differ than what is recorded of the keys
    is_advice_in_reason: bool = False  # whether the reason says already what to do
    # Why its misses stay misses whatever fields are left out of the key; None where fields decide.
    why_still: str | None = None
    # The title of misses that a directory alone shows; the second if the entry before lies in another one.
    in_directory: str = ""
    in_other_directory: str = ""
    beside_in_directory: str = ""  # what is stored beside an entry that such a miss made

    @property
    def is_told_by_reason(self) -> bool:
        """Whether its title is not what changed: of a recompile, and of a graph that may be another form of what it is compared with."""
        return self.is_of_function or self.may_be_first


_FIRST: Final = Kind(
    colour="grey",
    summary="first lookups (cold start)",
    cost="first",
    may_be_first=True,
    is_first=True,
    explains=_NEW,
    explains_backward=_NEW,
    why_still="not known: they may be first lookups, or changed graphs",
)
_DOUBTFUL: Final = replace(_FIRST, cost="unknown", is_first=False, is_unexplained=True)
_CHANGED: Final = Kind(
    colour="vermillion",
    summary="{fields}",
    advice_from="changes",
    cost="fields",
    explains=_NEW,
    explains_fields=True,
    explains_backward=_NEW,
    beside_in_directory="its graph is stored under another key too",
)
_OF_FUNCTION: Final = replace(_CHANGED, summary="{kind}", is_of_function=True)
_OF_RECOMPILES: Final = "torch compiles a function again for each value of what its guards compare: one value in every call, or a tensor in its place, may spare it."
_OF_SPLITS: Final = "Its parts follow from DDP's buckets of gradients: keep optimize_ddp, bucket_cap_mb, and which parameters need gradients, as they were."
_OF_DEVICES: Final = replace(_CHANGED, summary="{kind}", advice="Set by torch.set_default_device(…), and by `with torch.device(…)` around the call: torch writes another graph of the same code under it.", advice_from=None, cost="inputs")  # fmt: skip
_PREFIXES: Final = (UPGRADE, RECOMPILE, SIZES, ANOTHER_TYPE, OTHER_INPUTS, OTHERWISE, ANOTHER_DEVICE, SPLIT, SPLIT_OR_EDITED)  # fmt: skip
_UNAVAILABLE: Final = Kind(
    colour="blue",
    summary="entry unavailable: {kind}",
    vllm_summary="vLLM: entry unavailable: {kind}",
    cost="avoidable",
    is_unavailable=True,
    explains_same_kind=True,
    why_still="the key is the same; its entry was not there ({kind})",
    in_directory="one key, equal guards: raced for, or made again",
    in_other_directory="one key, equal guards: what had been stored lies in another directory",
    beside_in_directory="its key is stored with equal guards too: raced for, or made again",
)
# A result that was not stored is compiled again, with its graphs; the trace of a killed process has no record of those.
_COMPILED_AGAIN: Final = replace(_UNAVAILABLE, explains=_NEW)
_CUT_SHORT: Final = replace(_COMPILED_AGAIN, cost="first")  # what had been compiled before had not ended
_CONCURRENT: Final = Kind(
    colour="sky",
    summary="compiled by several processes at once",
    by="starting at once",
    advice="Every process compiled the same graph because none had finished. Let one rank compile first (a barrier after the first step), or ship a cache made beforehand.",
    vllm_advice="Let one engine compile before the others start, or ship a torch_compile_cache made beforehand.",
    cost="at once",
    explains=frozenset({"compiled_concurrently"}),
)
_BYPASSED: Final = Kind(
    colour="purple",
    summary="bypassed: {kind}",
    by="bypassed",
    advice_from="bypass",
    cost="not cached",
    is_miss=False,
    explains_same_kind=True,
    why_still="the cache was bypassed, whatever the key",
)
_DISABLED: Final = Kind(
    colour="grey",
    summary="caching was switched off",
    by="switched off",
    advice="TORCHINDUCTOR_FORCE_DISABLE_CACHES, TORCH_COMPILE_FORCE_DISABLE_CACHES, torch.compiler.config.force_disable_caches, TORCHINDUCTOR_FX_GRAPH_CACHE=0 and torch._inductor.config.fx_graph_cache = False switch caching off: unset what is set. AOTInductor (torch._inductor.aot_compile, aoti_compile_and_package) never caches.",
    vllm_advice="VLLM_DISABLE_COMPILE_CACHE=1 switches it off: unset it.",
    cost="not cached",
    is_miss=False,
    why_still="no cache was asked, whatever the key",
)

ONE_DIRECTORY: Final = "Use one directory: point TORCHINDUCTOR_CACHE_DIR to it in every process, or copy the cache there."  # fmt: skip
# By verdict and kind; what holds for the kinds of a verdict that have no line of their own stands at the empty kind.
KINDS: Final[dict[tuple[str, str], Kind]] = {
    ("first_lookup", ""): _FIRST,
    ("first_lookup", NEW_GRAPH): replace(_FIRST, summary="first lookups (new graphs)"),
    ("first_lookup", CONCURRENT): replace(
        _FIRST,
        summary="first lookups (while another run compiled the same graph under another key)",
        is_beside=True,
    ),
    ("first_lookup", VLLM): replace(_FIRST, summary="first starts of vLLM (cold start)"),
    ("first_lookup", NOT_KNOWN): replace(
        _DOUBTFUL,
        summary="first lookups, or changed graphs",
        vllm_summary="first starts of vLLM, or changed factors",
    ),
    ("first_lookup", OTHER_KEY): replace(
        _DOUBTFUL, summary="first lookups, or changed keys", is_other_key=True
    ),
    ("first_lookup", ELSEWHERE): replace(
        _DOUBTFUL,
        summary="first lookups, or what lay elsewhere",
        advice="If it was to use what lies there: load a mega-cache before the first compile (torch.compiler.load_cache_artifacts); "
        f"of directories, {ONE_DIRECTORY[0].lower()}{ONE_DIRECTORY[1:]}",
    ),
    ("first_lookup", RECOMPILE): replace(
        _FIRST,
        summary="{kind}",
        advice=_OF_RECOMPILES,
        advice_from="changes",
        cost="guards",
        is_first=False,
        is_of_function=True,
    ),
    ("key_changed", ""): _CHANGED,
    ("key_changed", RECOMPILE): replace(_OF_FUNCTION, advice=_OF_RECOMPILES, cost="guards"),
    ("key_changed", SIZES): replace(_OF_FUNCTION, cost="sizes"),
    ("key_changed", ANOTHER_TYPE): replace(_OF_FUNCTION, cost="guards"),
    ("key_changed", OTHER_INPUTS): replace(_OF_FUNCTION, cost="inputs", is_same_code=True),
    ("key_changed", OTHERWISE): replace(_OF_FUNCTION, cost="unknown", is_same_code=True),
    ("key_changed", ANOTHER_DEVICE): _OF_DEVICES,
    ("key_changed", SPLIT): replace(
        _OF_FUNCTION, cost="avoidable", by="another split of DDPOptimizer", advice=_OF_SPLITS
    ),
    ("key_changed", SPLIT_OR_EDITED): replace(_OF_FUNCTION, cost="unknown", advice=_OF_SPLITS),
    ("key_changed", UPGRADE): replace(
        _CHANGED,
        summary="{upgrade}; {more} fields follow",
        cost="upgrade",
        is_upgrade=True,
        explains_same_kind=True,
        explains_fields=False,
    ),
    ("key_changed", NAMED_AT_RANDOM): replace(_CHANGED, cost="not cached", by="a random name in the key"),
    ("key_changed", NAMED_AND_MORE): replace(_CHANGED, cost="unknown"),
    ("key_changed", BESIDE_A_MESH): replace(_CHANGED, may_differ_more=True),
    ("key_changed", IMPORTS): replace(_CHANGED, summary=IMPORTS, cost="avoidable", by=IMPORTS),
    ("key_changed", EXPLAINED_BY_GRAPHS): replace(
        _CHANGED, cost="unknown", is_shown_by_graphs=True, explains=frozenset(), explains_fields=False
    ),
    ("guard_failed", ""): Kind(
        colour="orange",
        summary="guards did not hold",
        advice="A key holds one entry for each set of guards (in AOTAutograd's cache since torch 2.8): call it once with a size of each range, and the entries of all ranges are there. A guard may come from a branch on the size in the program.",
        cost="guards",
        is_by_guards=True,
        explains=frozenset({"guard_failed", "details_not_recorded"}),
        why_still="the key was found and no guards held, so no field of the key decides it",
        in_directory="other guards under one key",
        beside_in_directory="its key is stored under other guards too",
    ),
    ("entry_unavailable", ""): _UNAVAILABLE,
    ("entry_unavailable", "load error"): replace(
        _UNAVAILABLE,
        by="an entry that could not be loaded",
        advice_from="access",
        advice="torch found the entry and could not load it, and says why. Delete the files under that key if the error stays: the next compile stores a new one.",
        vllm_advice="vLLM compiles again and stores the model anew. If the error stays, remove the folder that it names.",
    ),
    ("entry_unavailable", "damaged"): replace(
        _UNAVAILABLE,
        by="a damaged entry",
        advice="torch never removes a damaged entry: each lookup reads it again and warns. Delete the files under that key (cachescope entries DIR lists the damaged ones): the next compile stores a sound one.",
    ),
    ("entry_unavailable", "graph entry"): replace(
        _UNAVAILABLE,
        by="an entry whose graph was gone",
        advice="An AOTAutograd entry needs the FX entry that it points to: prune and copy aotautograd/ and fxgraph/ together.",
        is_graph_gone=True,
    ),
    ("entry_unavailable", "another directory"): replace(
        _UNAVAILABLE,
        by="another directory",
        advice=ONE_DIRECTORY,
        advice_from="other directory",
        vllm_advice="Use one directory: point VLLM_CACHE_ROOT to it in every process, or copy torch_compile_cache there.",
    ),
    ("entry_unavailable", "deleted"): replace(
        _UNAVAILABLE,
        by="a deleted entry",
        advice="Something may have cleared or pruned the directory since.",
        advice_from="directory",
    ),
    ("entry_unavailable", "gone or damaged"): replace(
        _UNAVAILABLE,
        by="an entry that was gone or damaged",
        advice="Something may have cleared or pruned the directory since, or damaged the entry. A trace does not show which: read the directory or the text log with it.",
        advice_from="directory",
    ),
    ("entry_unavailable", "failed compile"): replace(
        _COMPILED_AGAIN,
        by="failed",
        advice="Nothing is stored of a compile that fails, so that it is compiled again each time until its error is mended.",
        cost="not cached",
    ),
    ("entry_unavailable", "interrupted"): replace(
        _CUT_SHORT, advice="An entry is stored when its compile ends, and that one was interrupted."
    ),
    ("entry_unavailable", "process ended"): replace(
        _CUT_SHORT, advice="An entry is stored when its compile ends, and the process ended before."
    ),
    ("entry_unavailable", "not saved"): replace(
        _UNAVAILABLE,
        by="an entry that could not be saved",
        advice="torch could not write the entry. It writes below TORCHINDUCTOR_CACHE_DIR, into locks/ as well: the process must be allowed to write there, and there must be room.",
        vllm_advice="vLLM says why it could not save the model, and compiles it at each start until that is mended.",
    ),
    ("entry_unavailable", "never stored"): replace(
        _UNAVAILABLE, by="an entry that was never stored", advice_from="save"
    ),
    ("entry_unavailable", "not stored yet"): replace(
        _UNAVAILABLE, cost="first", is_pending=True, explains=_NEW | {"key_changed"}
    ),
    ("entry_unavailable", "restarted compile"): replace(
        _UNAVAILABLE,
        by="restarted",
        advice="Nothing was compiled: torch gives this attempt up in every process, and the next one has its own key.",
        cost="not cached",
    ),
    ("entry_unavailable", "compiled autograd"): replace(
        _COMPILED_AGAIN,
        by="under compiled autograd",
        advice="AOTAutograd stores no entry of a training graph whose backward pass compiled autograd compiles: only the FX cache serves its graphs.",
        cost="not cached",
    ),
    ("entry_unavailable", "graph bypassed"): replace(
        _UNAVAILABLE, by="bypassed", cost="not cached", advice="Lift the bypass of its graph."
    ),
    ("entry_unavailable", "partly stored"): replace(_UNAVAILABLE, by="an entry that was stored in part"),
    ("entry_unavailable", NOT_KNOWN): replace(
        _COMPILED_AGAIN,
        advice="Next time, cachescope record -- COMMAND keeps what may show it: the trace, the text log, and how the process ended.",
        # Whether it had been stored, and where, is not known.
        cost="unknown",
        is_unexplained=True,
        why_still="the key is the same and its entry was not there; why is not known",
    ),
    ("entry_unavailable", NOT_RECORDED): replace(
        _UNAVAILABLE, cost="unknown", is_unexplained=True, is_below=True
    ),
    ("compiled_concurrently", ""): _CONCURRENT,
    ("compiled_concurrently", "another directory"): replace(
        _CONCURRENT,
        summary="compiled by several processes at once, in a directory each",
        advice="Point TORCHINDUCTOR_CACHE_DIR to one directory and let one rank compile first, or copy a cache made beforehand to each.",
        advice_from="other directory",
        why_still="the key is the same, and was still being compiled, for another cache directory",
    ),
    ("bypassed", ""): _BYPASSED,
    # What AOTAutograd says where the FX graph cache is off, which gives no reason itself.
    ("bypassed", "FX graph cache is not enabled"): replace(_BYPASSED, explains=frozenset({"disabled"})),
    ("disabled", ""): _DISABLED,
    ("disabled", AOT_INDUCTOR): replace(
        _DISABLED,
        summary="AOTInductor asks no cache",
        by="AOTInductor",
        advice="No setting changes it. AOTInductor (torch._inductor.aot_compile, aoti_compile_and_package) writes a library of its own: keep that and load it, as with torch._inductor.aoti_load_package, and the graph is not compiled again.",
    ),
    ("disabled", BELOW_A_LOOKUP): replace(
        _DISABLED,
        summary="the FX graph cache was not asked, below a lookup of AOTAutograd's",
        advice="Nothing was switched off. What is compiled ahead of time (torch.compile(…).aot_compile) and torch._functorch.config.bundled_autograd_cache keep the graph in AOTAutograd's entry; the backend of another device may support no caching.",
        cost="unknown",
        is_below=True,
    ),
    ("details_not_recorded", ""): Kind(
        colour="yellow",
        summary="hash details not recorded ({kind})",
        vllm_summary="factors not recorded ({kind})",
        advice=f"{HOW_TO_RECORD[0].upper()}{HOW_TO_RECORD[1:]}.",
        advice_from="lines",
        is_unexplained=True,
        # torch/_functorch/_aot_autograd/autograd_cache.py, `AOTAutogradCacheDetails` (2.5 to 2.15): it has all fields of an FX key.
        is_shown_by_graphs=True,
        explains=frozenset({"details_not_recorded"}),
        is_advice_in_reason=True,
        why_still="not known: the fields of its keys were not recorded",
    ),
    ("no_detail_differs", ""): Kind(
        colour="yellow",
        summary="the keys differ and no recorded field does",
        advice="Equal fields and another key may come from what the list of fields cannot show of a pickled object: shared references, or the order of a set. If the key is the same in two processes with PYTHONHASHSEED=0, it is the order of a set.",
        advice_from="mesh",
        is_unexplained=True,
        why_still="not known: the keys differ and no recorded field does",
        in_directory="the keys differ, and no recorded field does",
        beside_in_directory="its graph is stored under another key too",
    ),
}


class Judged(Protocol):
    """What has a verdict: a reason, a miss, a cause."""

    @property
    def verdict(self) -> str:
        """Its verdict."""

    @property
    def kind(self) -> str:
        """What distinguishes causes of that verdict."""


def kind_of(judged: Judged) -> Kind:
    """What holds for the verdict and the kind of something."""
    verdict, kind = judged.verdict, judged.kind
    prefix = next(filter(kind.startswith, _PREFIXES), "")
    return KINDS.get((verdict, kind)) or KINDS.get((verdict, prefix)) or KINDS[verdict, ""]
