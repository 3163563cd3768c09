"""The scenarios that record.py records: for each, the processes to run and what differs from the run before.

Data only. A step is one process. Steps of one group are started at once, groups one after the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

DEBUG_LOGGERS = "+torch._inductor.codecache,+torch._functorch._aot_autograd.autograd_cache"
AOT_OFF = {"TORCHINDUCTOR_AUTOGRAD_CACHE": "0"}
EPILOGUE_OFF = ("--option", "epilogue_fusion=false")


@dataclass(frozen=True, slots=True)
class Damage:
    """What is done to every stored file of one cache just before a step."""

    action: str  # "delete", "truncate" (to half), "garbage" (same size) or "bare" (all but entries deleted)
    cache: str  # "fxgraph" or "aotautograd"; of no account for "bare"


@dataclass(frozen=True, slots=True)
class Step:
    """One process."""

    name: str
    differs: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    damage: Damage | None = None
    cache: str = "cache"
    log: str | None = None  # a log file shared with other steps; by default each step has its own
    script: str = "record_programs.py"  # the program, in this folder
    edits: tuple[tuple[str, str], ...] = ()  # texts of it, each there once, and what they are replaced by
    torch: str | None = None  # another torch than the recording's
    returns: int = 0  # the expected return code; -n where signal n ends it
    is_other_user: bool = False  # run by nobody instead of root
    before: str | None = None  # what is done to the cache directory: a function of recording_conditions.py
    lead: str | None = None  # of a container, which is pid 1: what stands before each of its lines


@dataclass(frozen=True, slots=True)
class Scenario:
    """An ordered list of groups of steps that share a folder."""

    name: str
    summary: str
    groups: tuple[tuple[Step, ...], ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    debug_loggers: bool = True


def step(
    name: str,
    differs: str,
    *arguments: str,
    program: str = "functions",
    environment: Mapping[str, str] | None = None,
    damage: Damage | None = None,
    cache: str = "cache",
) -> Step:
    return Step(name, differs, (program, *arguments), environment or {}, damage, cache)


def scenario(name: str, summary: str, *steps: Step, environment: Mapping[str, str] | None = None) -> Scenario:
    """A scenario whose steps run one after the other."""
    return Scenario(name, summary, tuple((one,) for one in steps), environment or {})


def functions(*names: str) -> tuple[str, str]:
    return "--functions", ",".join(names)


def without_aot(base: Scenario) -> Scenario:
    """The same scenario with the AOTAutograd cache off."""
    return replace(
        base,
        name=f"{base.name}_fx",
        summary=f"{base.summary} (AOTAutograd cache off)",
        environment={**base.environment, **AOT_OFF},
    )


def damaged(name: str, action: str, cache: str) -> Scenario:
    return scenario(
        name,
        f"cold, warm, {action} every {cache} file, run, run",
        step("cold", "empty cache directory"),
        step("warm", "nothing"),
        step("after_damage", f"{cache} files: {action}", damage=Damage(action, cache)),
        step("again", "nothing"),
    )


def training() -> Scenario:
    return scenario(
        "training",
        "forward and backward of a small MLP: cold, warm, one option, back",
        step("cold", "empty cache directory", program="training"),
        step("warm", "nothing", program="training"),
        step("epilogue_fusion_off", "options epilogue_fusion=False", *EPILOGUE_OFF, program="training"),
        step("back", "option back to its default", program="training"),
    )


def of_rank(count: int) -> dict[str, str]:
    """The variables of one of so many ranks, for `at_once`."""
    names = {"RANK": "{n}", "LOCAL_RANK": "{n}", "WORLD_SIZE": str(count)}
    return {**names, "MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo"}


def at_once(
    name: str,
    summary: str,
    titles: Mapping[str, str],
    count: int,
    *arguments: str,
    environment: Mapping[str, str],
    shares_log: bool = False,
) -> Scenario:
    """For each title a group of processes that start at once. `{n}` in the environment becomes the number of the process."""

    def process(title: str, number: int) -> Step:
        meet = ("functions", "--barrier", f"barrier/{title}", "--parties", str(count), *arguments)
        own = {key: value.format(n=number) for key, value in environment.items()}
        return Step(f"{title}_{number}", titles[title], meet, own, log=f"{title}.log" if shares_log else None)

    groups = tuple(tuple(process(title, number) for number in range(count)) for title in titles)
    return Scenario(name, summary, groups)


FOUR_AT_ONCE = {"race": "four at once, empty cache directory", "again": "nothing"}
COLD_WARM = scenario("cold_warm", "the same program three times",
    step("cold", "empty cache directory"),
    step("warm", "nothing"),
    step("warm_again", "nothing"))  # fmt: skip
CONFIG_FLIP = scenario("config_flip", "one option, then back",
    step("cold", "empty cache directory"),
    step("epilogue_fusion_off", "options epilogue_fusion=False", *EPILOGUE_OFF),
    step("back", "option back to its default"))  # fmt: skip
INPUTS = scenario("inputs", "other input metadata, static shapes",
    step("base", "empty cache directory"),
    step("batch_12", "batch size 8 -> 12", "--batch", "12"),
    step("float64", "base with dtype float64", "--dtype", "float64"),
    step("transposed", "base with x transposed in memory: stride (1, 8)", "--transposed"),
    step("base_again", "back to base"))  # fmt: skip
RELU_TANH = scenario("graph_relu_tanh", "relu becomes tanh",
    step("relu", "empty cache directory", *functions("matmul_relu")),
    step("tanh", "relu -> tanh", *functions("matmul_tanh")))  # fmt: skip
DYNAMIC = ("--mark-dynamic", *functions("branch_on_size"))
DYNAMIC_GUARDS = scenario("dynamic_guards",
    "dynamic batch with a branch on size > 10: a guard fails, then stored ones hold",
    step("size_20", "empty cache directory", *DYNAMIC, "--batch", "20"),
    step("size_5", "batch 20 -> 5: the stored guard fails", *DYNAMIC, "--batch", "5"),
    step("size_30", "batch 30: the guard of size_20 holds", *DYNAMIC, "--batch", "30"),
    step("size_7", "batch 7: the guard of size_5 holds", *DYNAMIC, "--batch", "7"))  # fmt: skip
CUSTOM_PASS = scenario("bypass_custom_pass",
    "post_grad_custom_post_pass: a lambda, a pass without uuid, uuid 1, uuid 2",
    step("lambda", "a lambda", "--custom-pass", "lambda"),
    step("uuid_none", "a CustomGraphPass whose uuid() is None", "--custom-pass", "none"),
    step("uuid_1", "a CustomGraphPass with a uuid", "--custom-pass", "1"),
    step("uuid_2", "another uuid", "--custom-pass", "2"))  # fmt: skip
FOUR = ("matmul_relu", "gated_relu", "softmax_rows", "centred")
FOUR_GRAPHS = scenario("four_graphs", "four functions in one process; the second changes",
    step("cold", "empty cache directory", *functions(*FOUR)),
    step("second_changed", "relu -> tanh in the second", *functions(FOUR[0], "gated_tanh", *FOUR[2:])),
    step("back", "back to the first four", *functions(*FOUR)))  # fmt: skip
NEW_GRAPH = scenario("new_graph",
    "four functions in one process; a new one comes between the first and the second",
    step("cold", "empty cache directory", *functions(*FOUR)),
    step("one_more", "row_norm inserted after the first", *functions(FOUR[0], "row_norm", *FOUR[1:])))  # fmt: skip
ALL_AT_ONCE = (*EPILOGUE_OFF, "--deterministic", "--batch", "12")
COMBINED = scenario("combined", "config, determinism, shape and cache key tag at once",
    step("base", "empty cache directory"),
    step("all_at_once",
        "epilogue_fusion=False, use_deterministic_algorithms(True), batch 8 -> 12, cache key tag",
        *ALL_AT_ONCE, environment={"TORCH_COMPILE_CACHE_KEY_TAG": "tag-a"}))  # fmt: skip
WITHOUT_LOGS = scenario("trace_only", "TORCH_TRACE without TORCH_LOGS",
    step("cold", "empty cache directory"),
    step("warm", "nothing"),
    step("epilogue_fusion_off", "options epilogue_fusion=False", *EPILOGUE_OFF))  # fmt: skip
TRACE_ONLY = replace(WITHOUT_LOGS, debug_loggers=False)
CAPTURED = scenario("captured_tensor", "only the values of a tensor constant change",
    step("low", "empty cache directory", *functions("captured_low")),
    step("high", "other values in the constant", *functions("captured_high")))  # fmt: skip

EVERY_VERSION: tuple[Scenario, ...] = (
    COLD_WARM, CONFIG_FLIP, training(), DYNAMIC_GUARDS, CUSTOM_PASS,
    damaged("entry_deleted", "delete", "fxgraph"), RELU_TANH, COMBINED, TRACE_ONLY, INPUTS,
    without_aot(COLD_WARM), without_aot(CONFIG_FLIP), without_aot(DYNAMIC_GUARDS),
)  # fmt: skip

MAIN_VERSION: tuple[Scenario, ...] = (
    *EVERY_VERSION,
    scenario("config_env", "a config set by an environment variable",
        step("cold", "empty cache directory"),
        step("tuning", "one variable", environment={"TORCHINDUCTOR_COORDINATE_DESCENT_TUNING": "1"}),
        step("back", "variable unset")),
    scenario("isolation_context",
        "torch's isolation context beside the trace of the same process; then other settings",
        step("base", "empty cache directory", "--isolation-context", "contexts/base.json"),
        step("settings", "use_deterministic_algorithms(True), float32 matmul precision high",
            "--deterministic", "--precision", "high", "--isolation-context", "contexts/settings.json")),
    scenario("deterministic", "torch.use_deterministic_algorithms(True), then back",
        step("base", "empty cache directory"),
        step("deterministic", "use_deterministic_algorithms(True)", "--deterministic"),
        step("back", "not called")),
    scenario("matmul_precision", "torch.set_float32_matmul_precision",
        step("base", "empty cache directory"),
        step("high", 'set to "high"', "--precision", "high"),
        step("highest", 'set to "highest"', "--precision", "highest")),
    scenario("symbolic_sizes", "a size that is symbolic in one run alone, without a change of the code",
        step("symbolic", "empty cache directory", "--mark-dynamic"),
        step("fixed", "the size is fixed"),
        step("symbolic_again", "the size is symbolic", "--mark-dynamic")),
    scenario("graph_constant", "a constant in the graph",
        step("one", "empty cache directory", *functions("add_one")),
        step("two", "1.0 -> 2.0", *functions("add_two"))),
    scenario("rename_argument", "an argument of the compiled function is renamed",
        step("x", "empty cache directory", *functions("matmul_relu")),
        step("batch", "x -> batch", *functions("matmul_relu_renamed"))),
    scenario("cache_key_tag", "TORCH_COMPILE_CACHE_KEY_TAG",
        step("unset", "empty cache directory"),
        step("tag_a", "unset -> a", environment={"TORCH_COMPILE_CACHE_KEY_TAG": "a"}),
        step("tag_b", "a -> b", environment={"TORCH_COMPILE_CACHE_KEY_TAG": "b"}),
        step("unset_again", "b -> unset")),
    scenario("bypass_freezing", "freezing a linear layer under no_grad",
        step("no_freezing", "empty cache directory", "--no-grad", program="linear"),
        step("freezing", "freezing=True", "--no-grad", "--config", "freezing=true", program="linear"),
        step("freezing_again", "nothing", "--no-grad", "--config", "freezing=true", program="linear")),
    damaged("entry_truncated", "truncate", "fxgraph"),
    damaged("entry_garbage", "garbage", "fxgraph"),
    without_aot(damaged("entry_deleted", "delete", "fxgraph")),
    damaged("aot_entry_deleted", "delete", "aotautograd"),
    damaged("aot_entry_truncated", "truncate", "aotautograd"),
    FOUR_GRAPHS,
    NEW_GRAPH,
    scenario("tour",
        "one program over six runs: made, warm, a function edited, an option, back, fewer threads",
        step("made", "empty cache directory", *functions(*FOUR)),
        step("warm", "nothing", *functions(*FOUR)),
        step("edited", "relu -> tanh in the second function", *functions(FOUR[0], "gated_tanh", *FOUR[2:])),
        step("option", "edit undone, options epilogue_fusion=False", *functions(*FOUR), *EPILOGUE_OFF),
        step("back", "option back to its default", *functions(*FOUR)),
        step("one_thread", "OMP_NUM_THREADS=1", *functions(*FOUR), environment={"OMP_NUM_THREADS": "1"})),
    at_once("four_processes", "four processes at once, twice", FOUR_AT_ONCE, 4, environment={}),
    at_once("four_ranks", "four ranks of one gloo group at once, twice, their stderr in one file", FOUR_AT_ONCE, 4,
        "--distributed", environment=of_rank(4), shares_log=True),
    scenario("rank_in_config",
        "four ranks one after the other, one directory, an output path with the rank in a config",
        *(
            step(f"rank_{rank}", f"RANK {rank - 1} -> {rank}" if rank else "empty cache directory",
                "--config", 'aot_inductor.output_path="model_rank$RANK"',
                environment={"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "4"})
            for rank in range(4)
        )),
    scenario("force_disabled", "caches switched off, and a process that compiles nothing",
        step("cold", "empty cache directory"),
        step("force_disabled", "one variable", environment={"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}),
        step("both_off", "FX graph cache and AOTAutograd cache off",
            environment={"TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "TORCHINDUCTOR_AUTOGRAD_CACHE": "0"}),
        step("fx_off", "only the FX graph cache off", environment={"TORCHINDUCTOR_FX_GRAPH_CACHE": "0"}),
        step("warm", "caches on again"),
        step("nothing_compiled", "nothing is compiled", program="eager")),
    scenario("three_changes", "base, one change, then three at once: the nearest run is not the base",
        step("base", "empty cache directory"),
        step("one", "epilogue_fusion=False", *EPILOGUE_OFF),
        step("three", "epilogue_fusion=False, use_deterministic_algorithms(True), batch 8 -> 12",
            *ALL_AT_ONCE)),
    scenario("in_process", "one function compiled four times in one process with other options",
        step("first", "empty cache directory", program="sequence"),
        step("second", "nothing", program="sequence")),
    scenario("other_directory", "the same program with another cache directory",
        step("first", "empty cache directory"),
        step("other", "TORCHINDUCTOR_CACHE_DIR is another, empty directory", cache="cache_b"),
        step("other_again", "nothing", cache="cache_b")),
    scenario("cpp_wrapper", "an option that sets several fields",
        step("cold", "empty cache directory"),
        step("cpp_wrapper", "options cpp_wrapper=True", "--option", "cpp_wrapper=true"),
        step("back", "option back to its default")),
    CAPTURED,
    scenario("autograd_config", "a functorch config: only the AOTAutograd key changes",
        step("cold", "empty cache directory"),
        step("budget", "activation_memory_budget 1.0 -> 0.5", "--functorch-config",
            "activation_memory_budget=0.5"),
        step("back", "config back to its default")),
    scenario("grad_mode", "an MLP: forward and backward, then its forward under no_grad",
        step("grad", "empty cache directory", program="training"),
        step("no_grad", "torch.no_grad()", "--no-grad", program="forward"),
        step("grad_again", "back", program="training")),
    scenario("forward_only",
        "a forward that needs gradients, and no backward: torch never stores its AOTAutograd entry",
        step("cold", "empty cache directory", program="forward"),
        step("again", "nothing", program="forward")),
    replace(CONFIG_FLIP, name="text_short", summary="config_flip with TORCH_LOGS_FORMAT=short",
        environment={"TORCH_LOGS_FORMAT": "short"}),
    replace(CONFIG_FLIP, name="logs_out",
        summary="config_flip with TORCH_LOGS_OUT: one file for all three processes",
        environment={"TORCH_LOGS_OUT": "text/torch.log"}),
    without_aot(INPUTS),
    without_aot(RELU_TANH),
    without_aot(training()),
    without_aot(CUSTOM_PASS),
    without_aot(FOUR_GRAPHS),
    without_aot(NEW_GRAPH),
    without_aot(COMBINED),
    without_aot(CAPTURED),
)  # fmt: skip

# Below, since they are made of the functions above.
from container_scenarios import CONTAINERS  # noqa: E402
from likeness_scenarios import LIKENESS  # noqa: E402
from unsaved_scenarios import ENTRIES_NOT_WRITABLE, ENTRIES_NOT_WRITABLE_2_6, UNSAVED, UNSAVED_EVERYWHERE  # noqa: E402

# Of any other release, in one archive.
FEW = (COLD_WARM, CONFIG_FLIP, training(), DYNAMIC_GUARDS, COMBINED)
# The version the tests know best comes with every scenario, the others with those that show how the formats differ.
EVERYWHERE = (*EVERY_VERSION, *UNSAVED_EVERYWHERE)
SCENARIOS: dict[str, tuple[Scenario, ...]] = {
    "2.13.0": (*MAIN_VERSION, *UNSAVED, *LIKENESS["2.13.0"], *CONTAINERS),
    "2.6.0": (*EVERYWHERE, ENTRIES_NOT_WRITABLE_2_6, *LIKENESS["2.6.0"], *CONTAINERS),
    "2.10.0": (*EVERYWHERE, ENTRIES_NOT_WRITABLE, *LIKENESS["2.10.0"], *CONTAINERS),
    "2.15.0": (*EVERYWHERE, ENTRIES_NOT_WRITABLE, *LIKENESS["2.15.0"], *CONTAINERS),
}
