"""What the tables copy and keep as CSV, read by pandas: numbers are numbers, in full."""

import io
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope.scope import Scope
from cachescope.views.explorer import Explorer
from cachescope.views.state import PANES
from cachescope.views.table import Table

pytestmark = pytest.mark.slow  # whole explorers are built

SAMPLES = ["four_ranks", "start", "tour", "training", "whole_directory"]


def tables_of(widget: Any) -> list[Table]:
    if isinstance(widget, Table):
        return [widget]
    return [one for child in getattr(widget, "children", ()) for one in tables_of(child)]


def kept(table: Table) -> pd.DataFrame:
    sent: list[bytes] = []
    table.send = lambda content, buffers: sent.extend(buffers)
    table._copy(table, {"copy": "csv", "all": True}, [])
    return pd.read_csv(io.BytesIO(sent[0]))


def table(explorer: Explorer, pane: str, label: str) -> Table:
    return next(one for one in tables_of(explorer.pane(pane)) if one.label == label)


@pytest.fixture(scope="module", params=SAMPLES)
def scope(request: pytest.FixtureRequest) -> Scope:
    return cachescope.read(cachescope.sample(request.param))


def test_a_column_of_numbers_is_read_as_numbers(scope: Scope) -> None:
    explorer = scope.explore()
    for pane in PANES:
        for one in tables_of(explorer.pane(pane)):
            found = kept(one)
            # What is folded is kept, too.
            assert len(found) >= one.total
            for head, name in zip(one.columns, found, strict=True):
                is_number = pd.api.types.is_numeric_dtype(found[name])
                assert is_number or not head["number"] or found.empty, (one.label, name)


def test_times_sizes_and_shares_are_those_of_the_frames() -> None:
    scope = cachescope.read(cachescope.sample("whole_directory"))
    entries = kept(table(scope.explore(), "Entries", "entries")).set_index("Entry")
    expected = scope.entries.set_index("entry").loc[entries.index]
    assert entries["Size (B)"].tolist() == expected["size_bytes"].tolist()
    times = expected["time_taken_ns"].astype("float64")
    pd.testing.assert_series_equal(entries["Compile time (ns)"], times, check_names=False, check_index=False)
    written = pd.to_datetime(entries["Written (UTC)"], format="ISO8601")
    assert written.tolist() == expected["modified_time"].tolist()


def test_hit_rates_are_those_of_the_scope() -> None:
    scope = cachescope.read(cachescope.sample("tour"))
    explorer = scope.explore()
    explorer.pane("Overview").outcomes.show.value = True
    rates = kept(table(explorer, "Overview", "outcomes by cache and run"))
    expected = scope.hit_rates(by=["run", "cache"])
    for column in ("hit_rate", "time_hit_rate"):
        shown, wanted = rates[column.capitalize().replace("_", " ")], expected[column].astype("float64")
        pd.testing.assert_series_equal(shown, wanted, check_names=False, check_exact=True)
