"""Record what containers write: processes that are all pid 1, restarted or side by side, in one text log.

    python record_containers.py --python /path/to/venv/bin/python        (as root: it makes PID namespaces)

Each scenario runs in /tmp/cachescope-recording/<torch version>/<scenario> and is packed as
recordings/<torch version>/<scenario>.tar.xz, as record.py does it. ``unshare --pid --fork`` (util-linux) makes every process
pid 1 of a namespace of its own. What is packed is what torch wrote, behind the prefixes that `sed` put before the lines.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from record import HERE, PROGRAMS, STEP_TIMEOUT_S, WORKSHOP, base_environment, pack, torch_version
from recording_scenarios import DEBUG_LOGGERS, EPILOGUE_OFF, functions


@dataclass(frozen=True, slots=True)
class Container:
    """One process, and what its launcher puts before its lines."""

    name: str
    differs: str
    arguments: tuple[str, ...]
    prefix: str = ""


ONE = functions("matmul_relu")
GROUPS: dict[str, tuple[str, tuple[tuple[Container, ...], ...]]] = {
    "restarted_container": (
        "one container, restarted twice: one stream of lines, always pid 1",
        (
            (Container("cold", "first process", ("functions", *ONE)),),
            (Container("restarted", "config epilogue_fusion off", ("functions", *ONE, *EPILOGUE_OFF)),),
            (Container("restarted_again", "as the first", ("functions", *ONE)),),
        ),
    ),
    "two_services": (
        "two containers in one stream, side by side, told apart by what docker compose writes before a line",
        (
            (
                Container("web", "", ("functions", *ONE), "web-1  | "),
                Container("worker", "another config", ("functions", *ONE, *EPILOGUE_OFF), "worker-1  | "),
            ),
            (
                Container("web_again", "as before", ("functions", *ONE), "web-2  | "),
                Container("worker_again", "as before", ("functions", *ONE, *EPILOGUE_OFF), "worker-2  | "),
            ),
        ),
    ),
}


def start(python: Path, folder: Path, one: Container, base: dict[str, str]) -> subprocess.Popen[bytes]:
    """One process, pid 1 of a namespace of its own, whose stderr goes through `sed` to the log of all."""
    program = [str(python), PROGRAMS, *one.arguments, "--report", f"steps/{one.name}.json"]
    environment = base | {
        "TORCH_TRACE": str(folder / "trace"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
        "TORCH_LOGS": DEBUG_LOGGERS,
    }
    with (folder / "text" / "all.log").open("ab") as log:
        process = subprocess.Popen(
            ["unshare", "--pid", "--fork", *program],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if one.prefix else log,
        )
        if one.prefix:
            subprocess.Popen(["sed", "-u", f"s/^/{one.prefix}/"], stdin=process.stderr, stdout=log)
    return process


def record(python: Path, version: str, name: str, version_folder: Path) -> Path:
    """Run one scenario in an empty folder and write its provenance beside what torch wrote."""
    folder = version_folder / name
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("trace", "text", "steps"):
        (folder / part).mkdir(parents=True)
    shutil.copy(HERE / PROGRAMS, folder)
    base = base_environment(version_folder, version)
    summary, groups = GROUPS[name]
    steps: list[dict[str, Any]] = []
    for number, group in enumerate(groups):
        started = [start(python, folder, one, base) for one in group]
        for one, process in zip(group, started, strict=True):
            if process.wait(timeout=STEP_TIMEOUT_S):
                raise RuntimeError(f"{name}: {one.name} failed; see {folder}/text")
            steps.append({"group": number, "step": one.name, "differs": one.differs, "prefix": one.prefix})
    told = {
        "scenario": name,
        "summary": summary,
        "torch_version": version,
        "platform": f"{platform.system()} {platform.machine()}",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": f"python tests/data/record_containers.py --python {python}",
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
    python = parser.parse_args().python
    version = torch_version(python)
    release = version.partition("+")[0]
    version_folder = WORKSHOP / release
    for name in ("home", "tmp"):
        (version_folder / name).mkdir(parents=True, exist_ok=True)
    for name in GROUPS:
        archive = HERE / "recordings" / release / f"{name}.tar.xz"
        pack(record(python, version, name, version_folder), archive)
        print(f"{name}: {archive.stat().st_size} bytes", flush=True)
    return 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
