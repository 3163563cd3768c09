"""Record what a restarted container writes: processes that are all pid 1, in one text log.

    python record_containers.py --python /path/to/venv/bin/python        (as root: it makes PID namespaces)

Each scenario runs in /tmp/cachescope-recording/<torch version>/<scenario> and is packed as
recordings/<torch version>/<scenario>.tar.xz, as record.py does it. ``unshare --pid --fork`` (util-linux) makes every process
pid 1 of a namespace of its own.
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
    """One process."""

    name: str
    differs: str
    arguments: tuple[str, ...]


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
}


def start(python: Path, folder: Path, one: Container, base: dict[str, str]) -> subprocess.Popen[bytes]:
    """One process, pid 1 of a namespace of its own, whose stderr goes to the log of all."""
    program = [str(python), PROGRAMS, *one.arguments, "--report", f"steps/{one.name}.json"]
    environment = base | {
        "TORCH_TRACE": str(folder / "trace"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
        "TORCH_LOGS": DEBUG_LOGGERS,
    }
    with (folder / "text" / "all.log").open("ab") as log:
        return subprocess.Popen(
            ["unshare", "--pid", "--fork", *program],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )


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
            steps.append({"group": number, "step": one.name, "differs": one.differs})
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
