"""What a pre-flight does to processes: those of the command, this one, and those that it does not start."""

import json
import os
import sys
from pathlib import Path

import pytest

from cachescope.scope.preflight import read_preflight
from tests.capture.preflights import (
    ROOT,
    compiler_that_tells,
    environment,
    lookups_of,
    preflown,
    program,
    ran,
    really,
    told_by,
    watched,
)

pytestmark = [pytest.mark.torch, pytest.mark.slow]


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
