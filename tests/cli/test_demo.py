"""``cachescope demo``: the shipped recordings, explained."""

import json

import pytest

from cachescope.samples import sample_names
from tests.cli.conftest import Run

pytestmark = pytest.mark.slow  # each test starts processes


def test_the_tour_is_explained_and_the_last_lines_say_where_to_go_on(run: Run) -> None:
    out = run("demo").out
    assert "48 lookups in 6 runs: 22 hit, 26 missed" in out
    assert "epilogue_fusion: True -> False" in out
    assert "cpp_runtime_thread_count: 2 -> 1" in out
    last = "\n".join(out.splitlines()[-6:])
    assert "make lab" in last and "notebooks/01_why_did_it_miss.ipynb" in last
    assert all(name in out for name in sample_names())


def test_every_sample_is_explained(run: Run) -> None:
    for name in sample_names():
        out = run("demo", name).out
        assert " lookups in " in out or "no lookups were read; " in out
        # Also of what ships as an archive.
        assert run("explain", *out.partition("This was: cachescope explain ")[2].split()[:1]).status == 0


def test_json_is_the_object_of_explain(run: Run) -> None:
    printed = json.loads(run("demo", "config_flip", "--json").out)
    assert [cause["fields"] for cause in printed["causes"] if cause["fields"]] == [
        ["inductor_config[epilogue_fusion]"]
    ]
