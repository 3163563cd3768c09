"""Scenarios of what is the past of what: other programs, edited ones, modes, ranks that start cold, upgrades.

What must be told of each is written in tests/wild/likeness.py.
"""

from collections.abc import Mapping
from dataclasses import replace

from recording_scenarios import (
    EPILOGUE_OFF,
    Damage,
    Scenario,
    Step,
    at_once,
    functions,
    of_rank,
    scenario,
    without_aot,
)

FUSION_OFF_TEXT = "options epilogue_fusion=False"


def step(
    name: str,
    differs: str,
    *arguments: str,
    script: str = "serve.py",
    program: str = "functions",
    edits: tuple[tuple[str, str], ...] = (),
    environment: Mapping[str, str] | None = None,
    torch: str | None = None,
) -> Step:
    return Step(
        name, differs, (program, *arguments), environment or {}, script=script, edits=edits, torch=torch
    )


# --- two programs in one folder ---

BLOCK = functions("block")
SERVE = step("serve", "empty cache directory", *BLOCK)
RELU_TO_SILU = ("torch.relu(x @ w)", "torch.nn.functional.silu(x @ w)")
TANH_TO_COS = ("torch.tanh(x @ w)", "torch.cos(x @ w)")
RELU_TO_SIGMOID = ("torch.relu(x @ w)", "torch.sigmoid(x @ w)")
COMMENT_BEFORE = ("def block(", "# One line more.\n\n\ndef block(")


def two_programs(name: str, summary: str, serve: tuple[str, ...], score: tuple[str, ...]) -> Scenario:
    return scenario(
        name,
        f"serve.py, then score.py in the same folder and cache, then both again: {summary}",
        step("serve", "empty cache directory", *serve),
        step("score", "another program, its first run", *score, script="score.py"),
        step("serve_again", "nothing", *serve),
        step("score_again", "nothing", *score, script="score.py"),
    )


MODEL = ("--no-grad",)


def two_models(name: str, summary: str, model: str) -> Scenario:
    found = two_programs(name, summary, ("--model", model, *MODEL), ("--model", model, *MODEL))
    return replace(
        found,
        groups=tuple((replace(one, arguments=("forward", *one.arguments[1:])),) for (one,) in found.groups),
    )


TWO_PROGRAMS = two_programs(
    "two_programs", "other functions of other names", functions("block", "head"), functions("tail")
)
SAME_NAME = two_programs("same_name_other_file", "functions of one name, other code", BLOCK, BLOCK)
SAME_CLASS = two_models("same_class_other_file", "modules of one class name, other code", "ranker")
TORCHS_OWN_FILE = two_models("two_sequentials", "torch.nn.Sequential of other layers", "layers")
OTHER_FUNCTION = scenario("same_file_other_function",
    "one program, another of its functions, which has the same inputs",
    SERVE,
    step("head", "another function of the same file, its first run", *functions("head")))  # fmt: skip
EDITED = scenario("edited_program", "one program edited: other code, then a line more above it, then undone",
    SERVE,
    step("silu", "relu -> silu in block", *BLOCK, edits=(RELU_TO_SILU,)),
    step("lower", "the edit undone, relu(x) -> cos(x) lower in the file", *BLOCK,
        edits=(("torch.relu(x @ w)", "torch.cos(x @ w)"), COMMENT_BEFORE)),
    step("undone", "as at first", *BLOCK))  # fmt: skip
EDITED_MODEL = scenario("edited_model",
    "one program edited: another layer in its torch.nn.Sequential, another operation in its module",
    step("layers", "empty cache directory", "--model", "layers", *MODEL, program="forward"),
    step("layers_silu", "ReLU -> SiLU in the Sequential", "--model", "layers", *MODEL, program="forward",
        edits=(("torch.nn.ReLU()", "torch.nn.SiLU()"),)),
    step("ranker", "another model of the same file, its first run", "--model", "ranker", *MODEL,
        program="forward"),
    step("ranker_cos", "relu -> cos in its forward", "--model", "ranker", *MODEL, program="forward",
        edits=(("torch.relu(self.first(x))", "torch.cos(self.first(x))"),)))  # fmt: skip
BOTH_EDITED = scenario("two_programs_edited",
    "serve.py and score.py, functions of one name, then each edited: each is a change of its own",
    SERVE,
    step("score", "another program, its first run", *BLOCK, script="score.py"),
    step("serve_edited", "serve.py: relu -> silu in block", *BLOCK, edits=(RELU_TO_SILU,)),
    step("score_edited", "score.py: tanh -> cos in block", *BLOCK, script="score.py", edits=(TANH_TO_COS,)))  # fmt: skip
SAME_GRAPH = scenario("same_graph_other_program",
    "serve.py and score.py compile the same graph: it hits, and with another option misses by that option",
    step("serve", "empty cache directory", *functions("shared")),
    step("score", "another program with the same graph", *functions("shared"), script="score.py"),
    step("score_fusion_off", f"score.py with {FUSION_OFF_TEXT}", *functions("shared"), *EPILOGUE_OFF,
        script="score.py"))  # fmt: skip

# --- training, inference, ranks, recompiles ---

TRAIN = step("train", "forward and backward", program="training", script="record_programs.py")
INFER = step("infer", "torch.no_grad()", "--no-grad", program="forward", script="record_programs.py")


def first(one: Step) -> Step:
    return replace(one, differs=f"empty cache directory, {one.differs}")


INFER_TRAIN = scenario("infer_then_train", "an MLP under no_grad, then trained, then both again",
    first(INFER),
    TRAIN,
    replace(INFER, name="infer_again"),
    replace(TRAIN, name="train_again"))  # fmt: skip
TRAIN_INFER = scenario("train_then_infer", "an MLP trained, then under no_grad, then both again",
    first(TRAIN),
    INFER,
    replace(TRAIN, name="train_again"),
    replace(INFER, name="infer_again"))  # fmt: skip
OTHER_INFERENCE = scenario("inference_mode",
    "an MLP under no_grad, then inference_mode, then with frozen parameters, then trained",
    first(INFER),
    step("inference_mode", "torch.inference_mode()", "--inference-mode", program="forward",
        script="record_programs.py"),
    step("frozen", "parameters that require no gradients", "--frozen", program="forward",
        script="record_programs.py"),
    TRAIN)  # fmt: skip


def cold_ranks(name: str, summary: str, count: int, *arguments: str) -> Scenario:
    """Twice so many ranks of one gloo group at once: all cold, then again."""
    titles = {"cold": "all at once, empty cache directory", "again": "nothing"}
    return at_once(name, summary, titles, count, "--distributed", *arguments, environment=of_rank(count))


def recompiles(name: str, summary: str, *arguments: str) -> Scenario:
    """Twice one function that is called with other inputs in one process."""
    more = {"program": "recompiles", "script": "record_programs.py"}
    titles = {"cold": "empty cache directory", "again": "nothing"}
    return scenario(name, summary, *(step(*title, *arguments, **more) for title in titles.items()))


OUTPUT_PATH = ("--config", 'aot_inductor.output_path="model_rank$RANK"')
TWO_RANKS_PATHS = cold_ranks(
    "two_ranks_cold_paths", "two ranks, cold together, an output path with the rank in it", 2, *OUTPUT_PATH
)
RECOMPILES = recompiles("recompiles",
    "one function called with six kinds of input in one process: 0/0 to 0/5; then all again",
    "--variants", "base,float64,batch_12,transposed,requires_grad,no_grad")  # fmt: skip
RECOMPILES_DYNAMIC = recompiles("recompiles_dynamic",
    "a second batch size in one process, dynamic=None: the size becomes a symbol; then again",
    "--variants", "base,batch_12", "--automatic-dynamic")  # fmt: skip

# --- a lookup that an exception ends ---

COMPILER_GONE = scenario("compiler_gone",
    "entries copied to where no compiler is: both are found, and loading them fails",
    SERVE,
    replace(
        step("no_compiler", "only the entries are there, and no compiler on the path", *BLOCK, "--may-fail",
            environment={"PATH": "/nothing-here"}),
        damage=Damage("bare", "fxgraph")))  # fmt: skip

# --- the nearest of several runs ---

OPTIONS_OFF = ("epilogue_fusion", "shape_padding", "split_reductions", "reorder_for_locality")


def options_off(count: int) -> tuple[str, ...]:
    return tuple(word for name in OPTIONS_OFF[:count] for word in ("--option", f"{name}=false"))


NEAREST_INPUTS = scenario("nearest_inputs",
    "a batch size, then a dtype with the first batch size, then both: the nearest run is another each time",
    SERVE,
    step("batch_12", "batch 8 -> 12", *BLOCK, "--batch", "12"),
    step("float64", "batch 8 again, float32 -> float64", *BLOCK, "--dtype", "float64"),
    step("both", "batch 12, float64", *BLOCK, "--batch", "12", "--dtype", "float64"))  # fmt: skip
NEAREST_GRAPH = scenario("nearest_graph",
    "an option, then the function edited with the option kept: the nearest run has that option",
    SERVE,
    step("fusion_off", FUSION_OFF_TEXT, *BLOCK, *EPILOGUE_OFF),
    step("edited", "relu -> sigmoid in block, option kept", *BLOCK, *EPILOGUE_OFF, edits=(RELU_TO_SIGMOID,)))  # fmt: skip
UNDONE = scenario("options_undone", "four options off, then undone one by one, the last set first",
    step("off_4", "empty cache directory", *BLOCK, *options_off(4)),
    *(
        step(f"off_{count}", f"{OPTIONS_OFF[count]} back", *BLOCK, *options_off(count))
        for count in (3, 2, 1)
    ))  # fmt: skip

# --- another torch ---


def upgrade(earlier: str) -> Scenario:
    two = functions("block", "head")
    return scenario(
        "upgrade",
        f"the same program and cache under torch {earlier}, then under this one, then again",
        step("before", f"empty cache directory, torch {earlier}", *two, torch=earlier),
        step("after", "another torch", *two),
        step("again", "nothing", *two),
    )


EVERYWHERE: tuple[Scenario, ...] = (
    TWO_PROGRAMS, SAME_NAME, OTHER_FUNCTION, EDITED, INFER_TRAIN, TRAIN_INFER, RECOMPILES,
    without_aot(SAME_NAME), without_aot(EDITED), without_aot(INFER_TRAIN), without_aot(TRAIN_INFER),
)  # fmt: skip
MAIN: tuple[Scenario, ...] = (
    *EVERYWHERE,
    SAME_CLASS,
    TORCHS_OWN_FILE,
    EDITED_MODEL,
    BOTH_EDITED,
    SAME_GRAPH,
    OTHER_INFERENCE,
    RECOMPILES_DYNAMIC,
    cold_ranks("two_ranks_cold", "two ranks, cold together; then again", 2),
    TWO_RANKS_PATHS,
    cold_ranks("four_ranks_cold_paths", "four ranks, cold together, an output path with the rank in it", 4,
        *OUTPUT_PATH),
    without_aot(TWO_RANKS_PATHS),
    cold_ranks("two_ranks_cold_shapes", "two ranks, cold together, each with a batch of its own", 2,
        "--batch-of-rank"),
    *(without_aot(one) for one in (TWO_PROGRAMS, OTHER_FUNCTION, TORCHS_OWN_FILE, EDITED_MODEL, RECOMPILES)),
)  # fmt: skip

LIKENESS: dict[str, tuple[Scenario, ...]] = {
    "2.13.0": (*MAIN, upgrade("2.10.0"), NEAREST_INPUTS, NEAREST_GRAPH, UNDONE, COMPILER_GONE),
    "2.6.0": EVERYWHERE,
    "2.10.0": EVERYWHERE,
    "2.15.0": (*EVERYWHERE, upgrade("2.13.0")),
}
