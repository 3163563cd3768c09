"""Record what real torch processes write about their caches; the results are the data that the tests read.

    python record.py --python /path/to/venv/bin/python [--only NAME ...] [--jobs 2] [--earlier /path/to/other/bin/python ...]

Each scenario of recording_scenarios.py runs in /tmp/cachescope-recording/<torch version>/<scenario>, so that no path of
the machine gets into the data, and is packed as recordings/<torch version>/<scenario>.tar.xz. Of a version without a list of
its own a few are recorded, and packed together as releases/<torch version>.tar.xz. Plain standard library;
only the processes it starts need torch. What torch wrote is packed unchanged.
"""

import argparse
import contextlib
import datetime
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import IO, Any

from packing import HERE, STEP_TIMEOUT_S, WORKSHOP, emptied, free_port, pack, torch_version
from recording_conditions import CONDITIONS, OTHER_USER, unmount_all
from recording_scenarios import DEBUG_LOGGERS, FEW, SCENARIOS, Damage, Scenario, Step

PROGRAMS = ("record_programs.py", "failing_programs.py")
# What of a step is told as it is.
TOLD = ("name", "differs", "edits", "before", "is_other_user", "cache", "lead")
# Generated code above this size is left out: no question that the tests ask needs it.
MAX_CODE_BYTES = 100_000


def base_environment(version_folder: Path, torch_release: str) -> dict[str, str]:
    """A small environment of its own: nothing of the caller's shell reaches torch or the data."""
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(version_folder / "home"),
        "TMPDIR": str(version_folder / "tmp"),
        "LANG": "C.UTF-8",
        # Log lines carry no time zone.
        "TZ": "UTC",
    }
    # The AOTAutograd cache is on by default from 2.7.
    for release, variable in (
        ("2.5.", "ENABLE_AOT_AUTOGRAD_CACHE"),
        ("2.6.", "TORCHINDUCTOR_AUTOGRAD_CACHE"),
    ):
        if torch_release.startswith(release):
            environment[variable] = "1"
    return environment


def recording_environment(folder: Path, scenario: Scenario, step: Step) -> dict[str, str]:
    """The variables that make torch record, then the scenario's, then the step's."""
    environment = {
        "TORCH_TRACE": str(folder / ("trace" if step.lead is None else f"traces_of/{step.name}")),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / step.cache),
    }
    if scenario.debug_loggers:
        environment["TORCH_LOGS"] = DEBUG_LOGGERS
    return environment | dict(scenario.environment) | dict(step.environment)


def stored_files(cache_folder: Path, cache: str) -> Iterator[tuple[str, Path]]:
    """Yield (key, file) of every entry; fxgraph has a two-letter level above the key, aotautograd has none."""
    pattern = {"fxgraph": "fxgraph/*/*/*", "aotautograd": "aotautograd/*/*"}[cache]
    for file in sorted(cache_folder.glob(pattern)):
        yield file.parent.name, file


def do_damage(damage: Damage, cache_folder: Path) -> list[dict[str, str]]:
    """Delete, halve or overwrite every entry of one cache, and say which."""
    done = []
    if damage.action == "bare":
        for folder in cache_folder.iterdir():
            if folder.name not in ("fxgraph", "aotautograd"):
                shutil.rmtree(folder)
        return [{"action": damage.action}]
    for key, file in stored_files(cache_folder, damage.cache):
        content = file.read_bytes()
        if damage.action == "delete":
            file.unlink()
        elif damage.action == "truncate":
            file.write_bytes(content[: len(content) // 2])
        else:
            file.write_bytes((bytes(range(255, -1, -1)) * (len(content) // 256 + 1))[: len(content)])
        done.append({"action": damage.action, "cache": damage.cache, "cache_key": key, "file": file.name})
    return done


def put_script(step: Step, folder: Path) -> None:
    """Copy the program of a step, edited as the step says: each begins with the file as it is here."""
    text = (HERE / step.script).read_text()
    for old, new in step.edits:
        if text.count(old) != 1:
            raise RuntimeError(f"{step.script}: {old!r} stands there {text.count(old)} times")
        text = text.replace(old, new)
    (folder / step.script).write_text(text)


@contextlib.contextmanager
def processes_that_end() -> Iterator[list[subprocess.Popen[bytes]]]:
    """A list for processes that lead a session of their own: whatever happens, none of them or of theirs is left behind."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        yield started
    finally:
        for process in started:
            # The workers that compile may outlive the process whose they are.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def start(
    command: list[str], folder: Path, log: Path, environment: Mapping[str, str], step: Step
) -> subprocess.Popen[bytes]:
    """A process that leads a session of its own; its stderr goes behind what its log holds, but for that of a container."""
    user = {"user": OTHER_USER, "group": OTHER_USER, "extra_groups": []} if step.is_other_user else {}
    is_container = step.lead is not None
    # Appending lets several processes share a file, as the ranks of one job do.
    with log.open("ab") as stderr:
        return subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", *command] if is_container else command,
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if is_container else stderr,
            start_new_session=True,
            **user,
        )


def copy_behind(lead: str, lines: IO[bytes], log: Path) -> None:
    """Write each line as it comes: without a buffer all of it stands at once, behind what other containers wrote."""
    with log.open("ab", buffering=0) as out:
        for line in lines:
            out.write(lead.encode() + line)


def run_group(
    pythons: Mapping[str | None, Path],
    folder: Path,
    scenario: Scenario,
    group: tuple[Step, ...],
    first: int,
    base: dict[str, str],
) -> list[dict[str, Any]]:
    """Start the processes of one group at once, wait for all, and describe each."""
    port = str(free_port())
    described: list[dict[str, Any]] = []
    streams: list[Thread] = []
    with processes_that_end() as started:
        for number, step in enumerate(group, start=first):
            label = f"{number:02d}_{step.name}" if step.lead is None else step.name
            damage = do_damage(step.damage, folder / step.cache) if step.damage else []
            if step.before:
                CONDITIONS[step.before](folder / step.cache)
            environment = recording_environment(folder, scenario, step)
            if "MASTER_ADDR" in environment:
                environment["MASTER_PORT"] = port
            put_script(step, folder)
            python = str(pythons[step.torch])
            command = [python, step.script, *step.arguments, "--report", f"steps/{label}.json"]
            log = Path("text") / (step.log or f"{label}.log")
            if "TORCH_LOGS_OUT" in environment:
                # torch logs to stderr as well: keep that apart, so that text/ holds the one file only.
                log = Path("stderr") / log.name
            started.append(start(command, folder, folder / log, base | environment, step))
            if step.lead is not None:
                copied = (step.lead, started[-1].stderr, folder / log)
                streams.append(Thread(target=copy_behind, args=copied))
                streams[-1].start()
            described.append({
                "step": label, **{name: getattr(step, name) for name in TOLD}, "command": command[1:],
                "environment": environment, "damage": damage, "expected_return_code": step.returns,
                "log": str(log),
            })  # fmt: skip
        for process, description in zip(started, described, strict=True):
            description["return_code"] = process.wait(timeout=STEP_TIMEOUT_S)
            description["pid"] = process.pid
    for stream in streams:
        stream.join()
    return described


def traces_of(folder: Path, step: Mapping[str, Any]) -> list[str]:
    """Names of the trace files that a process wrote: its pid stands in each line; containers, all of pid 1, have folders."""
    if step["lead"] is None:
        pid = str(step["pid"]).encode()
        traces = sorted((folder / "trace").glob("*"))
        return [trace.name for trace in traces if trace.read_bytes().split(maxsplit=3)[2:3] == [pid]]
    traces = sorted((folder / "traces_of" / step["name"]).iterdir())
    return [trace.rename(folder / "trace" / trace.name).name for trace in traces]


def record(
    pythons: Mapping[str | None, Path], version: str, scenario: Scenario, version_folder: Path
) -> Path:
    """Run one scenario in an empty folder and write its provenance beside what torch wrote."""
    folder = emptied(version_folder.name, scenario.name)
    for name in ("trace", "text", "steps") + (
        ("stderr",) if "TORCH_LOGS_OUT" in scenario.environment else ()
    ):
        (folder / name).mkdir(parents=True)
        # Other users write here as well.
        (folder / name).chmod(0o777)
    for program in PROGRAMS:
        shutil.copy(HERE / program, folder)
    base = base_environment(version_folder, version)
    steps: list[dict[str, Any]] = []
    try:
        for number, group in enumerate(scenario.groups):
            described = run_group(pythons, folder, scenario, group, len(steps), base)
            for description in described:
                steps.append({"group": number, **description, "trace": traces_of(folder, description)})
    finally:
        unmount_all(folder)
    provenance = {
        "scenario": scenario.name,
        "summary": scenario.summary,
        "torch_version": version,
        "python_version": json.loads((folder / "steps" / f"{steps[0]['step']}.json").read_text())[
            "python_version"
        ],
        "platform": f"{platform.system()} {platform.machine()}",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": f"python tests/data/record.py --python {pythons[None]} --only {scenario.name}",
        "environment": base,
        "steps": steps,
    }
    (folder / "scenario.json").write_text(json.dumps(provenance, indent=1) + "\n")
    failed = [one["step"] for one in steps if one["return_code"] != one["expected_return_code"]]
    if failed:
        raise RuntimeError(f"{scenario.name}: {', '.join(failed)} failed; see {folder}/text")
    return folder


def packed_files(folder: Path) -> Iterator[Path]:
    """What goes into the archive: all that torch wrote about its caches, and its generated Python code."""
    parts = [folder / name for name in ("scenario.json", "trace", "text", "stderr", "steps", "contexts")]
    caches = sorted(folder.glob("cache*"))
    parts += [cache / name for cache in caches for name in ("fxgraph", "aotautograd")]
    yield from (part for part in parts if part.exists())
    for cache in caches:
        yield from sorted(file for file in cache.glob("??/c*.py") if file.stat().st_size <= MAX_CODE_BYTES)


def chosen(scenarios: Iterable[Scenario], only: list[str]) -> list[Scenario]:
    known = {scenario.name: scenario for scenario in scenarios}
    unknown = sorted(set(only) - set(known))
    if unknown:
        raise SystemExit(f"no such scenario: {', '.join(unknown)}; known: {', '.join(known)}")
    return [known[name] for name in only] if only else list(known.values())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", type=Path, required=True, help="an interpreter that has torch")
    parser.add_argument(
        "--earlier",
        type=Path,
        nargs="+",
        default=[],
        help="interpreters for the steps of other torch versions",
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--jobs", type=int, default=2, help="scenarios at a time")
    arguments = parser.parse_args()

    version = torch_version(arguments.python)
    release = version.partition("+")[0]
    pythons = {None: arguments.python} | {
        torch_version(other).partition("+")[0]: other for other in arguments.earlier
    }
    version_folder = WORKSHOP / release
    for name in ("home", "tmp"):
        (version_folder / name).mkdir(parents=True, exist_ok=True)

    def record_and_pack(scenario: Scenario) -> str:
        archive = HERE / "recordings" / release / f"{scenario.name}.tar.xz"
        try:
            folder = record(pythons, version, scenario, version_folder)
            if release not in SCENARIOS:
                return f"{scenario.name}: recorded"
            pack(archive, folder, packed_files(folder))
        except (RuntimeError, OSError, KeyError, subprocess.TimeoutExpired) as error:
            return f"FAILED {scenario.name}: {error!r}"
        return f"{scenario.name}: {archive.stat().st_size} bytes"

    failures, scenarios = 0, chosen(SCENARIOS.get(release, FEW), arguments.only)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for line in pool.map(record_and_pack, scenarios):
            failures += line.startswith("FAILED")
            print(line, flush=True)
    if release not in SCENARIOS and not failures:
        folders = [version_folder / scenario.name for scenario in scenarios]
        paths = (path for folder in folders for path in packed_files(folder))
        pack(HERE / "releases" / f"{release}.tar.xz", version_folder, paths)
    return 1 if failures else 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
