"""``cachescope entries``: what is in a directory, and what is damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import cachescope
from tests.cli.conftest import Run
from tests.conftest import Recording

pytestmark = pytest.mark.slow


def test_json_is_the_frame(run: Run, recording: Recording) -> None:
    cache = recording("2.13.0", "config_flip") / "cache"
    printed = json.loads(run("entries", cache, "--json").out)
    lists = {"entries", "guards", "duplicates", "orphans", "removable", "problems"}
    assert printed.keys() == lists | {"cachescope"}
    assert printed["cachescope"] == cachescope.__version__
    assert [entry["cache"] for entry in printed["entries"]].count("fxgraph") == 2
    named = {"entry", "cache_key", "path", "size_bytes", "modified_time", "status"}
    assert named <= printed["entries"][0].keys()


def test_the_table_counts_by_cache_and_status(run: Run, recording: Recording) -> None:
    out = run("entries", recording("2.13.0", "config_flip") / "cache").out
    assert out.startswith("5 entries of ")
    assert "ft4g52pb6tzvpozp…" in out


def test_damage_is_said_with_its_reason(run: Run, recording: Recording) -> None:
    out = run("entries", recording("2.13.0", "aot_entry_truncated") / "cache").out
    assert "1 damaged:" in out
    assert "truncated" in out


def test_the_newest_are_listed_and_the_rest_counted(run: Run, recording: Recording) -> None:
    out = run("entries", recording("2.13.0", "config_flip") / "cache", "--most", 1).out
    # Compiled graphs are listed one by one, other files are counted by kind.
    assert "and 3 older: --most 4 lists all" in out


def test_the_prune_list_names_what_can_go_and_nothing_else(run: Run, recording: Recording) -> None:
    cache = recording("2.13.0", "entry_truncated") / "cache"
    entries = cachescope.read(cache).entries
    (damaged,) = entries.loc[entries["status"] == "damaged", "path"]
    assert run("entries", cache, "--prune-list").out == f"{damaged}\n"
    assert Path(damaged).is_file()
    assert run("entries", recording("2.13.0", "training") / "cache", "--prune-list").out == ""


def test_redact_keeps_the_folders_of_the_cache(run: Run, recording: Recording) -> None:
    cache = recording("2.13.0", "config_flip") / "cache"
    printed = json.loads(run("entries", cache, "--json", "--redact").out)
    assert {entry["path"].split("/")[0] for entry in printed["entries"]} == {"<path-1>"}
    assert printed["entries"][0]["path"].startswith("<path-1>/fxgraph/")


@pytest.mark.parametrize("order", ["KEY --json DIR", "DIR --json KEY", "--json DIR KEY", "KEY DIR --json"])
def test_options_may_stand_between_the_paths(order: str, run: Run, recording: Recording) -> None:
    cache = recording("2.13.0", "cold_warm") / "cache"
    key = next(path.name for path in (cache / "fxgraph").glob("*/*"))
    words = {"KEY": key, "DIR": str(cache)}
    arguments = [words.get(word, word) for word in order.split()]
    printed = json.loads(run("entries", *arguments).out)
    assert {file["cache_key"] for file in printed["entries"]} == {key}
