"""What is in a directory: totals add up, and every entry is in one of them."""

from collections import Counter
from pathlib import Path

import cachescope
from cachescope.report.entries import entries_blocks
from cachescope.report.terminal import terminal_lines
from cachescope.terms import CACHES
from cachescope.wording import file_size


def lines_of(scope: cachescope.Scope) -> list[str]:
    return [line.text for line in terminal_lines(entries_blocks(scope))]


def rows_below(head: str, lines: list[str]) -> list[list[str]]:
    """The rows of the table whose heads begin so."""
    first = next(at for at, line in enumerate(lines) if line.startswith(head)) + 1
    return [line.split() for line in lines[first : [*lines, ""].index("", first)]]


def test_totals_are_of_every_entry_once() -> None:
    scope = cachescope.read(cachescope.sample("triton_kernels"))
    title, *lines = lines_of(scope)
    by_kind = Counter(zip(scope.entries["cache"], scope.entries["status"], strict=True))
    totals = rows_below("Kind ", lines)
    assert {(cache, status): int(count) for cache, status, count, *_ in totals} == by_kind
    assert f"{by_kind.total()} entries of {file_size(scope.entries['size_bytes'].sum())} in " in title
    sizes = scope.entries.groupby(["cache", "status"])["size_bytes"].sum().sort_values(ascending=False)
    assert [(cache, status) for cache, status, *_ in totals] == sizes.index.tolist()


def test_graphs_are_the_newest_first() -> None:
    scope = cachescope.read(cachescope.sample("rank_in_config"))
    graphs = scope.entries[scope.entries["cache"].isin(CACHES)].sort_values("modified_time", kind="stable")
    listed = [key.rstrip("…") for key, *_ in rows_below("Key ", lines_of(scope))]
    assert listed and listed[0] == graphs["cache_key"].iloc[-1][:16]
    times = graphs.set_index(graphs["cache_key"].str[:16])["modified_time"]
    assert times[listed].is_monotonic_decreasing


def test_an_entry_that_is_damaged_beside_a_sound_one_shares_its_key() -> None:
    lines = lines_of(cachescope.read(cachescope.sample("entry_truncated")))
    assert any(line.endswith("…: 1 ok, 1 damaged (damaged, next to an intact one)") for line in lines)
    # Its one problem is that entry, which stands among the entries.
    assert not any("damaged_entry" in line for line in lines)


def test_where_no_directory_was_read_problems_remain(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no log at all")
    lines = lines_of(cachescope.read(cachescope.sample("config_flip"), tmp_path / "notes.txt"))
    assert lines[0].startswith("No cache directory was read, so there are no entries.")
    assert len(lines) == 2 and lines[1].startswith(str(tmp_path / "notes.txt"))
