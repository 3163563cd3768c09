"""``cachescope demo``: the shipped recordings, explained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.conftest import Recording


@pytest.fixture
def samples(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    found = {name: recording("2.13.0", name) for name in ("config_flip", "four_graphs")}
    monkeypatch.setattr("cachescope.samples.sample_names", lambda: sorted(found))
    monkeypatch.setattr("cachescope.samples.sample", found.__getitem__)
    return found


def test_every_sample_is_explained_and_the_last_lines_say_where_to_go_on(
    run: Run, samples: dict[str, Path]
) -> None:
    out = run("demo").out
    assert all(f"cachescope explain {path}" in " ".join(out.split()) for path in samples.values())
    assert "inductor_config[epilogue_fusion]   True -> False" in out
    assert "make lab" in "\n".join(out.splitlines()[-2:])
    assert "notebooks/01_why_did_it_miss.ipynb" in out


def test_one_sample(run: Run, samples: dict[str, Path]) -> None:
    assert "config_flip" not in run("demo", "four_graphs").out


def test_json_has_one_object_per_sample(run: Run, samples: dict[str, Path]) -> None:
    printed = json.loads(run("demo", "--json").out)
    assert printed["samples"].keys() == samples.keys()
    assert printed["samples"]["config_flip"]["causes"]
