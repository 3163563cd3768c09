"""Record what containers write: processes that are all pid 1, in one text log.

    python record_containers.py --python /path/to/venv/bin/python [--only NAME ...]        (as root: it makes PID namespaces)

Each scenario runs in /tmp/cachescope-recording/<torch version>/<scenario> and is packed as
recordings/<torch version>/<scenario>.tar.xz, as record.py does it. ``unshare --pid --fork`` (util-linux) makes every process
pid 1 of a namespace of its own. Where containers have a name before their lines, that is written by this program as
``docker compose logs`` and ``kubectl logs --prefix`` write it, line by line as they come.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from record import (
    HERE,
    STEP_TIMEOUT_S,
    WORKSHOP,
    base_environment,
    pack,
    processes_that_end,
    torch_version,
)
from recording_scenarios import DEBUG_LOGGERS, EPILOGUE_OFF, functions

SCRIPTS = ("record_programs.py", "serve.py", "score.py")


@dataclass(frozen=True, slots=True)
class Container:
    """One process."""

    name: str
    differs: str
    arguments: tuple[str, ...]
    script: str = "record_programs.py"
    lead: str = ""  # what stands before each of its lines


Groups = tuple[tuple[Container, ...], ...]

ONE = functions("matmul_relu")
COLD = "empty cache directory"
SERVE = Container("serve", COLD, ("functions", *functions("block", "head")), "serve.py")
SCORE = Container("score", COLD, ("functions", *functions("block", "tail")), "score.py")


def two_services(serve_leads: tuple[str, str, str], score_leads: tuple[str, str, str]) -> Groups:
    """Two programs at once, three times, with what stands before their lines each time."""
    serve = (
        SERVE,
        replace(
            SERVE,
            name="serve_fusion_off",
            differs="options epilogue_fusion=False",
            arguments=(*SERVE.arguments, *EPILOGUE_OFF),
        ),
        replace(SERVE, name="serve_back", differs="as at first"),
    )
    score = (
        SCORE,
        replace(SCORE, name="score_again", differs="nothing"),
        replace(SCORE, name="score_once_more", differs="nothing"),
    )
    return tuple(
        (replace(one, lead=first), replace(other, lead=second))
        for one, other, first, second in zip(serve, score, serve_leads, score_leads, strict=True)
    )


SCENARIOS: dict[str, tuple[str, Groups]] = {
    "restarted_container": (
        "one container, restarted twice: one stream of lines, always pid 1",
        (
            (Container("cold", "first process", ("functions", *ONE)),),
            (Container("restarted", "config epilogue_fusion off", ("functions", *ONE, *EPILOGUE_OFF)),),
            (Container("restarted_again", "as the first", ("functions", *ONE)),),
        ),
    ),
    "two_services": (
        "serve.py and score.py at once in one stream, as docker compose logs prints it; both restarted twice",
        two_services(("serve-1  | ",) * 3, ("score-1  | ",) * 3),
    ),
    "two_services_pods": (
        "serve.py and score.py at once in one stream, as kubectl logs --prefix prints it; new pods twice",
        two_services(
            tuple(f"[pod/serve-6d4b75cb6d-{end}/serve] " for end in ("hqkx2", "9zv7t", "m2w8d")),
            tuple(f"[pod/score-7f9c5c6b4-{end}/score] " for end in ("tq4sn", "xk5l6", "b8rjp")),
        ),
    ),
}


class Stream:
    """One text log that several containers write to, a line at a time, each behind its name."""

    def __init__(self, log: IO[bytes]) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def follow(self, process: subprocess.Popen[bytes], lead: str) -> None:
        thread = threading.Thread(target=self._copy, args=(process, lead.encode()))
        thread.start()
        self._threads.append(thread)

    def _copy(self, process: subprocess.Popen[bytes], lead: bytes) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            with self._lock:
                self._log.write(lead + line)

    def end(self) -> None:
        """Wait for what the processes, which have ended, wrote last."""
        for thread in self._threads:
            thread.join()


def start(python: Path, folder: Path, one: Container, base: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """One process, pid 1 of a namespace of its own."""
    traces = folder / "traces_of" / one.name
    traces.mkdir(parents=True)
    environment = {
        **base,
        "TORCH_TRACE": str(traces),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
        "TORCH_LOGS": DEBUG_LOGGERS,
    }
    program = [str(python), one.script, *one.arguments, "--report", f"steps/{one.name}.json"]
    return subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child", *program],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def run_group(
    python: Path, folder: Path, group: tuple[Container, ...], base: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Start the containers of one group at once, wait for all, and describe each."""
    described: list[dict[str, Any]] = []
    with (folder / "text" / "all.log").open("ab") as log:
        stream = Stream(log)
        with processes_that_end() as started:
            for one in group:
                started.append(start(python, folder, one, base))
                stream.follow(started[-1], one.lead)
            for one, process in zip(group, started, strict=True):
                if process.wait(timeout=STEP_TIMEOUT_S):
                    raise RuntimeError(f"{one.name} failed; see {folder}/text")
        stream.end()
    for one in group:
        traces = sorted((folder / "traces_of" / one.name).iterdir())
        for trace in traces:
            trace.rename(folder / "trace" / trace.name)
        described.append(
            {
                "step": one.name,
                "differs": one.differs,
                "command": [one.script, *one.arguments],
                "lead": one.lead,
                "trace": [trace.name for trace in traces],
            }
        )
    return described


def record(python: Path, version: str, name: str, version_folder: Path) -> Path:
    """Run one scenario in an empty folder and write its provenance beside what torch wrote."""
    folder = version_folder / name
    if folder.exists():
        shutil.rmtree(folder)
    for part in ("trace", "text", "steps"):
        (folder / part).mkdir(parents=True)
    for script in SCRIPTS:
        shutil.copy(HERE / script, folder)
    base = base_environment(version_folder, version)
    summary, groups = SCENARIOS[name]
    steps = [
        {"group": number, **described}
        for number, group in enumerate(groups)
        for described in run_group(python, folder, group, base)
    ]
    told = {
        "scenario": name,
        "summary": summary,
        "torch_version": version,
        "platform": f"{platform.system()} {platform.machine()}",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": f"python tests/data/record_containers.py --python {python} --only {name}",
        "environment": base,
        "steps": steps,
    }
    (folder / "scenario.json").write_text(json.dumps(told, indent=1) + "\n")
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", type=Path, required=True, help="an interpreter that has torch")
    parser.add_argument("--only", nargs="+", default=list(SCENARIOS), choices=SCENARIOS, metavar="NAME")
    arguments = parser.parse_args()
    version = torch_version(arguments.python)
    release = version.partition("+")[0]
    version_folder = WORKSHOP / release
    for name in ("home", "tmp"):
        (version_folder / name).mkdir(parents=True, exist_ok=True)
    for name in arguments.only:
        archive = HERE / "recordings" / release / f"{name}.tar.xz"
        pack(record(arguments.python, version, name, version_folder), archive)
        print(f"{name}: {archive.stat().st_size} bytes", flush=True)
    return 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
