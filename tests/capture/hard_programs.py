"""Programs that do what is hard to foretell, run as ``python hard_programs.py NAME COUNTERS``; test_preflight_hard.py holds them.

This file needs nothing but torch, so that a child finds it whatever its environment. What torch counted goes as JSON into
the folder COUNTERS, one file for each process.
"""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

PROGRAMS: dict[str, Callable[[], None]] = {}
COUNTERS = sys.argv[2] if len(sys.argv) > 2 else os.environ.get("HARD_COUNTERS", ".")
ME = os.path.abspath(__file__)
# What a child needs to run quickly, and nothing that a pre-flight or a recording sets.
BARE = {
    name: os.environ[name]
    for name in ("PATH", "TMPDIR", "HOME", "TORCHINDUCTOR_VEC_ISA_OK", "TORCHINDUCTOR_COMPILE_THREADS")
    if name in os.environ
}
CACHE = os.environ.get("HARD_CACHE", "")
OWN = {**BARE, "TORCHINDUCTOR_CACHE_DIR": CACHE}


def imported() -> Any:
    """torch, without the minute in which g++ compiles its headers."""
    import torch
    import torch._inductor.config

    torch._inductor.config.cpp_cache_precompile_headers = False
    return torch


def program(function: Callable[[], None]) -> Callable[[], None]:
    PROGRAMS[function.__name__] = function
    return function


def with_torch(function: Callable[[Any], None]) -> Callable[[], None]:
    """A program that begins by importing torch, and is given it."""
    return program(wraps(function)(lambda: function(imported())))


def child(name: str = "one") -> list[str]:
    return [sys.executable, ME, name, COUNTERS]


def write_counted() -> None:
    if "torch" not in sys.modules:
        return
    from torch._dynamo.utils import counters

    ways = ("hit", "miss", "bypass")
    found = {f"fxgraph {way}": counters["inductor"][f"fxgraph_cache_{way}"] for way in ways}
    found |= {f"aotautograd {way}": counters["aot_autograd"][f"autograd_cache_{way}"] for way in ways}
    Path(COUNTERS).mkdir(exist_ok=True)
    with open(Path(COUNTERS, f"{os.getpid()}.{threading.get_native_id()}.json"), "w") as file:
        json.dump({name: count for name, count in found.items() if count}, file)


def doubled(x):
    return x.sin() * 2


@with_torch
def one(torch: Any) -> None:
    print("one", torch.compile(doubled)(torch.ones(4)).sum().item())


def in_process() -> None:
    one()
    sys.stdout.flush()
    write_counted()


# --- children


@program
def own_environment() -> None:
    for _ in range(2):
        subprocess.run(child(), env=OWN, check=True)


@program
def default_directory() -> None:
    subprocess.run(child(), env=BARE, check=True)


@program
def shell() -> None:
    words = " ".join(child())
    assert os.system(words) == 0
    assert os.system(f"TORCHINDUCTOR_CACHE_DIR={CACHE}/other PYTHONPATH=/nowhere {words}") == 0


@program
def shell_with_environment() -> None:
    subprocess.run(" ".join(child()), shell=True, env=OWN, check=True)


@program
def emptied_environment() -> None:
    names = " ".join(f"{name}={value}" for name, value in BARE.items())
    subprocess.run(f"env -i {names} {' '.join(child())}", shell=True, check=True)


@program
def exec_with_environment() -> None:
    sys.stdout.flush()
    os.execve(sys.executable, child(), OWN)


@program
def cleared_and_exec() -> None:
    os.environ.clear()
    os.environ.update(OWN)
    os.execv(sys.executable, child())


@program
def posix_spawn() -> None:
    assert os.waitpid(os.posix_spawn(sys.executable, child(), OWN), 0)[1] == 0
    assert os.spawnve(os.P_WAIT, sys.executable, child(), OWN) == 0


@program
def cleared() -> None:
    os.environ.clear()
    os.environ.update(OWN)
    assert os.system(" ".join(child())) == 0
    one()


@program
def isolated() -> None:
    subprocess.run([sys.executable, "-I", *child()[1:]], check=True)
    subprocess.run([sys.executable, "-E", *child()[1:]], env={**BARE}, check=True)


def started(how: str) -> None:
    os.environ["HARD_COUNTERS"] = COUNTERS
    context = multiprocessing.get_context(how)
    for _ in range(2):
        process = context.Process(target=in_process)
        process.start()
        process.join()
        assert process.exitcode == 0


@program
def spawned() -> None:
    started("spawn")


@program
def forked() -> None:
    started("fork")


@with_torch
def forked_after(torch: Any) -> None:
    """A fork of a process that has compiled and that has more to compile."""
    one()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        print(torch.compile(lambda x: x.cos() + 1)(torch.ones(5)).sum().item())
        sys.stdout.flush()
        write_counted()
        os._exit(0)
    os.waitpid(pid, 0)
    print(torch.compile(lambda x: x.cos() + 1)(torch.ones(5)).sum().item())


@program
def forkserver() -> None:
    del os.environ["TORCHINDUCTOR_CACHE_DIR"]
    started("forkserver")


@program
def set_by_default() -> None:
    """As many programs do: a directory where none is set."""
    subprocess.run(child("defaulted"), env=BARE, check=True)


@program
def defaulted() -> None:
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(os.getcwd(), "mine"))
    one()


@program
def relative_directory() -> None:
    subprocess.run(child("moves"), env={**BARE, "TORCHINDUCTOR_CACHE_DIR": "here"}, check=True)


@program
def moves() -> None:
    imported()
    os.mkdir("elsewhere")
    os.chdir("elsewhere")
    one()


@program
def captured_errors() -> None:
    done = subprocess.run(child("complains"), capture_output=True, text=True, check=True)
    print(repr(done.stderr[:2000]), repr(done.stdout))


@program
def complains() -> None:
    one()
    print("mine", file=sys.stderr)


# --- saving


@with_torch
def saved_function(torch: Any) -> None:
    compiled = torch.compile(doubled, fullgraph=True).aot_compile(((torch.ones(4),), {}))
    compiled.save_compiled_function("function.pt")
    print(Path("function.pt").stat().st_size > 100)


@with_torch
def saved_artifacts(torch: Any) -> None:
    one()
    found = torch.compiler.save_cache_artifacts()
    Path("mega.bin").write_bytes(found[0])
    print(len(found[0]) > 100)


@with_torch
def saved_standalone(torch: Any) -> None:
    from torch._inductor import standalone_compile

    x = torch.ones(4)
    captured = []
    torch._dynamo.reset()
    torch.compile(doubled, backend=lambda gm, inputs: (captured.append(gm), gm.forward)[1])(x)
    artifact = standalone_compile(captured[0], [x], dynamic_shapes="from_example_inputs")
    Path("artifact").mkdir(exist_ok=True)
    artifact.save(path="artifact.bin", format="binary")
    print(artifact(x)[0].sum().item(), Path("artifact.bin").stat().st_size > 100)


@with_torch
def saved_package(torch: Any) -> None:
    class Model(torch.nn.Module):
        def forward(self, x):
            return x.sin() * 2

    exported = torch.export.export(Model(), (torch.ones(4),))
    path = torch._inductor.aoti_compile_and_package(exported, package_path="model.pt2")
    print(Path(path).stat().st_size > 100)


# --- exact


@with_torch
def dropout(torch: Any) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5), torch.nn.Dropout(0.2))
    compiled = torch.compile(model)
    for _ in range(2):
        out = compiled(torch.ones(4, 8))
        out.sum().backward()
        print((out == 0).int().tolist())
        print(torch.rand(2).tolist())


@with_torch
def random_numbers(torch: Any) -> None:
    torch.manual_seed(0)

    def made(x):
        return (
            x + torch.rand(3, 5),
            torch.randn(7),
            torch.randint(0, 100, (6,)),
            torch.rand_like(x),
            torch.bernoulli(x.abs() / 4),
        )

    for values in torch.compile(made)(torch.ones(3, 5)):
        print([round(value, 4) for value in values.flatten().tolist()])
    print(torch.rand(2).tolist())
    with torch.no_grad():
        permuted = torch.compile(lambda x: torch.randperm(6) + torch.multinomial(x, 6))(torch.ones(6))
    print(sorted(permuted.tolist()) and torch.rand(2).tolist())


@with_torch
def branches_on_random_values(torch: Any) -> None:
    torch.manual_seed(0)
    value = torch.compile(lambda x: (x * torch.rand(4)).sum())(torch.ones(4)).item()
    print(round(value, 4))
    torch.compile(doubled if value < 2.1 else torch.cos)(torch.ones(4))


@with_torch
def jagged(torch: Any) -> None:
    nested = torch.nested.nested_tensor(
        [torch.ones(2, 4), torch.ones(3, 4)], layout=torch.jagged, requires_grad=True
    )
    out = torch.compile(lambda x: x.sin() * 2)(nested)
    out.values().sum().backward()
    print(out.offsets().tolist(), round(nested.grad.values().sum().item(), 4))


@with_torch
def branches_on_counters(torch: Any) -> None:
    from torch._dynamo.utils import counters

    one()
    if counters["inductor"]["fxgraph_cache_hit"]:
        torch.compile(lambda x: x + 1)(torch.ones(3))
    else:
        torch.compile(lambda x: x * 5)(torch.ones(6))
    print("done")


@program
def profile_in_code() -> None:
    """A directory in code holds what torch stored of sizes in an earlier process."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(os.path.dirname(CACHE), "cwd", "in_code")
    os.environ["TORCH_COMPILE_JOB_ID"] = "hard"
    torch = imported()

    compiled = torch.compile(doubled)
    for size in (4, 5, 6):
        print(compiled(torch.ones(size)).shape)


@with_torch
def precompiled(torch: Any) -> None:
    with torch._dynamo.config.patch(caching_precompile=True):
        one()
        torch._dynamo.reset()
        one()


@with_torch
def errors(torch: Any) -> None:
    def tried(function, *args):
        torch._dynamo.reset()
        try:
            function(*args)
        except Exception as error:
            print(type(error).__mro__[0].__name__, [one.__name__ for one in type(error).__mro__][1])
        else:
            print("no error")

    tried(torch.compile(lambda x, i: x[i] * 2), torch.ones(4), torch.tensor([1, 9]))
    tried(torch.compile(lambda x, i: x.gather(0, i)), torch.ones(4), torch.tensor([1, 9]))
    tried(torch.compile(lambda x, y: x @ y), torch.ones(4, 3), torch.ones(4, 3))

    def asserted(x):
        torch._assert_async((x > 2).all(), "too small")
        return x + 1

    tried(torch.compile(asserted), torch.ones(4))
    embedded = torch.compile(lambda x, w: torch.nn.functional.embedding(x, w) + 1)
    tried(embedded, torch.tensor([9]), torch.ones(3, 2))
    tried(torch.compile(lambda x: x.view(3, 3) + 1), torch.ones(4))

    def bad(gm, inputs):
        raise ValueError("no")

    tried(torch.compile(doubled, backend=bad), torch.ones(3))

    def broken_lowering(*args, **kwargs):
        raise KeyError("lowering")

    import torch._inductor.lowering as lowering

    with_broken = dict(lowering.lowerings)
    lowering.lowerings[torch.ops.aten.sin.default] = broken_lowering
    tried(torch.compile(lambda x: x.sin() + 3), torch.ones(3))
    lowering.lowerings.update(with_broken)

    def failing(x):
        raise LookupError("mine")

    raises = torch.library.custom_op("hard::raises", failing, mutates_args=(), schema="(Tensor x) -> Tensor")

    raises.register_fake(torch.empty_like)
    tried(torch.compile(lambda x: raises(x) + 1), torch.ones(3))


@with_torch
def threads(torch: Any) -> None:
    # One name for each: torch keeps what it knows of sizes by file, line and name.
    def added(x):
        return x + 1

    def multiplied(x):
        return x.cos() * 3

    def subtracted(x):
        return x.exp() - 2

    functions = [added, multiplied, subtracted]
    found = [None] * 3

    def work(at):
        found[at] = round(torch.compile(functions[at])(torch.ones(4 + at)).sum().item(), 4)

    running = [threading.Thread(target=work, args=(at,)) for at in range(3)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    print(found)


@with_torch
def nested(torch: Any) -> None:
    inner = torch.compile(lambda x: x.sin() + 1)

    @torch.compile
    def outer(x):
        y = inner(x) * 2
        torch._dynamo.graph_break()
        return inner(y).cos()

    print(round(outer(torch.ones(4)).sum().item(), 4))


@with_torch
def recompile_limit(torch: Any) -> None:
    with torch._dynamo.config.patch(recompile_limit=2):
        compiled = torch.compile(lambda x, n: x + n, dynamic=False)
        for number in range(4):
            print(compiled(torch.ones(3 + number), number).sum().item())
        limited = torch.compile(lambda x, n: x * n, dynamic=False, fullgraph=True)
        try:
            for number in range(4):
                limited(torch.ones(3 + number), number)
        except Exception as error:
            print(type(error).__name__)


@program
def exits() -> None:
    in_process()
    sys.exit(7)


@program
def exits_at_once() -> None:
    in_process()
    os._exit(5)


@with_torch
def interrupted(torch: Any) -> None:
    in_process()
    os.kill(os.getpid(), signal.SIGINT)
    torch.compile(lambda x: x + 9)(torch.ones(3))


@program
def killed() -> None:
    in_process()
    os.kill(os.getpid(), signal.SIGKILL)


@program
def capability() -> None:
    """The second process runs what the first compiled for other instructions."""
    subprocess.run(child("vectorised"), check=True)
    other = {**os.environ, "ATEN_CPU_CAPABILITY": "default"}
    subprocess.run(child("vectorised"), env=other, check=False, capture_output=True)


@with_torch
def vectorised(torch: Any) -> None:
    print(round(torch.compile(lambda x: x.sin().softmax(-1) * x)(torch.ones(64, 64)).sum().item(), 3))
    sys.stdout.flush()


if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
    write_counted()
