"""What is in a directory: totals add up, and every entry is in one of them."""

from collections import Counter
from pathlib import Path

import cachescope
from cachescope.answers.directory import Directory
from cachescope.terms import CACHES


def test_totals_are_of_every_entry_once() -> None:
    scope = cachescope.read(cachescope.sample("triton_kernels"))
    found = Directory.of(scope)
    by_kind = Counter(zip(scope.entries["cache"], scope.entries["status"], strict=True))
    assert {(total.cache, total.status): total.count for total in found.totals} == by_kind
    assert sum(total.size_bytes for total in found.totals) == found.size_bytes
    assert found.size_bytes == scope.entries["size_bytes"].sum()
    sizes = [total.size_bytes for total in found.totals]
    assert sizes == sorted(sizes, reverse=True)


def test_graphs_are_the_newest_first() -> None:
    found = Directory.of(cachescope.read(cachescope.sample("rank_in_config")))
    assert found.graphs and all(row.cache in CACHES for row in found.graphs)
    times = [row.modified_time for row in found.graphs]
    assert times == sorted(times, reverse=True)


def test_an_entry_that_is_damaged_beside_a_sound_one_shares_its_key() -> None:
    found = Directory.of(cachescope.read(cachescope.sample("entry_truncated")))
    (row,) = found.damaged
    (shared,) = (key for key in found.shared if key.cache_key == row.cache_key)
    assert shared.statuses == {"ok": 1, "damaged": 1} and "damaged" in shared.marks
    # Its one problem is that entry, which stands among the entries.
    assert found.problems == ()


def test_where_no_directory_was_read_problems_remain(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no log at all")
    found = Directory.of(cachescope.read(cachescope.sample("config_flip"), tmp_path / "notes.txt"))
    assert found.entries == found.totals == found.shared == ()
    assert [row.source for row in found.problems] == [str(tmp_path / "notes.txt")]
