"""Run the sessions of sessions.py, and pack some of them as data for the quick tests.

    python tests/models/record_models.py FOLDER [--only NAME ...] [--jobs 2] [--pack]

Each session has a folder of its own: trace/, text/, cache/, and steps/ with what torch counted. Plain standard library;
the processes it starts need torch and the extra `models`: with CACHESCOPE_MODELS_PYTHON, of another Python.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))
from packing import pack
from sessions import CHANGES, SESSIONS, Process, Session

HERE = Path(__file__).resolve().parent
PACKED = HERE.parent / "data" / "models"
DEBUG_LOGGERS = "+torch._inductor.codecache,+torch._functorch._aot_autograd.autograd_cache"
PROCESS_TIMEOUT_S = 3600
MAX_ARCHIVE_BYTES = 300_000


def environment(folder: Path) -> dict[str, str]:
    """A small environment of its own: nothing of the caller's shell reaches torch or the data."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "USER": "someone",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        # Without it the number of threads, which is in the keys, is the machine's.
        "OMP_NUM_THREADS": "2",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        # Told, not tried: the trial compile takes seconds of each fresh cache, and nothing here is about it.
        "TORCHINDUCTOR_VEC_ISA_OK": "1",
        "HF_HUB_OFFLINE": "1",
        "TORCH_TRACE": str(folder / "trace"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
        "TORCH_LOGS": DEBUG_LOGGERS,
    }


def settings_of(session: Session, process: Process) -> dict[str, object]:
    return dict(session.settings) | (dict(CHANGES[process.change].settings) if process.change else {})


def run_process(python: str, folder: Path, session: Session, number: int) -> dict[str, Any]:
    process = session.processes[number]
    label = f"{number:02d}_{process.name}"
    programs = process.programs or session.programs
    settings = [f"{name}={json.dumps(value)}" for name, value in settings_of(session, process).items()]
    command = [python, "model_programs.py", *programs, "--report", f"steps/{label}.json"]
    command += [word for setting in settings for word in ("--set", setting)]
    started = time.monotonic()
    with (folder / "text" / f"{label}.log").open("wb") as log:
        done = subprocess.run(
            command, cwd=folder, env=environment(folder), stdout=subprocess.DEVNULL, stderr=log,
            timeout=PROCESS_TIMEOUT_S, check=False,
        )  # fmt: skip
    if done.returncode:
        end = (folder / "text" / f"{label}.log").read_text(errors="replace")[-2000:]
        raise RuntimeError(f"{session.name}, {label} ended with {done.returncode}:\n{end}")
    return {"step": label, "change": process.change, "seconds": round(time.monotonic() - started, 1)}


def record(session: Session, folder: Path) -> Path:
    """Run the processes of one session in a folder of its own; one that is whole already is taken as it is."""
    target = folder / session.name
    if (target / "session.json").exists():
        return target
    shutil.rmtree(target, ignore_errors=True)
    for name in ("trace", "text", "steps", "home", "tmp"):
        (target / name).mkdir(parents=True)
    # Copied, so that no path of the machine gets into the data.
    for program in HERE.glob("model_*.py"):
        shutil.copy(program, target)
    python = os.environ.get("CACHESCOPE_MODELS_PYTHON", sys.executable)
    steps = [run_process(python, target, session, number) for number in range(len(session.processes))]
    about = {"session": session.name, "steps": steps}
    (target / "session.json").write_text(json.dumps(about, indent=1) + "\n")
    return target


def packed(folder: Path) -> Path:
    """Pack everything but generated code, which no question of the tests needs."""
    names = ("session.json", "trace", "text", "steps", "cache/fxgraph", "cache/aotautograd")
    parts = [folder / name for name in names if (folder / name).exists()]
    return pack(PACKED / f"{folder.name}.tar.xz", folder, parts, most_bytes=MAX_ARCHIVE_BYTES)


def main() -> int:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--jobs", type=int, default=2, help="sessions at a time")
    parser.add_argument("--pack", action="store_true")
    arguments = parser.parse_args()
    failures = 0

    def record_and_pack(session: Session) -> str:
        try:
            folder = record(session, arguments.folder.resolve())
            return (
                f"{session.name}: {packed(folder).stat().st_size} bytes" if arguments.pack else session.name
            )
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            return f"FAILED {session.name}: {error}"

    chosen = [session for session in SESSIONS if session.name in (arguments.only or [session.name])]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for line in pool.map(record_and_pack, chosen):
            failures += line.startswith("FAILED")
            print(line, flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
