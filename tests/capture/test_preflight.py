"""Pre-flights of one program, held against what torch then really does: on a cold, a warm and a changed cache. What a pre-flight does to processes: those of the command, this one, and those that it does not start. Without weights, and programs that need values."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import cachescope
from cachescope.scope.preflight import read_preflight
from tests.capture import preflights
from tests.capture.preflights import (
    ROOT,
    assert_came_true,
    compiler_that_tells,
    copied,
    entries_of,
    environment,
    lookups_of,
    predicted,
    preflown,
    program,
    really,
    told_by,
    traces_in,
    tree_hash,
    watched,
)
from tests.programs import ran

pytestmark = [pytest.mark.torch, pytest.mark.slow]


@pytest.fixture(scope="module")
def flown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the traces of a pre-flight, what a cold run then did, and the cache that it made."""
    folder = tmp_path_factory.mktemp("flown")
    compilers, called = compiler_that_tells(folder / "bin", os.environ)
    cache = folder / "cache"
    traces = preflown(program("training"), cache, folder / "preflight", **compilers)
    assert not cache.exists()
    assert not called.exists(), called.read_text()
    told = predicted(traces, cache)
    assert [outcome for *_, outcome in told] == ["miss"] * 5
    assert_came_true(told, really(program("training"), cache, folder / "cold"))
    return folder


@pytest.mark.parametrize("how", ["as it was", "fxgraph deleted", "aotautograd truncated"])
def test_a_warm_cache_hits_as_predicted_and_misses_what_is_gone_or_damaged(
    flown: Path, tmp_path: Path, how: str
) -> None:
    cache = copied(flown / "cache", tmp_path / "cache")
    if how == "fxgraph deleted":
        entries_of(cache, "fxgraph")[0].unlink()
    elif how == "aotautograd truncated":
        os.truncate(entries_of(cache, "aotautograd")[0], 100)
    before = tree_hash(cache)
    told = predicted(traces_in(flown), cache)
    assert tree_hash(cache) == before
    ways = [outcome for *_, outcome in told]
    assert ways == ["hit"] * 5 if how == "as it was" else {*ways} == {"hit", "miss"}
    assert_came_true(told, really(program("training"), cache, tmp_path / "real"))


def test_the_changed_field_is_named(flown: Path, tmp_path: Path) -> None:
    changed = {"PREFLIGHT_PROGRAM_CONFIG": "epilogue_fusion"}
    cache = copied(flown / "cache", tmp_path / "cache")
    before = tree_hash(cache)
    traces = preflown(program("training"), cache, tmp_path / "preflight", **changed)
    assert tree_hash(cache) == before
    scope = read_preflight(str(traces), [str(cache)])
    told = lookups_of(scope)
    assert {outcome for *_, outcome in told} == {"miss"}
    assert set(scope.misses["verdict"]) == {"key_changed"}
    assert set(scope.misses["changed"]) == {("inductor_config[epilogue_fusion]",)}
    assert_came_true(told, really(program("training"), cache, tmp_path / "real", **changed))


def test_an_ordinary_reading_knows_it_for_what_it_is(flown: Path) -> None:
    alone = cachescope.read(traces_in(flown))
    assert alone.runs["is_preflight"].tolist() == [True]
    assert set(alone.lookups["outcome"]) == {"not_known"}
    beside = cachescope.read(traces_in(flown), flown / "cache")
    assert set(beside.lookups["outcome"]) == {"would_hit"}
    assert beside.hit_rates()["hit_rate"].tolist() == [1.0]


def test_what_a_recording_left_behind_is_what_it_is_held_against(flown: Path) -> None:
    told = predicted(traces_in(flown), flown / "cold" / "trace")
    assert [outcome for *_, outcome in told] == ["hit"] * 5


def test_a_pre_flight_is_no_past_of_a_real_run(flown: Path) -> None:
    scope = cachescope.read(traces_in(flown), flown / "cold" / "trace")
    (preflight,) = scope.runs.loc[scope.runs["is_preflight"], "run"]
    alone = cachescope.read(flown / "cold" / "trace").misses
    beside = scope.misses[scope.misses["lookup"].isin(scope.lookups.query(f"run != {preflight}")["lookup"])]
    columns = ["verdict", "reason", "changed", "evidence"]
    assert beside[columns].values.tolist() == alone[columns].values.tolist()


def test_the_command_asks_for_a_share_of_hits(flown: Path, tmp_path: Path) -> None:
    def status(name: str) -> int:
        against = str(flown / "cache")
        words = ["preflight", "--min-hit-rate", "1", "--against", against, "--", *program(name)]
        return told_by(words, environment(tmp_path / "other"), status=None).returncode

    # What is trained there is also run without gradients.
    assert status("mlp") == 0 and status("dropout") == 3
    assert not (tmp_path / "other").exists()


def test_guards_that_do_not_hold_are_predicted(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    few = {"PREFLIGHT_PROGRAM_SIZES": "5 6"}
    really(program("guarded_size"), cache, tmp_path / "first", **few)
    many = {"PREFLIGHT_PROGRAM_SIZES": "50 60"}
    traces = preflown(program("guarded_size"), cache, tmp_path / "preflight", **many)
    told = predicted(traces, cache)
    assert set(read_preflight(str(traces), [str(cache)]).misses["verdict"]) == {"guard_failed"}
    assert_came_true(told, really(program("guarded_size"), cache, tmp_path / "second", **many))
    # Both are stored now.
    assert {outcome for *_, outcome in predicted(traces, cache)} == {"hit"}


def test_the_second_lookup_of_a_key_finds_what_the_first_would_store(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    told = predicted(preflown(program("twice"), cache, tmp_path / "preflight"), cache)
    assert [outcome for *_, outcome in told] == ["miss"] * 3 + ["hit"] * 3
    assert_came_true(told, really(program("twice"), cache, tmp_path / "real"))


def test_what_the_program_prints_is_no_part_of_the_json(tmp_path: Path) -> None:
    code = "import torch; print('printed'); torch.compile(lambda x: x + 1)(torch.ones(3)); print('again')"
    words = ["preflight", "--json", "--", sys.executable, "-c", code]
    done = told_by(words, environment(tmp_path / "cache"))
    told = json.loads(done.stdout)["preflight"]
    assert (told["would_miss"], told["lookups"]) == (2, 2)
    assert "printed\nagain\n" in done.stderr


BLOCK = """
import json, sys, torch, cachescope
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
compiled = torch.compile(model)
x = torch.randn(4, 8)
with cachescope.preflight() as first:
    compiled(x).sum().backward()
told = first.scope.lookups["outcome"].tolist()
plain = model(x)
assert torch.allclose(compiled(x), plain, atol=1e-5)
compiled(x).sum().backward()
with cachescope.preflight() as second:
    compiled(x).sum().backward()
torch._dynamo.reset()
torch._dynamo.utils.counters.clear()
compiled(x).sum().backward()
hits = torch._dynamo.utils.counters["inductor"]["fxgraph_cache_hit"]
print(json.dumps([told, second.scope.lookups["outcome"].tolist(), hits, repr(second)]))
"""


def test_a_block_of_this_process_is_predicted_and_leaves_nothing(tmp_path: Path) -> None:
    done = ran([sys.executable, "-c", BLOCK], environment(tmp_path / "cache"))
    first, second, hits, shown = json.loads(done.stdout)
    assert first == ["would_miss"] * 3
    assert second == ["would_hit"] * 3
    assert hits == 2
    assert shown.startswith("a real run would make 3 lookups: 3 would hit, 0 would miss")


def test_no_compiler_and_no_worker_is_started(tmp_path: Path) -> None:
    """Watched from within each process, and by compilers that tell when they are called; a real run starts them."""
    # As many workers as by default on a large machine, and instructions that are tried out.
    plain = {"TORCHINDUCTOR_COMPILE_THREADS": "4", "TORCHINDUCTOR_VEC_ISA_OK": ""}
    command = program("max_autotune,training,cpp_wrapper")
    compilers, called = compiler_that_tells(tmp_path / "bin", os.environ)
    watch, started = watched(tmp_path / "preflight watch")
    preflown(command, tmp_path / "cache", tmp_path / "preflight", **plain, **compilers, **watch)
    python = Path(command[0]).name
    # Python looks for a library so when a CUDA build of torch 2.15 imports cuda.pathfinder; git is asked for the commit.
    assert [name for name in started.read_text().split() if name not in ("ldconfig", "git")] == [python]
    assert not called.exists(), called.read_text()
    watch, started = watched(tmp_path / "real watch")
    really(command, tmp_path / "cache", tmp_path / "cold", **plain, **watch)
    assert {"g++", python} <= set(started.read_text().split())


CHILDREN = """
import subprocess, sys
for flags in ([], [], ["-I"]):
    subprocess.run([sys.executable, *flags, "-c", "import torch; torch.compile(torch.sin)(torch.ones(3))"], check=True)
"""


def test_processes_of_the_command_are_covered_and_those_that_are_not_are_named(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    traces = preflown([sys.executable, "-c", CHILDREN], cache, tmp_path / "preflight")
    assert not cache.exists()
    scope = read_preflight(str(traces), [str(cache)])
    told = [rows["outcome"].tolist() for _, rows in scope.lookups.groupby("run")]
    # The second began after the first had ended.
    assert told == [["would_miss"] * 2, ["would_hit"] * 2, ["not_known"] * 2]
    assert "compiled for real" in scope.lookups["prediction"].iloc[-1]


DERIVED = """
import os
os.environ["TORCHINDUCTOR_CACHE_DIR"] += "/rank0"
import torch
from torch._dynamo.utils import counters
torch.compile(torch.sin)(torch.ones(3))
print(counters["aot_autograd"]["autograd_cache_hit"])
"""


def test_a_directory_derived_from_the_variable_is_the_one_of_the_real_run(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    command = [sys.executable, "-c", DERIVED]
    assert [ran(command, environment(cache)).stdout for _ in range(2)] == ["0\n", "1\n"]
    scope = read_preflight(str(preflown(command, cache, tmp_path / "preflight")), None)
    assert [outcome for *_, outcome in lookups_of(scope)] == ["hit"] * 2


def test_the_users_own_sitecustomize_runs(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import builtins\nbuiltins.mine = 'yes'\n")
    site = ROOT / "cachescope" / "capture" / "preflight" / "site"
    code = (
        "import sys; print(mine, 'torch' in sys.modules, any('cachescope' in name for name in sys.modules))"
    )
    found = os.pathsep.join([str(site), str(own)])
    done = ran([sys.executable, "-c", code], {**os.environ, "PYTHONPATH": found})
    assert done.stdout.split() == ["yes", "False", "False"]


QUICK = ("training",)
MORE = (
    "converted", "channels_last", "graph_break", "automatic_dynamic", "checkpointed", "optimizer",
    "attention", "twice",
)  # fmt: skip


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.models) for name in MORE)])
def test_what_is_predicted_without_weights_comes_true(tmp_path: Path, name: str) -> None:
    cache = tmp_path / "cache"
    traces = preflights.preflown(preflights.program(name), cache, tmp_path / "preflight", options=["--fake"])
    cold = preflights.really(preflights.program(name), cache, tmp_path / "cold")
    preflights.assert_came_true(preflights.predicted(traces, tmp_path / "empty"), cold)
    assert {outcome for *_, outcome in preflights.predicted(traces, cache)} == {"hit"}


def flown_fake(
    folder: Path, text: str, *more: str, status: int | None = None
) -> subprocess.CompletedProcess[str]:
    script = folder / "script.py"
    script.write_text(text)
    words = ["preflight", "--fake", *more, "--", sys.executable, script]
    return preflights.told_by(words, preflights.environment(folder / "cache"), status)


LARGE = """
import torch
with torch.no_grad():
    torch.compile(torch.nn.Linear(2**18, 2**18).to(torch.bfloat16))(torch.randn(1, 2**18, dtype=torch.bfloat16))
"""


def test_no_weights_are_allocated(tmp_path: Path) -> None:
    done = flown_fake(tmp_path, LARGE, status=0)
    assert "a real run would make 2 lookups: 0 would hit, 2 would miss" in done.stdout
    # In kilobytes, or in bytes on macOS: the weights would take 256 GB.
    unit = 1 if sys.platform == "darwin" else 1024
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit < 16e9


NEEDY = {
    "item": ("print(x.sum().item())", "DataDependentOutputException: aten._local_scalar_dense.default"),
    "numpy": ("print(x.numpy())", "numpy"),
    "condition": ("if x.sum() > 0: print(1)", "DataDependentOutputException"),
    "caught": ("try: x.tolist()\nexcept Exception: pass", "DataDependentOutputException"),
    "freezing": (
        "torch._inductor.config.freezing = True\n"
        "with torch.no_grad(): torch.compile(torch.nn.Linear(8, 8).eval())(x)",
        "UnsupportedOperatorException",
    ),
}


@pytest.mark.parametrize("what", [
    "item",
    "freezing",
    *(pytest.param(name, marks=pytest.mark.models) for name in ("numpy", "condition", "caught")),
])  # fmt: skip
def test_a_program_that_needs_values_is_told_so_in_one_line(tmp_path: Path, what: str) -> None:
    text, why = NEEDY[what]
    done = flown_fake(tmp_path, f"import torch\nx = torch.randn(4, 8)\n{text}\nprint('went on')\n", status=2)
    *_, line = done.stderr.splitlines()
    assert line.startswith("cachescope: the program cannot be run without weights: ")
    assert why in line and "script.py:" in line
    assert "Traceback (most recent call last)" not in done.stderr


def test_an_error_of_the_program_itself_is_no_lack_of_values(tmp_path: Path) -> None:
    done = flown_fake(tmp_path, "import torch\nx = torch.randn(3)\n1 / 0\n")
    assert done.returncode == 1 and "ZeroDivisionError: division by zero" in done.stderr
    assert "without weights" not in done.stderr


def test_it_is_asked_for_by_the_option_alone(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import torch\nprint('sum', torch.ones(3).sum().item())\n")
    asked = {"CACHESCOPE_PREFLIGHT_FAKE": os.fspath(tmp_path / "why")}
    words = ["preflight", "--", sys.executable, script]
    done = preflights.told_by(words, preflights.environment(tmp_path / "cache") | asked, status=None)
    assert "sum 3.0" in done.stdout
    assert not (tmp_path / "why").exists()
