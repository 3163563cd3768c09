"""Make cachescope/samples from the recordings: the same bytes, compressed.

Run it again after recording anew: ``python tests/data/make_samples.py``.
"""

import json
import lzma
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT / "tests" / "data"
SAMPLES = ROOT / "cachescope" / "samples"
# For texts: a tenth smaller than what `preset=9` alone gives.
PACKED_AS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}]
# What each sample takes from its recording. Logs are compressed one by one.
OPEN: dict[str, tuple[str, tuple[str, ...]]] = {
    "tour": ("recordings/2.13.0/tour", ("trace",)),
    "config_flip": ("recordings/2.13.0/config_flip", ("trace",)),
    "dynamic_guards": ("recordings/2.13.0/dynamic_guards", ("trace",)),
    "entry_truncated": ("recordings/2.13.0/entry_truncated", ("trace", "text", "cache")),
    "start": ("starts/transformer", ("runs",)),
}
# These stay one archive, as a checkout and a wheel keep no times of modification, and those of a cache directory
# say in which order its entries were made.
PACKED: dict[str, tuple[str, tuple[str, ...]]] = {
    # Four long traces that are alike: a third of the size in one archive.
    "training": ("recordings/2.13.0/training", ("trace",)),
    "isolation_context": ("recordings/2.13.0/isolation_context", ("trace", "contexts")),
    "rank_in_config": ("recordings/2.13.0/rank_in_config", ("trace", "cache")),
    "four_ranks": ("recordings/2.13.0/four_ranks", ("trace",)),
    "other_torch": ("recordings/2.15.0/cold_warm", ("trace",)),
    "whole_directory": ("directories/torch_2.13.0", ("cache",)),
    "triton_kernels": ("directories/triton_kernels", ("cache_t2150",)),
    "preflight": ("preflights/2.13.0", ("cache", "changed")),
    "vllm": ("vllm/0.13.0", ("cache", "logs")),
}
_ABOUT = ("scenario.json", "provenance.json", "starts.json")
PROVENANCE = (
    "scenario", "directory", "summary", "torch_version", "vllm_version", "stood_in_for", "versions",
    "python_version", "platform", "date", "command",
)  # fmt: skip


def make_open_sample(name: str, recording: str, wanted: tuple[str, ...]) -> None:
    """Unpack one recording and keep the wanted folders, logs compressed."""
    folder = _emptied(name)
    with tarfile.open(DATA / f"{recording}.tar.xz") as archive:
        (about,) = (one.name for one in archive if one.name in _ABOUT)
        archive.extractall(folder, _wanted(archive, (*wanted, about)), filter="data")
    provenance = json.loads((folder / about).read_text())
    (folder / about).unlink()
    _write_provenance(folder, provenance)
    # The trace beside it tells what it does, and more.
    for log in folder.glob("runs/*/torch.log"):
        log.unlink()
    zstandard = pa.Codec("zstd", compression_level=19)
    for log in sorted([*folder.glob("t*/*.log"), *folder.glob("runs/*/*.log")]):
        data = log.read_bytes()
        log.with_suffix(".log.zst").write_bytes(zstandard.compress(data, asbytes=True))
        log.unlink()
    # Generated code is not read yet, and the entries hold it as well.
    for code in folder.glob("cache/??/c*"):
        code.unlink()


def make_packed_sample(name: str, recording: str, wanted: tuple[str, ...]) -> None:
    """Keep the wanted folders of one recording in an archive: names, bytes and times as they were."""
    folder = _emptied(name)
    folder.mkdir()
    with tarfile.open(DATA / f"{recording}.tar.xz") as archive:
        (provenance,) = (m for m in archive if m.name in _ABOUT)
        with (
            lzma.open(folder / "recording.tar.xz", "w", filters=PACKED_AS) as packed_file,
            tarfile.open(fileobj=packed_file, mode="w") as packed,
        ):
            for member in _wanted(archive, wanted):
                packed.addfile(member, archive.extractfile(member) if member.isreg() else None)
        text = archive.extractfile(provenance)
        assert text is not None
        _write_provenance(folder, json.load(text))


def _wanted(archive: tarfile.TarFile, folders: tuple[str, ...]) -> list[tarfile.TarInfo]:
    return [member for member in archive.getmembers() if member.name.split("/")[0] in folders]


def _emptied(name: str) -> Path:
    folder = SAMPLES / name
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def _write_provenance(folder: Path, recorded: Mapping[str, Any]) -> None:
    provenance = {key: recorded[key] for key in PROVENANCE if key in recorded}
    provenance["steps"] = [
        {"step": step["step"], **{key: step[key] for key in ("differs", "what", "wall_s") if key in step}}
        for step in recorded["steps"]
    ]
    (folder / "provenance.json").write_text(json.dumps(provenance, indent=1) + "\n")


if __name__ == "__main__":
    for name, (recording, wanted) in OPEN.items():
        make_open_sample(name, recording, wanted)
    for name, (recording, wanted) in PACKED.items():
        make_packed_sample(name, recording, wanted)
