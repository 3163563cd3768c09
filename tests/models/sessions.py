"""What is run of model_programs.py, and what of it is known before: which fields of a key each change can touch.

Data only; needs no torch. A session is several processes that share a cache directory, one after the other. What a
changed setting touches is known from what torch 2.13 puts into its keys (`FxGraphHashDetails` in
torch/_inductor/codecache.py and `AOTAutogradCacheDetails` in torch/_functorch/_aot_autograd/autograd_cache.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that a process does otherwise than the cold one."""

    settings: Mapping[str, object]
    fields: frozenset[str]
    """The fields of its keys that it touches, without what stands in brackets where it may touch any of them."""
    is_exact: bool = False
    """Whether every missed key differs in all of these, and in nothing else. Else: in some of these."""


# What a graph is told by. Whoever changes a graph can change each of these, and nothing else.
GRAPH: Final = frozenset({"gm", "example_inputs", "aot_config", "fx_kwargs[static_input_idxs]"})
# What else one model's keys differ in when it is trained, or run under autocast.
WAYS_OF_USING: Final = frozenset(
    {"autocast_state", "grad_enabled", "fx_kwargs[is_inference]", "fx_kwargs[is_backward]"}
)
FUSION: Final = "inductor_config[epilogue_fusion]"

CHANGES: Final[dict[str, Change]] = {
    "epilogue_fusion": Change({"epilogue_fusion": False}, frozenset({FUSION}), is_exact=True),
    "tag": Change({"tag": "other"}, frozenset({"cache_key_tag"}), is_exact=True),
    "threads": Change({"threads": 1}, frozenset({"cpp_runtime_thread_count"}), is_exact=True),
    "deterministic": Change(
        {"deterministic": True},
        # The last is of AOTAutograd keys only. Some operators trace otherwise where results must repeat.
        GRAPH
        | {"deterministic_algorithms_settings", "inductor_config[deterministic]", "deterministic_algorithms"},
    ),
    "max_autotune": Change(
        {"mode": "max-autotune-no-cudagraphs"},
        frozenset({"inductor_config[max_autotune]", "inductor_config[coordinate_descent_tuning]"}),
        is_exact=True,
    ),
    "reduce_overhead": Change(
        {"mode": "reduce-overhead"},
        frozenset({"inductor_config[triton.cudagraphs]", "fx_kwargs[cudagraphs]"}),
    ),
    "batch": Change({"batch": 3}, GRAPH),
    "length": Change({"length": 6}, GRAPH),
    "hidden": Change({"hidden": 48}, GRAPH),
    "layers": Change({"layers": 2}, GRAPH),
    "activation": Change({"activation": "gelu"}, GRAPH),
    "attention": Change({"attention": "eager"}, GRAPH),
    "dtype": Change({"dtype": "float64"}, GRAPH),
    "autocast_on": Change({"autocast": True}, GRAPH | {"autocast_state"}),
    "autocast_off": Change({"autocast": False}, GRAPH | {"autocast_state"}),
    "dynamic": Change({"dynamic": True}, GRAPH),
    "batch_and_fusion": Change({"batch": 3, "epilogue_fusion": False}, GRAPH | {FUSION}),
}


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a session."""

    name: str
    change: str | None = None
    programs: tuple[str, ...] = ()
    """Other programs than the session's."""


@dataclass(frozen=True, slots=True)
class Session:
    """Processes that share a cache directory."""

    name: str
    programs: tuple[str, ...]
    processes: tuple[Process, ...]
    settings: Mapping[str, object] = field(default_factory=dict)
    """Of every process."""


def session(name: str, programs: str, *changes: str, **settings: object) -> Session:
    """Cold, warm, and for each change a process with it and one without."""
    processes = [Process("cold"), Process("warm")]
    for number, change in enumerate(changes):
        processes.append(Process(change, change))
        if number == 0:
            processes.append(Process("back"))
    return Session(name, tuple(programs.split()), tuple(processes), settings)


def other_programs(name: str, programs: str, more: str) -> Session:
    """The same programs in another order, and then with others between them."""
    listed = tuple(programs.split())
    between = tuple(one for pair in zip(more.split(), listed, strict=True) for one in pair)
    processes = (
        Process("cold"),
        Process("reversed", programs=listed[::-1]),
        Process("between", programs=between),
        Process("all", programs=between),
    )
    return Session(name, listed, processes)


# Small enough to be kept as data: the quick tests read what was recorded of these.
SMALL: Final[tuple[Session, ...]] = (
    session("small_inference", "bert:infer timm_mixer:infer", "epilogue_fusion"),
    session("small_restart", "bert:dynamic"),
    session("small_forward", "gpt2:forward_only"),
    session("small_generation", "gpt2:generate", "dtype"),
    session("small_training", "llama:train", "batch"),
    session("small_breaks", "vit:graph_break bert:graph_break", "threads"),
    session("small_frozen", "tv_vit:freeze tv_vit:infer", "tag"),
    session("small_amp", "qwen3:amp", "autocast_off"),
)

SESSIONS: Final[tuple[Session, ...]] = (
    *SMALL,
    session("encoders", "bert:infer roberta:infer electra:infer distilbert:infer albert:infer",
        "epilogue_fusion", "activation"),
    session("generation", "gpt2:generate llama:generate qwen3:generate opt:generate", "tag", "dtype"),
    session("many_ways",
        "bert:infer bert:inference_mode bert:train bert:amp bert:graph_break bert:two_batches bert:dynamic",
        "threads", "batch"),
    session("timm", "timm_resnet:train timm_vit:train timm_mixer:infer timm_swin:infer timm_convnext:infer",
        "tag", "batch"),
    session("torchvision",
        "tv_resnet:channels_last tv_densenet:infer tv_vit:train tv_swin:infer tv_squeezenet:infer tv_retinanet_head:infer",
        "threads", "batch"),
    session("decoders", "gpt2:infer opt:infer llama:infer qwen2:infer qwen3:infer", "threads", "batch"),
    session("decoder_training", "gpt2:train llama:train mistral:train", "epilogue_fusion", "length"),
    session("seq2seq", "t5:infer bart:infer whisper:infer bart:train", "deterministic", "dtype"),
    session("pictures", "vit:train clip_vision:infer dinov2:infer clip_text:infer", "autocast_on", "hidden"),
    session("amp", "bert:amp vit:amp bert:amp_train timm_vit:amp_train", "autocast_off", "batch"),
    session("graph_breaks", "bert:graph_break vit:graph_break llama:graph_break tv_resnet:graph_break",
        "tag", "layers"),
    session("dynamic_sizes", "bert:two_batches gpt2:two_batches llama:dynamic timm_mixer:two_batches",
        "epilogue_fusion", "length"),
    session("modes", "bert:infer llama:fullgraph timm_vit:infer", "max_autotune", "reduce_overhead"),
    session("frozen", "bert:freeze vit:freeze timm_mixer:freeze gpt2:infer", "epilogue_fusion", "batch"),
    session("optimizers", "bert:optimizer_step timm_mixer:optimizer_step gpt2:optimizer_step",
        "epilogue_fusion", "hidden"),
    session("more_decoders", "mistral:infer gemma:infer gpt_neox:infer phi:infer", "attention", "activation"),
    session("remembered", "bert:infer gpt2:train timm_mixer:infer vit:graph_break", "batch_and_fusion",
        "layers", forget=False),
    session("kernels", "bert:infer timm_mixer:train", "epilogue_fusion", "batch", kernels=True),
    session("deep", "tv_mobilenet:infer timm_efficientnet:infer timm_poolformer:infer mamba:infer", "tag",
        "batch"),
    session("to_dynamic", "llama:infer timm_vit:infer bert:train", "dynamic"),
    other_programs("other_programs", "bert:infer llama:train vit:graph_break",
        "roberta:infer mistral:train dinov2:graph_break"),
)  # fmt: skip
