"""A key that holds values of tensors is not known where a pre-flight had none; edited by hand into a recorded one."""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from cachescope.analysis.preflight.frame import with_predictions
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.assemble import Tables, assemble
from cachescope.readers.reading import Reading
from cachescope.readers.sources import read_sources
from cachescope.table import Table


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    folder = tmp_path_factory.mktemp("preflights")
    with tarfile.open(Path(__file__).parents[1] / "data" / "preflights" / "2.13.0.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    reading = Reading()
    read_sources([str(folder / "as_baked"), str(folder / "cache")], reading)
    return assemble(reading)


def without_values(tables: Tables, cache: str) -> Tables:
    """The same, with a note on the first lookup of a cache that its key holds values."""
    lookups = tables.lookups.frame.copy()
    at = lookups.index[lookups["cache"] == cache][0]
    note = json.loads(lookups.loc[at, "preflight_note"])
    note["lookup"]["without_values"] = True
    lookups.loc[at, "preflight_note"] = json.dumps(note)
    return replace(tables, lookups=Table(LookupRow, frame=lookups))


def test_all_would_hit_where_nothing_is_noted(tables: Tables) -> None:
    assert set(with_predictions(tables).lookups.frame["outcome"]) == {"would_hit"}


def test_a_key_of_aotautograd_that_is_not_sure_leaves_its_graphs_found(tables: Tables) -> None:
    lookups = with_predictions(without_values(tables, "aotautograd")).lookups.frame
    unsure = lookups[lookups["outcome"] == "not_known"]
    assert unsure["cache"].tolist() == ["aotautograd"]
    assert "ran without weights" in unsure["prediction"].item()
    # Under their own keys the graphs are there.
    assert set(lookups.loc[lookups["outcome"] != "not_known", "outcome"]) == {"would_hit"}


def test_a_key_of_a_graph_that_is_not_sure_is_not_known_where_it_is_asked_for(tables: Tables) -> None:
    only_graphs = replace(
        without_values(tables, "fxgraph"),
        entries=Table(EntryRow, [row for row in tables.entries.rows if row.cache != "aotautograd"]),
    )
    lookups = with_predictions(only_graphs).lookups.frame
    (why,) = lookups.loc[lookups["outcome"] == "not_known", "prediction"]
    assert "ran without weights" in why
    assert (lookups["outcome"] == "would_hit").sum() == (lookups["cache"] == "fxgraph").sum() - 1
