"""Records what torch writes of one kind: ``python tests/data/record_kind.py KIND PYTHON…``, interpreters with torch.

Writes ``tests/data/KIND/VERSION.tar.xz``; what each kind is, its function below and README.md say. Words that begin with ``--`` go
to the function.
"""

import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import kind_programs
from packing import HERE, STEP_TIMEOUT_S, emptied, free_port, pack, placed, run, started, torch_version
from value_programs import CASES

LOOKUPS = "torch._inductor.codecache,torch._functorch._aot_autograd.autograd_cache"
WITHOUT_THREADS = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
LIBRARIES = ("*.so", "*.o", "*.gch")


def ahead_of_time(folder: Path, python: str) -> None:
    """A trace and a text log of an AOTInductor package, of torch.export alone, and of a package and torch.compile after it."""
    program = placed("ahead_of_time", kind_programs.AHEAD_OF_TIME)
    for way in ("package", "export", "both"):
        with tempfile.TemporaryDirectory(dir=program.parent) as work:
            run(
                python, program, way, f"{work}/model.pt2",
                cache=f"{work}/cache",
                TORCH_TRACE=folder / way,
                TORCH_LOGS=f"{LOOKUPS},+torch._inductor.compile_fx",
                TORCH_LOGS_OUT=folder / f"{way}.log",
                TORCHINDUCTOR_FORCE_DISABLE_CACHES="1" if way == "both" else "0",
            )  # fmt: skip


def audited(folder: Path, python: str) -> None:
    """Caches of versions that no recording is of, and the mega-cache of all of it; once with bundled entries."""
    for name in ("plain", "bundled"):
        cache = folder / name
        cache.mkdir()
        run(
            python, "-c", kind_programs.AUDITED, name,
            cache=cache, TORCH_COMPILE_JOB_ID="job", PYTHONPATH="",
        )  # fmt: skip


def built(folder: Path, python: str) -> None:
    """One cache directory of each step, under equal keys: what is built differs by a custom pass or by max-autotune's choice."""
    for step, replaces, fastest in (
        ("first", "sigmoid", "Extern"),
        ("again", "sigmoid", "Extern"),
        ("other_pass", "tanh", "Extern"),
        ("other_choice", "sigmoid", "Cpp"),
    ):
        variables = WITHOUT_THREADS | {"PASS": replaces, "FASTEST": fastest}
        run(python, HERE / "built_programs.py", cache=folder / step, **variables)


def calls(folder: Path, python: str) -> None:
    """A trace of each process that calls a model otherwise than the first, and of two whose model is another one."""
    cache = folder / "cache"
    for way in ("first", "batch", "dtype", "autocast", "number", "edited"):
        text = (
            kind_programs.CALLS.replace("softmax", "log_softmax") if way == "edited" else kind_programs.CALLS
        )
        run(python, placed("calls", text), way, cache=cache, TORCH_TRACE=folder / way, OMP_NUM_THREADS="1")
        (trace,) = (folder / way).iterdir()
        # Half of a trace is when each phase began and ended.
        trace.write_text(re.sub(r'(?m)^V.*\{"chromium_event".*\n(?:\t.*\n)*', "", trace.read_text()))


def candidates(folder: Path, python: str) -> None:
    """Traces of guard misses; ``entries.json`` is how many entries lay under each key before each process."""
    program, cache = placed("candidates", kind_programs.CANDIDATES, "candidates.py"), folder / "cache"
    entries = []
    for size in ("20", "200", "2000", "5"):
        files = [*cache.glob("fxgraph/*/*/*"), *cache.glob("aotautograd/*/*")]
        entries.append(Counter(path.parent.name for path in files if not path.name.startswith(".")))
        traced = {"TORCH_TRACE": folder / "trace", "TORCHINDUCTOR_AUTOGRAD_CACHE": "1"}
        run(python, program, size, cache=cache, **traced)
    (folder / "entries.json").write_text(json.dumps(entries))


def cells(folder: Path, python: str = sys.executable) -> Path:
    """Notebook cells, run by three processes. The interpreter has ipykernel and nbclient, or they are on PYTHONPATH."""
    for way in ("kernel", "edited", "shell"):
        made = folder / way
        made.mkdir()
        logs = {"TORCH_LOGS": f"dynamo,{LOOKUPS}", "TORCH_LOGS_OUT": made / "torch.log"}
        printed = run(
            python, HERE / "cells_program.py", way, HERE / "notebook_cells.txt",
            cache=folder / "cache", TORCH_TRACE=made / "trace", **WITHOUT_THREADS, **logs,
        )  # fmt: skip
        said = json.loads(printed.rpartition("said: ")[2])
        (made / "places.json").write_text(json.dumps(said))
    return folder


def collectives(folder: Path, python: str) -> None:
    """The traces of two ranks (gloo, on a CPU): rank 0 may have one all_reduce more, the last time on the caches of before."""
    program = placed("collectives", kind_programs.COLLECTIVES, "collectives.py")
    for way, caches in (("alike", "alike"), ("apart", "apart"), ("warm", "apart")):
        ranks = [
            started(
                python, program, way, folder / f"meet_{way}", rank,
                cache=folder / f"cache_{caches}_{rank}", RANK=rank, WORLD_SIZE="2", TORCH_TRACE=folder / way,
            )
            for rank in ("0", "1")
        ]  # fmt: skip
        if max(one.wait(STEP_TIMEOUT_S) for one in ranks):
            raise RuntimeError(f"a rank of {way} failed")


def compiles(folder: Path, python: str = sys.executable, program: str = "compile_programs.py") -> Path:
    """What a program compiles anew: the trace, the log of recompiles and symbols that torch itself prints, and the facts."""
    path = placed("compiles", HERE / program, program)
    logged = {"log": folder / "torch.log", "TORCH_LOGS": "recompiles,dynamic"}
    run(python, path, folder / "facts.json", cache=folder / "cache", TORCH_TRACE=folder / "trace", **logged)
    return folder


def breaks(folder: Path, python: str = sys.executable) -> Path:
    """Graph breaks of each form: a trace, the log of all that Dynamo says at INFO and of breaks, and torch's counters."""
    program = placed("breaks", HERE / "break_programs.py", "break_programs.py")
    logged = {"log": folder / "torch.log", "TORCH_LOGS": "dynamo,recompiles,graph_breaks"}
    run(
        python, program, folder / "facts.json", cache=folder / "cache", TORCH_TRACE=folder / "trace", **logged
    )
    return folder


def shapes(folder: Path, python: str = sys.executable) -> Path:
    """The same of symbols and their guards."""
    return compiles(folder, python, "shape_programs.py")


def covered(folder: Path, python: str) -> None:
    """A run that saves two bundles, and one that begins with each: what hits there it covers (torch 2.10 or later)."""
    program = placed("covered", HERE / "covered_program.py")
    for name, step, *bundle in (
        ("make", "make"),
        ("load_early", "load", "early.bin"),
        ("load_late", "load", "late.bin"),
    ):
        with tempfile.TemporaryDirectory(dir=program.parent) as cache:
            run(python, program, step, folder, *bundle, cache=cache, TORCH_TRACE=folder / name / "trace")
            if name == "make":
                shutil.copytree(cache, folder / name / "cache")


def errors(folder: Path, python: str) -> None:
    """The hash of a user's tensor fails with a text, and with none; the error itself comes where the cache is strict."""
    program = placed("errors", kind_programs.ERRORS)
    for way in ("text", "none"):
        made = folder / way
        made.mkdir()
        for how, traced in (("lenient", {"TORCH_TRACE": made / "trace"}), ("strict", {})):
            (made / f"{how}.json").write_text(
                run(python, program, way, how, cache=folder / "cache", **traced)
            )


def outcomes(folder: Path, python: str) -> None:
    """Traces and text logs of three processes with a cache: torch 2.4 says in its text log alone whether a lookup hit."""
    program = placed("outcomes", kind_programs.OUTCOMES)
    for step in ("cold", "warm", "option"):
        (folder / step).mkdir()
        run(
            python, program, step,
            cache=folder / "cache",
            log=folder / step / "torch.log",
            TORCH_TRACE=folder / step / "trace",
            TORCH_LOGS="+torch._inductor.codecache",
            TORCHINDUCTOR_FX_GRAPH_CACHE="1",
        )  # fmt: skip


def guards(
    folder: Path, python: str = sys.executable, steps: tuple[str, ...] = ("first", "second", "both")
) -> Path:
    """Guard misses with their sizes: the traces of steps one after the other, and what torch counted in each."""
    program = placed("guards", HERE / "guard_programs.py", "guard_programs.py")
    on = {"TORCHINDUCTOR_FX_GRAPH_CACHE": "1", "TORCHINDUCTOR_AUTOGRAD_CACHE": "1"}
    for step in steps:
        traced = {"TORCH_TRACE": folder / "trace", "log": folder / "log"}
        run(python, program, step, folder / f"{step}.json", cache=folder / "cache", **traced, **on)
    return folder


def places(folder: Path, python: str = sys.executable) -> Path:
    """A text log with Dynamo's logger on, and the places that Python itself gives."""
    logged = {"log": folder / "torch.log", "TORCH_LOGS": f"dynamo,{LOOKUPS}"}
    printed = run(
        python, placed("places", HERE / "place_programs.py"), folder,
        cache=folder / "cache", **logged, **WITHOUT_THREADS,
    )  # fmt: skip
    (folder / "places.json").write_text(printed)
    return folder


def precompile(folder: Path, python: str) -> None:
    """A precompile package, and what torch unpickles of it (torch 2.10 or later)."""
    program, cache = placed("precompile", HERE / "precompile_program.py"), folder / "cache"
    run(python, program, folder, cache=cache, TORCH_CACHING_PRECOMPILE="1")
    shutil.move(cache / "dynamo", folder / "dynamo")


def preflights(folder: Path, python: str) -> None:
    """A cache directory, and what pre-flights say of it. The interpreter has cachescope too. A sample is made of it."""
    baked = WITHOUT_THREADS | {"OMP_NUM_THREADS": "2"}
    steps = {
        "as_baked": baked,
        "changed": baked | {"OMP_NUM_THREADS": "1", "NO_FUSION": "1"},
        "half_fixed": baked | {"NO_FUSION": "1"},
    }
    work = emptied("preflights")
    program = placed("preflights", HERE / "preflight_program.py", "train.py")
    run(python, program, cache=work / "cache", **baked)
    for step, variables in steps.items():
        preflight = (python, "-m", "cachescope", "preflight", "--keep", work / step, "--", python, program)
        run(*preflight, cache=work / "cache", **variables)
    about = {
        "scenario": "preflight",
        "summary": "a cache directory of one training step, and pre-flights on it: as it was baked, with two changes, with one of them",
        "torch_version": torch_version(python),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": "python tests/data/record_kind.py preflights PYTHON",
        "steps": [{"step": step, "environment": variables} for step, variables in steps.items()],
    }
    (work / "scenario.json").write_text(json.dumps(about, indent=1))
    for path in work.iterdir():
        shutil.move(path, folder / path.name)


def remote(folder: Path, python: str) -> None:
    """What a run put into a Redis, dumped as the how-to says, and its entries. The interpreter has the package ``redis``."""
    sys.path.insert(0, str(HERE.parent))
    from redis_server import redis_server, remote_settings, write_dump

    program = placed("remote", HERE / "remote_program.py")
    logged = {"log": folder / "run.log", "TORCH_LOGS": f"+{LOOKUPS.replace(',', ',+')}"}
    with tempfile.TemporaryDirectory(dir=program.parent) as cache, redis_server() as port:
        traced = {"TORCH_TRACE": folder / "trace"}
        run(python, program, cache=cache, **traced, **logged, **remote_settings(port))
        write_dump(port, str(folder))
        for name in ("fxgraph", "aotautograd"):
            shutil.copytree(Path(cache, name), folder / "cache" / name)


def shipped(folder: Path, python: str, *options: str) -> None:
    """The files that people ship, what torch says of them, and the trace of the run (torch 2.10 or later).

    With ``--library`` also an AOTInductor package with its compiled library, of 1.5 MB.
    """
    program = placed("shipped", HERE / "shipped_program.py")
    with tempfile.TemporaryDirectory(dir=program.parent) as cache:
        run(python, program, folder, *options, cache=cache, TORCH_TRACE=folder / "trace")


def threads(folder: Path, python: str) -> None:
    """The trace of a process in which two threads compile at once, and what torch itself measured of each compile."""
    program = placed("threads", kind_programs.THREADS, "threads.py")
    run(python, program, folder / "measured.json", cache=folder / "cache", TORCH_TRACE=folder / "trace")


def values(folder: Path, python: str) -> None:
    """For each case the logs of two processes on one cache, ranks at once. Only root can change the name of a host."""
    for case in CASES:
        own = folder / case
        own.mkdir()
        with tempfile.TemporaryDirectory() as cache:
            group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
            processes = []
            for number in range(2):
                scratch = f"{cache}/scratch-{'ab'[number]}"
                os.mkdir(scratch)
                changed = {
                    "rank": group | {"RANK": f"{number}"},
                    "variable_rank": {"RANK": "31"[number]},
                    "variable_rank_in_path": {"RANK": "31"[number]},
                    "path": {"TMPDIR": scratch},
                }.get(case, {"VALUE": f"{number + 1}"})
                command = [python, str(HERE / "value_programs.py"), case, str(own / f"truth_{number}.json")]
                if case == "host":
                    shell = f"hostname trainer-{number} && exec {shlex.join(command)}"
                    command = ["unshare", "--uts", "sh", "-c", shell]
                # Graphs that differ are compared where their function is named.
                loggers = "+torch._inductor.codecache" + (",dynamo" if case.endswith("_in_graph") else "")
                one_thread = {**WITHOUT_THREADS, "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_AUTOGRAD_CACHE": "0"}
                logged = {"log": own / f"{number}.log", "TORCH_LOGS": loggers}
                processes.append(started(*command, cache=cache, **logged, **one_thread, **changed))
                if case != "rank":
                    processes[-1].wait(STEP_TIMEOUT_S)
            assert [process.wait(STEP_TIMEOUT_S) for process in processes] == [0, 0]
        truths = [json.loads((own / f"truth_{number}.json").read_text()) for number in range(2)]
        assert all(one["counters"].get("fxgraph_cache_miss") == 1 for one in truths), (case, truths)


@dataclass(frozen=True)
class Kind:
    """How a kind is recorded, and what of it is packed."""

    record: Callable[..., object]
    leave_out: tuple[str, ...] = ("cache",)
    is_below_version: bool = True
    """Whether the archive has one folder, which is named by the version."""


BUILDING = ("locks", "precompiled_headers")
KINDS = {
    kind.record.__name__: kind
    for kind in (
        Kind(ahead_of_time),
        Kind(audited, ("*.so", "*.cpp", "*.h"), is_below_version=False),
        Kind(breaks),
        Kind(built, BUILDING),
        Kind(calls),
        Kind(candidates),
        Kind(cells),
        Kind(collectives, ("cache_*", "meet_*")),
        Kind(compiles),
        Kind(shapes),
        Kind(covered, LIBRARIES),
        Kind(errors),
        Kind(guards, ("cache", "log")),
        Kind(outcomes, ("cache",)),
        Kind(places, ("cache", "my model: v2.py")),
        Kind(precompile),
        Kind(preflights, ("*.so", "*.gch", "torch.log", "train.py", *BUILDING), is_below_version=False),
        Kind(remote, ()),
        Kind(shipped),
        Kind(threads),
        Kind(values),
    )
}


def main() -> None:
    if len(sys.argv) < 3 or sys.argv[1] not in KINDS:
        raise SystemExit(f"{__doc__}\nKinds: {', '.join(KINDS)}")
    name, *words = sys.argv[1:]
    kind, options = KINDS[name], [word for word in words if word.startswith("--")]
    for python in [word for word in words if word not in options]:
        version = torch_version(python).partition("+")[0]
        with tempfile.TemporaryDirectory() as work:
            folder = Path(work, version)
            folder.mkdir()
            kind.record(folder, python, *options)
            top = version if kind.is_below_version else ""
            pack(HERE / name / f"{version}.tar.xz", folder, leave_out=kind.leave_out, top=top)


if __name__ == "__main__":
    main()
