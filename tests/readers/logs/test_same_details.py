"""One key has one set of hash details, whichever source tells of it."""

import re

import pytest

from tests.conftest import Recording
from tests.readings import read_once
from tests.recordings import Recorded

pytestmark = pytest.mark.slow  # every recording is read

# `_fx_graph_cache_debug_lines` came with 2.8.
STORES_NO_DETAILS = ("2.6.0",)
ADDRESS = re.compile("0x[0-9a-f]+")


def check_every_fx_entry_holds_the_details_that_the_trace_told(recorded: Recorded) -> None:
    trace = read_once(recorded.folder / "trace")
    cache = read_once(*recorded.folder.glob("cache*"))
    lookups = trace.lookups[trace.lookups["cache"] == "fxgraph"]
    told = lookups[lookups["details"] == "recorded"]
    entries = cache.entries[cache.entries["cache"] == "fxgraph"]
    stored = entries[entries["detail_set"].notna()]
    assert len(told)
    if recorded.version in STORES_NO_DETAILS:
        assert len(entries)
        assert stored.empty
        return
    # Nothing is left out: the trace tells of every key that has an entry, and every sound entry has details.
    assert set(stored["cache_key"]) == set(told["cache_key"])
    assert set(entries.loc[entries["detail_set"].isna(), "status"]) <= {"damaged", "temporary"}
    compared = 0
    for entry in stored.itertuples():
        of_entry = cache.tables.hash_details.details(int(entry.detail_set))
        for lookup in told[told["cache_key"] == entry.cache_key].itertuples():
            of_trace = trace.tables.hash_details.details(int(lookup.detail_set))
            assert len(of_trace) > 400
            sides = [[(d.field, d.detail_hash) for d in side] for side in (of_entry, of_trace)]
            assert sides[0] == sides[1]
            texts = [[ADDRESS.sub("0x", d.value_text) for d in details] for details in (of_entry, of_trace)]
            assert texts[0] == texts[1]
            compared += 1
    assert compared >= len(stored) > 0


@pytest.mark.parametrize("version", ["2.10.0", "2.13.0"])
def test_trace_text_log_and_entry_give_identical_details(version: str, recording: Recording) -> None:
    """Of AOTAutograd only the logs tell them."""
    folder = recording(version, "training")
    trace = read_once(folder / "trace")
    text = read_once(folder / "text")
    entries = read_once(folder / "cache")
    fx_misses = trace.lookups[(trace.lookups["cache"] == "fxgraph") & (trace.lookups["outcome"] != "hit")]
    assert len(fx_misses) == 4
    for key in fx_misses["cache_key"]:
        from_trace = trace.hash_details(key)
        assert len(from_trace) > 400
        assert from_trace.equals(text.hash_details(key))
        assert from_trace.equals(entries.hash_details(key))
    keys = set(trace.lookups.loc[trace.lookups["cache"] == "aotautograd", "cache_key"])
    assert len(keys) == 2
    for key in keys:
        assert trace.hash_details(key).equals(text.hash_details(key))


def test_details_missing_in_a_text_log_of_2_15_come_from_the_entry(recording: Recording) -> None:
    folder = recording("2.15.0", "config_flip")
    alone = read_once(folder / "text").lookups
    fx = alone[alone["cache"] == "fxgraph"]
    assert set(fx["details"]) == {"not_recorded"}
    joined = read_once(folder / "text", folder / "cache")
    fx = joined.lookups[joined.lookups["cache"] == "fxgraph"]
    assert set(fx["details"]) == {"from_entry"}
    (changed,) = joined.misses.loc[joined.misses["verdict"] == "key_changed", "changed"].drop_duplicates()
    assert changed == ("inductor_config[epilogue_fusion]",)


def test_a_trace_and_a_text_log_of_one_process_are_one_run(recording: Recording) -> None:
    folder = recording("2.13.0", "logs_out")
    scope = read_once(folder / "trace", folder / "text", folder / "stderr")
    assert len(scope.runs) == 3
    assert len(scope.lookups) == 6
    for run in scope.runs.itertuples():
        assert run.source == run.sources[0]
        assert "trace" in run.source
        assert len(run.sources) == 3
