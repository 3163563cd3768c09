"""What every lookup of every recorded scenario must be called, written down by hand from what was changed.

One string is one lookup in the order in which torch made it: cache (A AOTAutograd, F FX, B FX backward), the
outcome, the verdict, the changed fields in any order, and ``<`` where it only follows from another miss.
"""

Run = list[str]

COLD: Run = ["A full_miss first_lookup", "F full_miss first_lookup <"]
COLD_FX: Run = ["F full_miss first_lookup"]
HIT: Run = ["A hit", "F hit"]
HIT_FX: Run = ["F hit"]
COLD_TRAINING: Run = [*COLD, "B full_miss first_lookup <"]
HIT_TRAINING: Run = [*HIT, "B hit"]
BYPASS: Run = ["A bypass bypassed", "F bypass bypassed <"]


def changed(*fields: str, aot_only: tuple[str, ...] = (), fx_only: tuple[str, ...] = ()) -> Run:
    """An AOTAutograd miss by some fields, and the FX miss that follows from it."""
    return [
        " ".join(["A full_miss key_changed", *fields, *aot_only]),
        " ".join(["F full_miss key_changed", *fields, *fx_only, "<"]),
    ]


def changed_fx(*fields: str) -> Run:
    """An FX miss by some fields, with the AOTAutograd cache off."""
    return [" ".join(["F full_miss key_changed", *fields])]


FUSION = "inductor_config[epilogue_fusion]"
DETERMINISTIC = ("deterministic_algorithms_settings", "inductor_config[deterministic]")
GUARD: Run = ["A guard_miss guard_failed", "F guard_miss guard_failed <"]
GUARD_FX: Run = ["F guard_miss guard_failed"]
# The AOTAutograd entry is found, the FX entry it points to is not; then the graph is looked up by itself.
GRAPH_ENTRY_GONE: Run = [
    "A full_miss entry_unavailable <", "F full_miss entry_unavailable", "F full_miss entry_unavailable <",
]  # fmt: skip
COMBINED = ("example_inputs[0]", "cache_key_tag", *DETERMINISTIC, FUSION)
FOUR = [*COLD, *COLD, *COLD, *COLD]
FOUR_FX = [*COLD_FX, *COLD_FX, *COLD_FX, *COLD_FX]

SCENARIOS: dict[str, list[Run]] = {
    "cold_warm": [COLD, HIT, HIT],
    "cold_warm_fx": [COLD_FX, HIT_FX, HIT_FX],
    "config_flip": [COLD, changed(FUSION), HIT],
    "config_flip_fx": [COLD_FX, changed_fx(FUSION), HIT_FX],
    "config_env": [COLD, changed("inductor_config[coordinate_descent_tuning]"), HIT],
    "deterministic": [COLD, changed(*DETERMINISTIC, aot_only=("deterministic_algorithms",)), HIT],
    "isolation_context": [
        COLD, changed(*DETERMINISTIC, "cuda_matmul_settings", aot_only=("deterministic_algorithms",))],
    "matmul_precision": [COLD, changed("cuda_matmul_settings"), changed("cuda_matmul_settings")],
    "inputs": [
        COLD,
        changed("example_inputs[0]"),
        changed("example_inputs[0]", "example_inputs[1]"),
        # Compared with the first run, from which it differs in this input alone.
        changed("example_inputs[0]"),
        HIT,
    ],
    "inputs_fx": [
        COLD_FX, changed_fx("example_inputs[0]"), changed_fx("example_inputs[0]", "example_inputs[1]"),
        changed_fx("example_inputs[0]"), HIT_FX],
    "graph_relu_tanh": [COLD, changed("gm")],
    "graph_relu_tanh_fx": [COLD_FX, changed_fx("gm")],
    "graph_constant": [COLD, changed("gm")],
    "captured_tensor": [COLD, changed("gm")],
    "captured_tensor_fx": [COLD_FX, changed_fx("gm")],
    "rename_argument": [COLD, ["A full_miss key_changed aot_config", "F hit"]],
    "autograd_config": [COLD, ["A full_miss key_changed autograd_config", "F hit"], HIT],
    "grad_mode": [
        COLD_TRAINING,
        # The graph of inference is another form of the forward graph of training.
        ["A full_miss key_changed grad_enabled", "F full_miss key_changed gm fx_kwargs[is_inference] <"],
        HIT_TRAINING,
    ],
    "dynamic_guards": [COLD, GUARD, HIT, HIT],
    "dynamic_guards_fx": [COLD_FX, GUARD_FX, HIT_FX, HIT_FX],
    "cache_key_tag": [COLD, changed("cache_key_tag"), changed("cache_key_tag"), HIT],
    "bypass_custom_pass": [BYPASS, BYPASS, COLD, changed("post_grad_custom_post_pass")],
    "bypass_custom_pass_fx": [
        ["F bypass bypassed"], ["F bypass bypassed"], COLD_FX, changed_fx("post_grad_custom_post_pass")],
    # Two reasons: AOTAutograd refuses frozen graphs, FX cannot pickle their weights.
    "bypass_freezing": [COLD, *[["A bypass bypassed", "F bypass bypassed"]] * 2],
    "entry_deleted": [COLD, HIT, GRAPH_ENTRY_GONE, HIT],
    "entry_truncated": [COLD, HIT, GRAPH_ENTRY_GONE, HIT],
    "entry_garbage": [COLD, HIT, GRAPH_ENTRY_GONE, HIT],
    "entry_deleted_fx": [COLD_FX, HIT_FX, ["F full_miss entry_unavailable"], HIT_FX],
    "aot_entry_deleted": [COLD, HIT, ["A full_miss entry_unavailable", "F hit"], HIT],
    "aot_entry_truncated": [COLD, HIT, ["A full_miss entry_unavailable", "F hit"], HIT],
    "other_directory": [COLD, ["A full_miss entry_unavailable", "F full_miss entry_unavailable <"], HIT],
    # A training graph whose backward is never compiled is never stored.
    "forward_only": [COLD, ["A full_miss entry_unavailable", "F hit"]],
    "four_graphs": [FOUR, [*HIT, *changed("gm"), *HIT, *HIT], HIT * 4],
    "four_graphs_fx": [FOUR_FX, [*HIT_FX, *changed_fx("gm"), *HIT_FX, *HIT_FX], HIT_FX * 4],
    "new_graph": [FOUR, [*HIT, *COLD, *HIT, *HIT, *HIT]],
    "new_graph_fx": [FOUR_FX, [*HIT_FX, *COLD_FX, *HIT_FX, *HIT_FX, *HIT_FX]],
    "tour": [
        FOUR, HIT * 4, [*HIT, *changed("gm"), *HIT, *HIT], changed(FUSION) * 4, HIT * 4,
        changed("cpp_runtime_thread_count") * 4],
    "training": [
        COLD_TRAINING, HIT_TRAINING, [*changed(FUSION), f"B full_miss key_changed {FUSION} <"], HIT_TRAINING],
    "training_fx": [
        [*COLD_FX, "B full_miss first_lookup <"], [*HIT_FX, "B hit"],
        [*changed_fx(FUSION), f"B full_miss key_changed {FUSION} <"], [*HIT_FX, "B hit"]],
    "trace_only": [COLD, HIT, ["A full_miss details_not_recorded <", f"F full_miss key_changed {FUSION}"]],
    # Each rank has an output path of its own in its key.
    "rank_in_config": [COLD, *[changed("inductor_config[aot_inductor.output_path]")] * 3],
    "force_disabled": [
        COLD, ["F disabled disabled"], ["F disabled disabled"], ["A bypass bypassed", "F disabled disabled <"],
        HIT],
    "combined": [COLD, changed(*COMBINED, aot_only=("deterministic_algorithms",))],
    "combined_fx": [COLD_FX, changed_fx(*COMBINED)],
    # Compared with the run before, which shares the config.
    "three_changes": [
        COLD, changed(FUSION),
        changed("example_inputs[0]", *DETERMINISTIC, aot_only=("deterministic_algorithms",))],
    "in_process": [[*COLD, *changed(FUSION), *HIT, *changed("inductor_config[shape_padding]")], HIT * 4],
    "cpp_wrapper": [
        COLD,
        changed("inductor_config[cpp_wrapper]", "inductor_config[triton.autotune_at_compile_time]",
            "inductor_config[triton.store_cubin]", fx_only=("fx_kwargs[cpp_wrapper]",)),
        HIT,
    ],
    "text_short": [COLD, changed(FUSION), HIT],
    "logs_out": [COLD, changed(FUSION), HIT],
}  # fmt: skip

_OTHER_VERSIONS = (
    "cold_warm", "cold_warm_fx", "config_flip", "config_flip_fx", "dynamic_guards", "dynamic_guards_fx",
    "training", "bypass_custom_pass", "entry_deleted", "graph_relu_tanh", "combined", "trace_only", "inputs",
)  # fmt: skip

# Until 2.9 deterministic algorithms did not set a config of the same name.
COMBINED_2_6 = ("example_inputs[0]", "cache_key_tag", "deterministic_algorithms_settings", FUSION)
EXPLAINED_BY_TRACE = [COLD, HIT, changed(FUSION)]

VERSIONS: dict[str, dict[str, list[Run]]] = {
    "2.13.0": SCENARIOS,
    "2.15.0": {name: SCENARIOS[name] for name in _OTHER_VERSIONS},
    # Through 2.11 traces hold the details of AOTAutograd keys whatever the loggers are set to.
    "2.10.0": {name: SCENARIOS[name] for name in _OTHER_VERSIONS} | {"trace_only": EXPLAINED_BY_TRACE},
    "2.6.0": {name: SCENARIOS[name] for name in _OTHER_VERSIONS}
    | {
        "trace_only": EXPLAINED_BY_TRACE,
        "combined": [COLD, changed(*COMBINED_2_6, aot_only=("deterministic_algorithms",))],
        # The graph is looked up through the AOTAutograd entry, and again.
        "dynamic_guards": [COLD, [*GUARD, "F guard_miss guard_failed <"], HIT, HIT],
        # AOTAutograd gives no reason, FX does.
        "bypass_custom_pass": [
            *[["A bypass bypassed", "F bypass bypassed"]] * 2,
            COLD,
            changed("post_grad_custom_post_pass"),
        ],
    },
}
_FEW = ("cold_warm", "config_flip", "training", "dynamic_guards", "combined")
# Keys have the tag from 2.6 on.
_COMBINED = {
    "2.5.1": tuple(set(COMBINED_2_6) - {"cache_key_tag"}),
    **dict.fromkeys(("2.7.1", "2.8.0", "2.9.1"), COMBINED_2_6),
    **dict.fromkeys(("2.11.0", "2.12.1", "2.14.1"), COMBINED),
}
# By release, of which a few scenarios are recorded, in one archive.
RELEASES: dict[str, dict[str, list[Run]]] = {
    release: {name: SCENARIOS[name] for name in _FEW}
    | {"combined": [COLD, changed(*fields, aot_only=("deterministic_algorithms",))]}
    for release, fields in _COMBINED.items()
}


def expectation(version: str, name: str, way: str) -> list[Run] | None:
    """What must be told when a scenario is read one way; None where that way has no file."""
    expected = VERSIONS[version][name]
    if way == "text":
        return _in_text_logs(version, name, expected)
    if way == "trace" and (version, name) == ("2.6.0", "dynamic_guards"):
        return [COLD, GUARD, HIT, HIT]
    if way == "trace" and (version, name) == ("2.6.0", "entry_deleted"):
        return [COLD, HIT, ["A full_miss entry_unavailable", "F full_miss entry_unavailable <"], HIT]
    return expected


def _in_text_logs(version: str, name: str, expected: list[Run]) -> list[Run] | None:
    if name == "trace_only":
        return None
    if name == "force_disabled":
        # A process whose caches are off writes nothing, and a disabled FX cache leaves no line.
        return [COLD, ["A bypass bypassed"], HIT]
    if (version, name) == ("2.6.0", "bypass_custom_pass"):
        # 2.6 logs an AOTAutograd bypass only when it would save.
        return [["F bypass bypassed"], ["F bypass bypassed"], *expected[2:]]
    if version == "2.15.0":
        expected = [[_without_fx_details(line, name) for line in run] for run in expected]
    if name in _CHANGED_ALONE:
        expected = [[_not_known_to_be_changed(line) for line in run] for run in expected]
    return expected


# The only graph of a program changed: a text log names no function, so that nothing tells it from another program.
_CHANGED_ALONE = frozenset(
    {"graph_relu_tanh", "graph_relu_tanh_fx", "graph_constant", "captured_tensor", "captured_tensor_fx"}
)


def _not_known_to_be_changed(line: str) -> str:
    return line.replace("key_changed gm", "first_lookup")


def _without_fx_details(line: str, name: str) -> str:
    """2.15 no longer logs the hash details of FX keys, which also hold the direction."""
    words = line.split()
    letter, rest = ("F" if words[0] == "B" else words[0]), words[1:]
    if letter == "F" and len(rest) > 1 and rest[1] == "key_changed":
        rest = [rest[0], "details_not_recorded", *(["<"] if rest[-1] == "<" else [])]
    if line == GUARD_FX[0] and name.endswith("_fx"):
        # Without the inputs nothing says that the graph has symbolic sizes, hence guards.
        return "F full_miss entry_unavailable"
    return " ".join([letter, *rest])
