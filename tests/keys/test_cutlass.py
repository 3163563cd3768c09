"""Request keys equal those that torch gave the recorded files."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from pathlib import Path

import torch

from cachescope.keys import cutlass_request_key
from tests.conftest import Directory


def file_hashes() -> list[str]:
    """Of the two files of the installed torch that its request keys take in."""
    found = importlib.util.find_spec("torch")
    assert found is not None and found.origin is not None
    folder = Path(found.origin).parent / "_inductor" / "codegen" / "cutlass"
    return [
        hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("serialization.py", "utils.py")
    ]


def test_the_request_key_is_torchs(directory: Directory) -> None:
    steps = json.loads((directory("cutlass_configs") / "provenance.json").read_text())["steps"]
    checked = set()
    for step in steps:
        version = step["versions"]["torch_version"]
        if version == torch.__version__:
            hashes = file_hashes()
        elif version.startswith("2.8."):
            hashes = []
        else:
            continue
        for named in step["truth"]["names"]:
            key = cutlass_request_key(
                bytes.fromhex(named["cutlass_key"]), named["arch"], named["toolkit"], named["level"], *hashes
            )
            assert key == named["request_key"]
            checked.add(version)
    assert len(checked) == 2
