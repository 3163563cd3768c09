"""Real recordings with secrets put into them by hand: values, names, paths, errors, commands, files, snapshots."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.keys.test_isolation import FABRICATED, H100
from tests.redaction.planted import Planted

# What torch wrote in the recordings, which the secrets take the place of.
_TRACE: Final = (
    b"inductor_config[epilogue_fusion]: False",
    b'"matmul_relu"',
    b"/tmp/cachescope-recording/2.13.0/",
    b"Unsupported post grad custom pass",
    b"no code for this graph",
    b"LocalSource(local_name='batch'",
    b"tensor 'x' size mismatch at index 0",
)


def planted_copy(source: Path, target: Path, secrets: Sequence[Planted]) -> Path:
    """A copy of a recording with each secret somewhere in it, or all in each place where there are more places."""
    shutil.copytree(source, target, symlinks=True)
    every = [one.text for one in secrets]
    for at, log in enumerate(sorted([*(target / "trace").glob("*.log"), *(target / "text").glob("*.log")])):
        is_trace = log.parent.name == "trace"
        log.write_bytes(_with_secrets(log.read_bytes(), every[at:] + every[:at], is_trace=is_trace))
    _plant_files(target / "cache", every)
    about = {"cachescope_run": 1, "command": ["python", "train.py", *every], "exit_status": 1}
    (target / "trace" / "run.json").write_text(json.dumps(about))
    (target / "snapshot.json").write_text(json.dumps(_snapshot(every)))
    return target


def _with_secrets(log: bytes, every: Sequence[str], *, is_trace: bool) -> bytes:
    for number, old in enumerate(_TRACE):
        text = every[number % len(every)]
        new = (json.dumps(text)[1:-1] if is_trace else " ".join(text.split())).encode()
        if old.startswith(b"inductor_config"):
            new = old[: -len(b"False")] + new
        elif old.startswith(b'"'):
            new = b'"' + new + b'"'
        elif old.endswith(b"/"):
            new = b"/" + new.strip(b"/") + b"/"
        log = log.replace(old, new)
    lines = log.splitlines(keepends=True)
    stamp = lines[0][:40].split(b"torch/")[0]
    for text in every:
        # Records that cannot be read, which problems may quote.
        told = " ".join(text.split()).encode()
        lines.append(stamp + b'torch/_x.py:1] {"artifact": {"name": ' + told + b"}\n")
        lines.append(stamp + b'torch/_x.py:2] {"' + told + b'": NaN, "has_payload": "' + told + b'"}\n')
    return b"".join(lines)


def _plant_files(cache: Path, every: Sequence[str]) -> None:
    cache.mkdir(exist_ok=True)
    for number, text in enumerate(every):
        name = "".join(text.split("\0"))[:120]
        for folder in (cache, cache / "fxgraph", cache / "triton", cache / "aotautograd"):
            path = folder / name.strip("/").replace("//", "/")
            if ".." in path.parts or path.exists():
                continue
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            except (FileExistsError, NotADirectoryError):
                continue
        with (
            cache / f"c{number:02d}".replace("0", "a").replace("1", "b").replace("8", "c").replace("9", "d")
        ).open("w") as file:
            file.write(text)
    for code in cache.glob("??/*.py"):
        told = "\n".join(f"# {line}" for text in every for line in text.splitlines())
        code.write_text(f"{code.read_text()}\n{told}\n")


def _snapshot(every: Sequence[str]) -> dict[str, object]:
    context = json.loads(json.dumps(FABRICATED["cuda"]))
    context["compile_context"]["accelerator_properties"] = H100.replace("NVIDIA H100", every[0])
    return {
        "cachescope_snapshot": 1,
        "context": context,
        "host": every[0],
        "platform": every[-1],
        "python_version": every[len(every) // 2],
        "environment": {f"VANTERRA_{number}": text for number, text in enumerate(every)} | {"USER": every[0]},
        "settings": {"torch._inductor.config.epilogue_fusion": every[0]},
        "device_properties": [H100, H100.replace("NVIDIA H100", every[-1])],
    }
