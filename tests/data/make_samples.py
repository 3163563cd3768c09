"""Make cachescope/samples from the recordings: the same bytes, compressed one file at a time.

Run it again after recording anew: ``python tests/data/make_samples.py``.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pyarrow as pa

ROOT = Path(__file__).parent.parent.parent
RECORDINGS = ROOT / "tests" / "data" / "recordings"
SAMPLES = ROOT / "cachescope" / "samples"
# What each sample takes from its recording. A cache directory is kept as torch wrote it.
WANTED: dict[str, tuple[str, ...]] = {
    "tour": ("trace",),
    "config_flip": ("trace",),
    "dynamic_guards": ("trace",),
    "training": ("trace",),
    "entry_truncated": ("trace", "text", "cache"),
}
PROVENANCE = ("scenario", "summary", "torch_version", "python_version", "platform", "date", "command")


def make_sample(name: str, wanted: tuple[str, ...]) -> None:
    """Unpack one recording of torch 2.13.0 and keep the wanted folders, logs compressed."""
    folder = SAMPLES / name
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(RECORDINGS / "2.13.0" / f"{name}.tar.xz") as archive:
        members = [m for m in archive.getmembers() if m.name.split("/")[0] in (*wanted, "scenario.json")]
        archive.extractall(folder, members, filter="data")
    scenario = json.loads((folder / "scenario.json").read_text())
    (folder / "scenario.json").unlink()
    provenance = {key: scenario[key] for key in PROVENANCE}
    provenance["steps"] = [{"step": s["step"], "differs": s["differs"]} for s in scenario["steps"]]
    (folder / "provenance.json").write_text(json.dumps(provenance, indent=1) + "\n")
    zstandard = pa.Codec("zstd", compression_level=19)
    for log in sorted(folder.glob("t*/*.log")):
        data = log.read_bytes()
        log.with_suffix(".log.zst").write_bytes(zstandard.compress(data, asbytes=True))
        log.unlink()
    # Generated code is not read yet, and the entries hold it as well.
    for code in folder.glob("cache/??/c*"):
        code.unlink()


if __name__ == "__main__":
    for name, wanted in WANTED.items():
        make_sample(name, wanted)
