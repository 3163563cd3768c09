"""Sets of fields name inputs by number, in a real recording of a model with 19 of them."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest

import cachescope

RECORDING = Path(__file__).parents[2] / "data" / "models" / "small_generation.tar.xz"

pytestmark = pytest.mark.slow  # a whole directory is read


def test_inputs_are_named_by_number(tmp_path: Path) -> None:
    with tarfile.open(RECORDING) as packed:
        packed.extractall(tmp_path, filter="data")
    sets = cachescope.read(tmp_path).sensitivity()["fields"]
    numbers = [[int(n) for n in re.findall(r"example_inputs\[(\d+)\]", " ".join(one))] for one in sets]
    assert max(max(one, default=0) for one in numbers) >= 10
    assert all(one == sorted(one) for one in numbers)
