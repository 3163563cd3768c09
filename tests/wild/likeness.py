"""What must be told of the scenarios of data/likeness_scenarios.py, in the notation of scenarios.py.

Written down from what was done. Which hash details differ between two lookups was read off torch's own lines.
"""

from scenarios import (
    COLD,
    COLD_FX,
    COLD_TRAINING,
    FUSION,
    HIT,
    HIT_FX,
    HIT_TRAINING,
    Run,
    changed,
    changed_fx,
)

GRAPH = changed("gm")
GRAPH_FX = changed_fx("gm")
X, W = "example_inputs[0]", "example_inputs[1]"
COLD_TRAINING_FX: Run = [*COLD_FX, "B full_miss first_lookup <"]
HIT_TRAINING_FX: Run = [*HIT_FX, "B hit"]
# The same operations: that inputs require gradients is no field, and what the graph returns besides differs.
OTHER_MODE = "key_changed fx_kwargs[is_inference] gm"
NOW_TRAINED: Run = [
    "A full_miss key_changed grad_enabled",
    f"F full_miss {OTHER_MODE} <",
    "B full_miss first_lookup <",
]
NOW_INFERRED: Run = NOW_TRAINED[:2]
NOW_TRAINED_FX: Run = [f"F full_miss {OTHER_MODE}", "B full_miss first_lookup <"]
NOW_INFERRED_FX: Run = NOW_TRAINED_FX[:1]

EXPECTED: dict[str, list[Run]] = {
    # Another program is no past of this one, whatever is alike.
    "two_programs": [COLD * 2, COLD, HIT * 2, HIT],
    "same_name_other_file": [COLD, COLD, HIT, HIT],
    "same_class_other_file": [COLD, COLD, HIT, HIT],
    "two_sequentials": [COLD, COLD, HIT, HIT],
    "same_file_other_function": [COLD, COLD],
    # One program edited is.
    "edited_program": [COLD, GRAPH, GRAPH, HIT],
    # Another model of the file: the operations are those that the first model had, so the graph is there.
    "edited_model": [COLD, GRAPH, ["A full_miss first_lookup", "F hit"], GRAPH],
    "two_programs_edited": [COLD, COLD, GRAPH, GRAPH],
    "same_graph_other_program": [COLD, HIT, changed(FUSION)],
    # What explains least is one step away.
    "nearest_graph": [COLD, changed(FUSION), GRAPH],
    "nearest_inputs": [COLD, changed(X), changed(X, W), changed(X)],
    "options_undone": [
        COLD,
        changed("inductor_config[reorder_for_locality]"),
        changed("inductor_config[split_reductions]"),
        changed("inductor_config[shape_padding]"),
    ],
    "infer_then_train": [COLD, NOW_TRAINED, HIT, HIT_TRAINING],
    "train_then_infer": [COLD_TRAINING, NOW_INFERRED, HIT_TRAINING, HIT],
    # That parameters require no gradients is written in the key; training differs from the first run in the mode alone.
    "inference_mode": [
        COLD,
        HIT,
        [
            "A full_miss key_changed grad_enabled " + " ".join(f"example_inputs[{n}]" for n in (0, 1, 3, 4)),
            "F hit",
        ],
        NOW_TRAINED,
    ],
    # The size becomes an input of its own.
    "recompiles_dynamic": [[*COLD, *changed(X, W, "gm", aot_only=("aot_config",))], HIT * 2],
    # Of one process, each compared with the call that differs least. Without gradients the last call is the
    # first one again, but for the mode.
    "recompiles": [
        [
            *COLD,
            *changed(X, W),
            *changed(X),
            *changed(X),
            f"A full_miss key_changed {X}",
            f"F full_miss {OTHER_MODE} <",
            "B full_miss first_lookup <",
            "A full_miss key_changed grad_enabled",
            "F hit",
        ],
        [*HIT * 4, *HIT_TRAINING, *HIT],
    ],
    "two_programs_fx": [COLD_FX * 2, COLD_FX, HIT_FX * 2, HIT_FX],
    "same_name_other_file_fx": [COLD_FX, COLD_FX, HIT_FX, HIT_FX],
    "two_sequentials_fx": [COLD_FX, COLD_FX, HIT_FX, HIT_FX],
    "same_file_other_function_fx": [COLD_FX, COLD_FX],
    "edited_model_fx": [COLD_FX, GRAPH_FX, HIT_FX, GRAPH_FX],  # see MAY_BE_NOT_KNOWN
    "edited_program_fx": [COLD_FX, GRAPH_FX, GRAPH_FX, HIT_FX],
    "infer_then_train_fx": [COLD_FX, NOW_TRAINED_FX, HIT_FX, HIT_TRAINING_FX],
    "train_then_infer_fx": [COLD_TRAINING_FX, NOW_INFERRED_FX, HIT_TRAINING_FX, HIT_FX],
    "recompiles_fx": [
        [*COLD_FX, *changed_fx(X, W), *changed_fx(X), *changed_fx(X), *NOW_TRAINED_FX, "F hit"],
        [*HIT_FX * 4, *HIT_TRAINING_FX, *HIT_FX],
    ],
}

# Of whose edits a trace may not tell: half of the code of an FX graph of one layer is another one when ReLU becomes SiLU.
MAY_BE_NOT_KNOWN = frozenset({"edited_model_fx"})

_FIRST = ("first_lookup", ())
_RACED = ("compiled_concurrently", ())
_PATH = ("key_changed", ("inductor_config[aot_inductor.output_path]",))
# Ranks that begin together in an empty directory: what may be told of a miss, with the fields. A rank is no other
# rank's past, but where a path holds the rank, that is why none can use what another one stores.
RANKS: dict[str, set[tuple[str, tuple[str, ...]]]] = {
    "two_ranks_cold": {_FIRST, _RACED},
    "two_ranks_cold_shapes": {_FIRST},
    "two_ranks_cold_paths": {_FIRST, _PATH},
    "two_ranks_cold_paths_fx": {_FIRST, _PATH},
    "four_ranks_cold_paths": {_FIRST, _PATH},
}

# Which run the misses of a run must be compared with, where another one is near as well.
COMPARED_WITH: dict[str, dict[int, int]] = {
    "nearest_graph": {1: 0, 2: 1},
    "nearest_inputs": {1: 0, 2: 0, 3: 2},
    "options_undone": {1: 0, 2: 1, 3: 2},
    "two_programs_edited": {2: 0, 3: 1},
    "same_graph_other_program": {2: 1},
}
