"""The lookups of a page as data: all of them or the costliest, and what each row says."""

from collections.abc import Callable
from pathlib import Path

import cachescope
from cachescope.report.page.lookups import lookup_table, lookups_frame, lookups_object
from cachescope.scope import Scope
from cachescope.views.lookup_rows import LookupRows


def test_the_columns_are_those_of_the_explorer(tour: Scope) -> None:
    made = lookups_object(lookup_table(tour, {}))
    explored = LookupRows(lookups_frame(tour)).heads
    names = [head["name"] for head in made["heads"]]
    assert names == [head.name for head in explored] and "rank" not in names


def test_every_column_can_be_read_back(tour: Scope) -> None:
    made = lookups_object(lookup_table(tour, {}))
    column = made["columns"]["outcome"]
    assert [column["texts"][code] for code in column["codes"]] == tour.lookups["outcome"].tolist()
    assert column["texts"] == sorted(column["texts"])
    # Those below an AOTAutograd lookup know its row.
    above = tour.lookups["aot_lookup"].fillna(-1).astype(int).tolist()
    assert made["above"] == above and max(above) > 0


def test_of_many_the_costliest_are_kept_and_the_rest_is_counted(tour: Scope) -> None:
    part = lookup_table(tour, {}, most=5)
    costliest = tour.lookups.sort_values("time_taken_ns", ascending=False)["lookup"].head(5)
    assert set(part.frame["lookup"]) == set(costliest)
    assert part.note == "The first 5 of 48 lookups by compile time; scope.lookups has all."
    # What is left out has no row to be below.
    assert set(lookups_object(part)["above"]) == {-1}


def test_a_row_names_the_explanation_of_its_cause(tour: Scope) -> None:
    cause = tour.misses["cause"].iloc[-1]
    frame = lookup_table(tour, {int(cause): 7}).frame
    of_cause = frame["cause"] == cause
    assert (frame.loc[of_cause, "explained"] == 7).all() and frame.loc[~of_cause, "explained"].isna().all()


def test_two_causes_of_one_field_have_names_of_their_own(recording: Callable[[str, str], Path]) -> None:
    """The filter lists the causes by these names: two graphs were edited, and the summary of both causes is gm."""
    frame = lookup_table(cachescope.read(recording("2.13.0", "edited_program")), {}).frame
    named = frame[["cause", "cause_summary"]].dropna().drop_duplicates()
    assert len(named) > 1 and named["cause_summary"].is_unique and named["cause"].is_unique
