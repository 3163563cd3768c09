"""Record whole cache directories that real torch and real Triton wrote, every file of them.

    python record_directories.py [--only NAME ...] [--venvs /tmp/venvs]

Each directory of DIRECTORIES is made in /tmp/cachescope-recording/directories/<name> and packed as
directories/<name>.tar.xz with provenance.json. Plain standard library; the processes it starts need torch or Triton.
Names, sizes and times are those torch wrote. The content is too, but for large compiled files: where an archive would
grow past a megabyte, their bytes are replaced by as many zero bytes, and provenance.json lists each with its sha256.
"""

import argparse
import datetime
import hashlib
import json
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packing import HERE, MAX_ARCHIVE_BYTES, STEP_TIMEOUT_S, WORKSHOP, emptied, torch_version, without_owner
from record import base_environment

PROGRAMS = "record_programs.py"
OWN_PROGRAMS = "directory_programs.py"
TRITON_PROGRAM = "record_triton.py"
COMPILE_TRITON = "compile_triton.py"
# What a compiler wrote: the only files whose content may be replaced.
COMPILED = (".so", ".o", ".gch", ".cubin", ".a")
# Tried in turn until the archive is small enough: compiled files of at least this many bytes lose their content.
THRESHOLDS = (2_000_000, 500_000, 100_000, 50_000, 10_000, 1)
CACHE_ARTIFACTS = ("fx_graph_cache_", "aotautograd_cache_")
FUNCTIONS = ("functions", "--functions")


@dataclass(frozen=True, slots=True)
class Step:
    """One process: a program, and which folder of the directory is its TORCHINDUCTOR_CACHE_DIR."""

    name: str
    what: str
    arguments: tuple[str, ...]
    program: str = PROGRAMS
    environment: Mapping[str, str] = field(default_factory=dict)
    cache: str = "cache"
    # A process that is killed on purpose, or that a known bug ends, returns this.
    return_codes: tuple[int, ...] = (0,)
    venv: str | None = None


@dataclass(frozen=True, slots=True)
class Directory:
    """Steps, one after the other, that fill one directory."""

    name: str
    summary: str
    venv: str
    steps: tuple[Step, ...]


def compiled(name: str, what: str, *arguments: str, **more: Any) -> Step:
    """A program of record_programs.py."""
    return Step(name, what, arguments, PROGRAMS, **more)


def own(name: str, what: str, *arguments: str, **more: Any) -> Step:
    """A program of directory_programs.py."""
    return Step(name, what, arguments, OWN_PROGRAMS, **more)


DYNAMIC = ("functions", "--mark-dynamic", "--functions", "branch_on_size", "--batch")
BASIC = (
    compiled("inference", "two functions", *FUNCTIONS, "matmul_relu,softmax_rows"),
    compiled("inference_again", "the same: hits", *FUNCTIONS, "matmul_relu,softmax_rows"),
    compiled("training", "forward and backward of an MLP", "training"),
    compiled(
        "training_option", "the same with another option", "training", "--option", "epilogue_fusion=false"
    ),
    compiled("dynamic_20", "dynamic batch, 20", *DYNAMIC, "20"),
    compiled("dynamic_5", "dynamic batch, 5: the guard fails, a second variant under the key", *DYNAMIC, "5"),
)
AUTOTUNE = own("max_autotune", "a frozen MLP with max_autotune: writes cache/<system hash>", "max_autotune")
BLOB = ("--file", "mega_cache.bin")
MEGA = (
    own("mega_save", "compile, then torch.compiler.save_cache_artifacts to mega_cache.bin", "mega_save",
        *BLOB),
    own("mega_load", "load_cache_artifacts in a new process with the empty directory loaded/, then compile",
        "mega_load", *BLOB, cache="loaded"),
)  # fmt: skip
# 2.6 has PGO, switched off.
JOB = {"TORCH_COMPILE_JOB_ID": "cachescope:job/1", "TORCH_DYNAMO_AUTOMATIC_DYNAMIC_LOCAL_PGO": "1"}
PGO = (
    own("pgo", "automatic dynamic shapes under a job id", "automatic_dynamic", environment=JOB),
    own("pgo_again", "the same job again: its code state is read", "automatic_dynamic", environment=JOB),
)
CACHING = {"TORCHINDUCTOR_ENABLE_CACHING_MODULE": "1"}
DUMP = {**CACHING, "TORCHINDUCTOR_DUMP_MEMOIZER_CACHE": "1"}

MAIN_STEPS = (
    *BASIC,
    *MEGA,
    *PGO,
    own("pgo_sticky", "another job id, with a further key to write to (TORCH_COMPILE_STICKY_PGO_WRITE)",
        "automatic_dynamic",
        environment={"TORCH_COMPILE_JOB_ID": "other", "TORCH_COMPILE_STICKY_PGO_WRITE": "sticky"}),
    own("mega_save_pgo", "mega_save under a job id: the blob mega_cache_pgo.bin holds a pgo artifact too",
        "mega_save", "--file", "mega_cache_pgo.bin", environment=JOB),
    AUTOTUNE,
    compiled("cpp_wrapper", "options cpp_wrapper=True: precompiled headers", "functions", "--option",
        "cpp_wrapper=true"),
    own("bundled", "bundled_autograd_cache=True", "bundled"),
    own("precompile",
        "TORCH_CACHING_PRECOMPILE=1, then save_cache_artifacts, which writes dynamo/<id>/entry",
        "precompile", "--file", "mega_cache_precompile.bin", environment={"TORCH_CACHING_PRECOMPILE": "1"}),
    compiled("force_disabled", "all caches force-disabled: leaves tmpXXXXXXXX inside", *FUNCTIONS,
        "gated_relu", environment={"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}),
    own("on_disk_cache", "torch._inductor.cache InductorOnDiskCache and OnDiskCache", "on_disk_cache"),
    own("should_pad",
        "pad_mm._should_pad called directly on fake CPU tensors, force_shape_pad=True (without it a GPU is asked)",
        "should_pad", environment=DUMP),
    own("memoizer", "Memoizer and PersistentMemoizer of one's own, dump at exit", "memoizer",
        environment=DUMP),
    own("text_file", "codecache.write_text and write", "graph_file"),
    own("killed_fx", "killed (SIGKILL) in write_atomic between write and rename, below fxgraph",
        "killed_writer", return_codes=(-9,)),
    own("killed_aot", "the same below aotautograd", "killed_writer", "--below", "aotautograd",
        return_codes=(-9,)),
)  # fmt: skip

# fcache and dcache would find each other's files, as the names do not say which wrote them: dcache gets its own root.
DCACHE = {
    **CACHING,
    "TORCHINDUCTOR_ENABLE_DETERMINISTIC_CACHING": "1",
    "TMPDIR": "{folder}/deterministic_root",
}
CACHING_STEPS = (
    own("fcache", "fcache: plain, encoded, isolated, failing", "caching", environment=CACHING),
    own("fcache_again", "the same in a new process: read from disk", "caching", environment=CACHING),
    own("dcache", "dcache: the same functions; dumps imc.save at exit", "caching", "--interface", "dcache",
        environment=DCACHE, cache="cache_deterministic"),
    own("icache",
        "icache, with deterministic caching on, is dcache: one new parameter is merged into imc.save",
        "caching", "--interface", "icache", "--extra", "only of the second process", environment=DCACHE,
        cache="cache_deterministic"),
    own("lock", "the lock of a folder without entries", "caching_lock", environment=CACHING),
)  # fmt: skip


def triton_step(venv: str) -> Step:
    return Step(
        f"triton_{venv}",
        f"two kernels for sm_80 and sm_90, one with two options, by the Triton of {venv}",
        (),
        TRITON_PROGRAM,
        cache=f"triton_{venv}",
        venv=venv,
    )


def compile_triton(venv: str, name: str, what: str, *arguments: str, **more: Any) -> Step:
    """torch.compile writing Triton kernels for sm_90 without a GPU; what stands in for one is in the program."""
    return Step(f"{name}_{venv}", what, arguments, COMPILE_TRITON, cache=f"cache_{venv}", venv=venv, **more)


TWO_GRAPHS = "two graphs in Triton for sm_90: kernels, best configurations, bundles, Triton directories"
TAG = {"TORCH_COMPILE_CACHE_KEY_TAG": "nightly"}
TRITON_KERNEL_STEPS = (
    *(compile_triton(venv, "kernels", TWO_GRAPHS) for venv in ("t2150", "t2100", "t260")),
    compile_triton("t2150", "tagged", "the same under a cache key tag: further best configurations",
        environment=TAG),
    compile_triton("t260", "tagged", "the same for 2.6", environment=TAG),
)  # fmt: skip

# Flags of the compiler: the generated source stays the same, and the compiled kernels get other names.
SOFTMAX = ("functions", "--functions", "softmax_rows")
FLAG_STEPS = (
    compiled("plain", "one function", *SOFTMAX),
    compiled("tagged", "the same under a cache key tag: the same kernel file is loaded", *SOFTMAX,
        environment=TAG),
    compiled("unsafe_math",
        "the same with a flag for the C++ compiler, -funsafe-math-optimizations or its like", *SOFTMAX,
        "--option", "cpp.enable_unsafe_math_opt_flag=true"),
)  # fmt: skip


# What the README's commands put there: the environment t280, nvidia-cutlass in cutlass/, and a tree as CUTLASS has it.
TOOLS = WORKSHOP / "directories" / "_tools"


def cutlass_step(venv: str, tree: str, what: str, *arguments: str) -> Step:
    return own(
        f"cutlass_{venv}",
        f"configs_<8 hex>.json: named by get_config_request_key; {what}",
        "cutlass",
        *arguments,
        environment={"TORCHINDUCTOR_CUTLASS_DIR": str(TOOLS / tree)},
        cache=f"cache_{venv}",
        venv=venv,
    )


SERIALIZED = "operations of cutlass_library 4.2, serialized by torch"


CUTLASS_STEPS = (
    cutlass_step("t2130", "cutlass_tree", SERIALIZED),
    cutlass_step("t2100", "cutlass_tree", SERIALIZED),
    cutlass_step("t280", "cutlass_tree_3.8",
        "the wheel of 2.8 lacks the folders it links to, so it imports no CUTLASS: contents are those of cutlass_t2130",
        "--operations", "cache_t2130"),
    own("other_cutlass_key",
        "names only, with a CUTLASS folder at whose top pkgutil finds modules: the key is not that of no bytes",
        "cutlass", "--names-only", environment={"TORCHINDUCTOR_CUTLASS_DIR": str(TOOLS / "cutlass")},
        cache="cache_t2130"),
)  # fmt: skip

DIRECTORIES = (
    Directory("torch_2.13.0", "everything a CPU run of 2.13.0 leaves", "t2130", MAIN_STEPS),
    Directory("triton_cross", "Triton 3.9, 3.6, 3.4 and 3.2 compiling for sm_80 and sm_90 without a GPU",
        "t2150",
        tuple(triton_step(venv) for venv in ("t2150", "t2100", "t280", "t260"))),
    Directory("caching_2.10.0", "fcache and dcache of 2.10", "t2100", CACHING_STEPS),
    Directory("torch_2.15.0", "a CPU run of 2.15.0", "t2150", (*BASIC, *MEGA, *PGO, AUTOTUNE)),
    Directory("torch_2.10.0", "a CPU run of 2.10.0", "t2100", (*BASIC, *MEGA, *PGO, AUTOTUNE)),
    Directory("torch_2.6.0", "a CPU run of 2.6.0, which has no mega-cache", "t260",
        (*BASIC, *PGO, AUTOTUNE)),
    Directory("triton_kernels",
        "Triton kernels that torch.compile of 2.15, 2.10 and 2.6 made for sm_90 without a GPU", "t2150",
        TRITON_KERNEL_STEPS),
    Directory("compile_flags",
        "one graph of 2.13.0 under three keys: equal wrappers, of which one has another compiled kernel",
        "t2130",
        FLAG_STEPS),
    Directory("cutlass_configs", "CUTLASS op lists named by 2.13, 2.10 and 2.8", "t2130", CUTLASS_STEPS),
)  # fmt: skip


def step_environment(folder: Path, step: Step) -> dict[str, str]:
    """Where this step's caches are; TMPDIR and USER put the default root inside the recorded folder."""
    environment = {
        "TMPDIR": str(folder / "default_root"),
        "USER": "recorder",
        "LOGNAME": "recorder",
        "TORCHINDUCTOR_CACHE_DIR": str(folder / step.cache),
    }
    if step.program == TRITON_PROGRAM:
        environment["TRITON_CACHE_DIR"] = environment.pop("TORCHINDUCTOR_CACHE_DIR")
    return environment | {name: value.format(folder=folder) for name, value in step.environment.items()}


def cache_lookups(trace: Path) -> list[dict[str, Any]]:
    """Torch's own word on each lookup, from the trace artifacts: what was asked for and what came of it."""
    asked = ("key", "cache_state", "cache_status_detailed", "cache_status_guard_expr")
    lookups = []
    for file in sorted(trace.glob("*")):
        # Of each record the line, and the lines of its payload, which begin with a tab.
        for record in re.split(rb"\n(?!\t)", file.read_bytes()):
            line, _, payload = record.partition(b"\n\t")
            name = artifact_name(line)
            if name.startswith(CACHE_ARTIFACTS):
                content = json.loads(payload.replace(b"\n\t", b"\n"))
                found = {"artifact": name, **{field_name: content.get(field_name) for field_name in asked}}
                lookups.append({**found, "components": len(content.get("components") or ())})
    return lookups


def artifact_name(line: bytes) -> str:
    start = line.find(b"{")
    if b'"artifact"' not in line or start < 0:
        return ""
    name: str = json.loads(line[start:]).get("artifact", {}).get("name", "")
    return name


def inventory(folder: Path) -> list[dict[str, Any]]:
    """Every file, folder and link: path, kind, size and time of modification."""
    rows = []
    for path in tree(folder):
        status = path.lstat()
        kind = "link" if stat.S_ISLNK(status.st_mode) else "folder" if path.is_dir() else "file"
        row: dict[str, Any] = {"path": str(path.relative_to(folder)), "kind": kind}
        if kind == "file":
            row |= {"size": status.st_size, "mtime_ns": status.st_mtime_ns}
        elif kind == "link":
            row["target"] = os.readlink(path)
        rows.append(row)
    return rows


def tree(folder: Path) -> list[Path]:
    """All below, links not followed; this recorder's own files are kept out."""
    own = (folder / "provenance.json", folder / "work")
    return [path for path in sorted(folder.rglob("*")) if not any(map(path.is_relative_to, own))]


def paths_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in tree(folder)}


def run_step(folder: Path, step: Step, number: int, python: Path, base: dict[str, str]) -> dict[str, Any]:
    """Run one process and say what it was, what it left, and what torch itself says about it."""
    label = f"{number:02d}_{step.name}"
    work = folder / "work"
    report, trace, log = work / f"{label}.json", work / label, work / f"{label}.log"
    trace.mkdir()
    environment = step_environment(folder, step)
    Path(environment["TMPDIR"]).mkdir(exist_ok=True)
    command = [str(python), str(work / step.program), *step.arguments, "--report", str(report)]
    before = paths_below(folder)
    with log.open("wb") as stderr:
        finished = subprocess.run(
            command,
            cwd=folder,
            env=base | {"TORCH_TRACE": str(trace)} | environment,
            stdout=stderr,
            stderr=stderr,
            timeout=STEP_TIMEOUT_S,
            check=False,
        )
    if finished.returncode not in step.return_codes:
        raise RuntimeError(f"{label} returned {finished.returncode}; see {log}")
    written = json.loads(report.read_text()) if report.exists() else {}
    return {
        "step": label,
        "what": step.what,
        "command": command,
        "environment": environment,
        "return_code": finished.returncode,
        "versions": {key: written[key] for key in written if key.endswith("_version")},
        "new": sorted(paths_below(folder) - before),
        "lookups": cache_lookups(trace),
        "truth": written.get("truth", {"counters": written.get("counters")}),
    }


def package_version(python: Path, package: str) -> str | None:
    question = f"import importlib.metadata as m; print(m.version({package!r}))"
    answer = subprocess.run([python, "-c", question], check=False, capture_output=True, text=True)
    return answer.stdout.strip() or None


def interpreter(venvs: Path, venv: str) -> Path:
    """t280 is not among the machine's environments; it is looked for among the recorder's tools too."""
    for parent in (venvs, TOOLS):
        if (parent / venv / "bin" / "python").exists():
            return parent / venv / "bin" / "python"
    raise FileNotFoundError(f"no interpreter {venv} in {venvs}")


def record_directory(directory: Directory, venvs: Path) -> Path:
    """Run all steps in an empty folder and write provenance.json beside what torch wrote."""
    folder = emptied("directories", directory.name)
    (folder / "work").mkdir()
    for program in (PROGRAMS, OWN_PROGRAMS, TRITON_PROGRAM, COMPILE_TRITON):
        shutil.copy(HERE / program, folder / "work")
    pythons = {step.venv or directory.venv for step in directory.steps}
    versions = {}
    for venv in sorted(pythons):
        python = interpreter(venvs, venv)
        versions[venv] = {name: package_version(python, name) for name in ("torch", "triton")}
    base = base_environment(folder / "work", torch_version(interpreter(venvs, directory.venv)))
    (folder / "work" / "home").mkdir()
    steps = []
    for number, step in enumerate(directory.steps):
        python = interpreter(venvs, step.venv or directory.venv)
        steps.append(run_step(folder, step, number, python, base))
        print(f"  {directory.name}: {steps[-1]['step']}", flush=True)
    provenance = {
        "directory": directory.name,
        "summary": directory.summary,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": f"python tests/data/record_directories.py --only {directory.name}",
        "platform": f"{platform.system()} {platform.machine()}",
        "versions": versions,
        "environment": base,
        "root": str(folder),
        "steps": steps,
        "files": inventory(folder),
        "emptied": [],
    }
    (folder / "provenance.json").write_text(json.dumps(provenance, indent=1) + "\n")
    return folder


def emptied_rows(folder: Path, threshold: int) -> list[dict[str, Any]]:
    """The files whose content the archive replaces by zero bytes of the same length."""
    files = [path for path in tree(folder) if path.is_file() and not path.is_symlink()]
    return [
        {
            "path": str(path.relative_to(folder)),
            "size": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for path in files
        if path.suffix in COMPILED and path.stat().st_size >= threshold
    ]


def add_file(tar: tarfile.TarFile, path: Path, name: str, empty: bool) -> None:
    """Add one path; `empty` keeps its size as a hole, which is read as zero bytes and takes no room when extracted."""
    info = without_owner(tar.gettarinfo(path, arcname=name))
    if not info.isfile():
        tar.addfile(info)
    elif empty:
        info.pax_headers = {
            "GNU.sparse.size": str(info.size),
            "GNU.sparse.numblocks": "1",
            "GNU.sparse.map": f"{info.size},0",
        }
        info.size = 0
        tar.addfile(info)
    else:
        with path.open("rb") as content:
            tar.addfile(info, content)


def write_archive(folder: Path, archive: Path, threshold: int) -> int:
    provenance = json.loads((folder / "provenance.json").read_text())
    provenance["emptied"] = emptied_rows(folder, threshold)
    (folder / "provenance.json").write_text(json.dumps(provenance, indent=1) + "\n")
    emptied = {row["path"] for row in provenance["emptied"]}
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:xz", format=tarfile.PAX_FORMAT, preset=9) as tar:
        for path in (folder / "provenance.json", *tree(folder)):
            name = str(path.relative_to(folder))
            add_file(tar, path, name, name in emptied)
    return archive.stat().st_size


def pack_directory(folder: Path, archive: Path) -> int:
    """Pack all, emptying no more compiled files than the limit on the size asks for."""
    for threshold in THRESHOLDS:
        size = write_archive(folder, archive, threshold)
        if size <= MAX_ARCHIVE_BYTES:
            return size
    raise RuntimeError(f"{archive} has {archive.stat().st_size} bytes; the limit is {MAX_ARCHIVE_BYTES}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--venvs", type=Path, default=Path("/tmp/venvs"), help="folder of virtual environments"
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    arguments = parser.parse_args()
    known = {directory.name: directory for directory in DIRECTORIES}
    if unknown := sorted(set(arguments.only) - set(known)):
        raise SystemExit(f"no such directory: {', '.join(unknown)}; known: {', '.join(known)}")
    failures = 0
    for name in arguments.only or known:
        try:
            folder = record_directory(known[name], arguments.venvs)
            print(
                f"{name}: {pack_directory(folder, HERE / 'directories' / f'{name}.tar.xz')} bytes", flush=True
            )
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            failures += 1
            print(f"FAILED {name}: {error}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
