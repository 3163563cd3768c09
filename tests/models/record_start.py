"""Record the cold and the warm start of a small transformer with `cachescope record`, and hold a clock beside it.

    python tests/models/record_start.py FOLDER [--pack]

FOLDER then holds runs/, one folder for each start, and starts.json with the seconds that each took by that clock. The
program needs torch and the extra `models`: with CACHESCOPE_MODELS_PYTHON, of another Python.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from datetime import UTC, datetime
from pathlib import Path

from record_models import HERE, MAX_ARCHIVE_BYTES, environment, pack

from cachescope.capture.recording import record

PACKED = HERE.parent / "data" / "starts" / "transformer.tar.xz"
PROGRAM = ("model_programs.py", "llama:train", "--set", "layers=4", "--set", "hidden=64", "--set", "kernels=true")  # fmt: skip
VERSIONS = "import json, platform, torch, transformers; print(json.dumps([torch.__version__, transformers.__version__, platform.python_version()]))"
STARTS = {"00_cold": "empty cache directory", "01_warm": "nothing: everything hits"}


def record_starts(folder: Path) -> Path:
    """Start the program twice; the second time everything hits."""
    python = os.environ.get("CACHESCOPE_MODELS_PYTHON", sys.executable)
    for name in ("home", "tmp", "steps"):
        (folder / name).mkdir(parents=True)
    # Copied, so that no path of the machine gets into the data.
    for program in HERE.glob("model_*.py"):
        shutil.copy(program, folder)
    made = environment(folder)
    variables = {name: made[name] for name in made if name not in ("TORCH_TRACE", "TORCH_LOGS")}
    versions = subprocess.run(
        [python, "-c", VERSIONS], check=True, capture_output=True, text=True, env=variables
    )
    torch_version, transformers_version, python_version = json.loads(versions.stdout)
    kept, place = dict(os.environ), Path.cwd()
    steps = []
    try:
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(folder)
        for step, differs in STARTS.items():
            command = [python, *PROGRAM, "--report", f"steps/{step}.json"]
            began = time.monotonic()
            status = record(command, "runs").exit_status
            wall_s = time.monotonic() - began
            if status:
                raise RuntimeError(f"{step} ended with {status}")
            steps.append({"step": step, "differs": differs, "wall_s": round(wall_s, 3)})
    finally:
        os.chdir(place)
        os.environ.clear()
        os.environ.update(kept)
    about = {
        "scenario": "start",
        "summary": f"training steps of a small Llama of transformers {transformers_version}, random weights: cold, warm",
        "torch_version": torch_version,
        "python_version": python_version,
        "platform": f"{platform.system()} {platform.machine()}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": "python tests/models/record_start.py FOLDER --pack",
        "steps": steps,
    }
    (folder / "starts.json").write_text(json.dumps(about, indent=1) + "\n")
    return folder


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pack", action="store_true")
    arguments = parser.parse_args()
    recorded = record_starts(arguments.folder.resolve())
    if arguments.pack:
        parts = [recorded / "starts.json", recorded / "runs"]
        pack(PACKED, recorded, parts, most_bytes=MAX_ARCHIVE_BYTES)
    else:
        print(recorded)
