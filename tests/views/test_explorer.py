"""The explorer: what each pane shows, what a click in one does to the others, and that its query gives its frame."""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import ipywidgets
import pandas as pd
import pytest

import cachescope
from cachescope import figures
from cachescope import table as grain
from cachescope.answers.chosen import Chosen
from cachescope.columns import records
from cachescope.report.html import safe
from cachescope.scope import Scope
from cachescope.views.explorer import Explorer, Failed
from cachescope.views.state import PANES, State
from cachescope.views.time import Time as TimePane
from cachescope.wording import duration
from tests.conftest import Recording
from tests.programs import python
from tests.views.test_copied import tables_of

pytestmark = pytest.mark.slow  # whole explorers are built

SAMPLES = ["config_flip", "dynamic_guards", "entry_truncated", "tour", "training", "vllm"]


@pytest.fixture(scope="module")
def scopes() -> dict[str, Scope]:
    return {name: cachescope.read(cachescope.sample(name)) for name in SAMPLES}


@pytest.fixture
def tour(scopes: dict[str, Scope]) -> Explorer:
    return scopes["tour"].explore()


def is_query_of(explorer: Explorer, scope: Scope) -> bool:
    found = eval(explorer.query, {"scope": scope, "cachescope": cachescope})
    pd.testing.assert_frame_equal(found, explorer.frame())
    return True


def opened(explorer: Explorer, name: str) -> Any:
    explorer.state.pane = name
    return explorer.pane(name)


def figures_of(widget: Any) -> list[Any]:
    below = [one for child in getattr(widget, "children", ()) for one in figures_of(child)]
    return [widget, *below] if hasattr(widget, "seen") else below


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_pane_of_every_sample(sample: str, scopes: dict[str, Scope]) -> None:
    explorer = scopes[sample].explore()
    for name in PANES:
        pane = opened(explorer, name)
        assert not isinstance(pane, Failed), pane._reason
        assert is_query_of(explorer, scopes[sample])
        for plot in figures_of(pane):
            plot.seen = True
            assert plot.figure and "could not be drawn" not in plot.figure, plot
        for table in tables_of(pane):
            assert {len(cells) for cells in table.rows} <= {len(table.columns)}, table.label
    assert explorer.state.error == ""


def test_the_repr_is_short_and_stable(tour: Explorer) -> None:
    assert repr(tour) == "Explorer(48 lookups, 6 runs; Overview)"
    assert tour._repr_mimebundle_()["text/plain"] == repr(tour)
    assert repr(tour.pane("What-if")) == "WhatIfView(22 -> 22 of 48 lookups hit)"


def test_panes_are_made_when_looked_at(tour: Explorer) -> None:
    assert list(tour._made) == ["Overview"]
    tour.tabs.selected_index = PANES.index("Why")
    assert tour.state.pane == "Why" and "Why" in tour._made


def test_the_first_pane_waits_for_no_other() -> None:
    """Neither for the imports of another pane, nor for messages: each widget is one, and a model and a view of the page."""
    code = """
import cachescope, comm, sys
sent = []
comm.DummyComm.publish_msg = lambda self, kind, *args, **named: sent.append(kind)
made = cachescope.read(cachescope.sample("tour")).explore()
panes = ("why", "compare", "time", "what_if", "machines", "entries")
print(len(sent), *(name for name in panes if f"cachescope.views.{name}" in sys.modules))
"""
    done = python(code)
    sent, *others = done.stdout.split()
    assert 20 < int(sent) < 75 and others == []


def test_hit_rates_three_ways(tour: Explorer) -> None:
    text = tour.pane("Overview").numbers.value
    for number in ("46 %", "68 %", "22 of 48 lookups", "2 of 6"):
        assert number in text


def shown(place: Any) -> str:
    """The HTML of a place, without the places where a long name may wrap."""
    return str(place.value).replace("<wbr>", "")


def test_a_cause_filters_lookups_and_a_row_opens_why(tour: Explorer) -> None:
    tour.opens.opened = ["Lookups", 1, 0]
    assert (tour.state.pane, tour.state.cause) == ("Lookups", 1)
    lookups = tour.pane("Lookups")
    # Four lookups of AOTAutograd, and below each of them that of its graph.
    assert set(tour.frame()["cause"]) == {1} and len(tour.frame()) == 8 and lookups.table.total == 4
    lookups.table.chosen = [25, 0]
    assert (tour.state.pane, tour.state.lookup) == ("Why", 25)
    assert "inductor_config[epilogue_fusion]" in shown(tour.pane("Why").changes)
    assert tour.query == "scope.explain(25).frame"


def test_the_rows_of_overview_open_their_lookups(tour: Explorer) -> None:
    overview = tour.pane("Overview")
    tour.opens.opened = ["Lookups", 2, 0]
    assert tour.state.filters == {"cause": 2}
    tour.opens.opened = ["Why", 24, 1]
    assert (tour.state.pane, tour.state.lookup) == ("Why", 24)
    # The page could send anything.
    for other in ([], ["Why", 1000, 2], ["Entries", 1, 3]):
        tour.opens.opened = other
        assert (tour.state.pane, tour.state.lookup) == ("Why", 24)
    overview.outcomes.plot.clicked = {"data": [3, "fxgraph", "full_miss"]}
    assert tour.state.filters == {"run": 3, "cache": "fxgraph", "outcome": "full_miss"}
    overview.over_time.plot.clicked = {"data": 24}
    assert (tour.state.pane, tour.state.lookup) == ("Why", 24)
    overview.graphs.plot.clicked = {"data": 31}
    assert tour.state.lookup == 31
    overview.graphs.plot.clicked = {"data": None}  # a cell without a lookup
    assert tour.state.lookup == 31


@pytest.mark.parametrize("filters", [
    {"run": 3}, {"cache": "fxgraph", "outcome": "full_miss"}, {"cause": 1, "text": "EPILOGUE"},
    {"text": "nothing has this"}, {"text": "a(b"}, {"run": 99},
])  # fmt: skip
def test_filters(filters: dict[str, Any], tour: Explorer, scopes: dict[str, Scope]) -> None:
    tour.state.show_lookups(**filters)
    tour.state.sort = ("time_taken_ns", False)
    assert is_query_of(tour, scopes["tour"])
    frame = scopes["tour"].lookups.merge(scopes["tour"].misses, on="lookup", how="left")
    for name, value in filters.items():
        if name != "text":
            frame = frame[frame[name] == value]
    if "text" not in filters:
        assert sorted(tour.frame()["lookup"]) == sorted(frame["lookup"])
    times = tour.frame()["time_taken_ns"].dropna().tolist()
    assert times == sorted(times, reverse=True)


def test_the_controls_of_lookups_follow_the_state_and_set_it(tour: Explorer) -> None:
    lookups = tour.pane("Lookups")
    controls = {widget.description: widget for widget in lookups.children[0].children}
    assert set(controls) == {"Run", "Cache", "Outcome", "Cause", "Search"}
    assert lookups.clear.disabled
    controls["Outcome"].value = 1
    assert tour.state.outcome == "full_miss" and lookups.rows.count == 26
    controls["Search"].value = "epilogue"
    assert lookups.rows.count == 8
    lookups.clear.click()
    assert (tour.state.filters, controls["Outcome"].value, controls["Search"].value) == ({}, 0, "")
    assert lookups.rows.count == 48 and lookups.clear.disabled


def test_why_compares_two_lookups(tour: Explorer, scopes: dict[str, Scope]) -> None:
    tour.state.show_why(25)
    why = tour.pane("Why")
    why.other.value = "41"
    assert tour.query == 'cachescope.compare("41", "25", within=scope).frame'
    assert is_query_of(tour, scopes["tour"])
    assert "0 keys equal, 1 differ" in why.changes.value and len(why._changes) == 2
    why.other.value = "99999"
    assert "no lookup '99999'" in tour.state.error
    assert "no lookup" in tour._error.value and tour._error.layout.display == ""
    why.other.value = ""
    assert (tour.state.other, tour.state.error) == (None, "")


def test_why_two_lookups_of_different_caches(tour: Explorer) -> None:
    tour.state.show_why(25)
    tour.state.other = 24
    assert "of two caches" in tour.pane("Why").changes.value


def test_why_steps_through_the_misses_and_lists_the_same_cause(tour: Explorer) -> None:
    tour.state.show_why(24)
    why = tour.pane("Why")
    buttons = {widget.description: widget for widget in why.children[1].children}
    buttons["Next miss"].click()
    assert tour.state.lookup == 25
    buttons["Previous miss"].click()
    assert tour.state.lookup == 24
    # Those of FX graphs are folded below the lookups of AOTAutograd that they follow from.
    assert why.others.total + sum(fold["below"] for fold in why.others.folds) == 7
    why.others.chosen = [31, 0]
    assert tour.state.lookup == 31


def test_why_shows_the_difference_of_the_graph(tour: Explorer) -> None:
    tour.state.show_why(18)
    assert "cs-diff" in shown(tour.pane("Why").changes)


def test_a_hit_is_explained_too(tour: Explorer) -> None:
    tour.state.show_why(8)
    why = tour.pane("Why")
    assert "hit: an entry was found" in why.verdict.value
    assert (why.plot.layout.display, why.same.layout.display) == ("none", "none")


def test_a_toggle_replays_everything(tour: Explorer, scopes: dict[str, Scope]) -> None:
    view = opened(tour, "What-if")
    view.rates.plot.seen = True
    before = view.rates.plot.figure
    view.tree.off = ["inductor_configs"]
    assert tour.state.without == ("inductor_configs",)
    assert records(view.found.rates) == records(scopes["tour"].what_if(without="inductor_configs").rates)
    assert "46 % → 62 %" in view.numbers.value
    assert view.changed.total == 8 and view.rates.plot.figure != before
    assert tour.query == "scope.what_if(without=('inductor_configs',)).frame"
    assert is_query_of(tour, scopes["tour"])
    view.changed.chosen = [view.changed.ids[0], 0]
    assert tour.state.pane == "Why"


def test_toggles_are_taken_back(tour: Explorer) -> None:
    view = tour.pane("What-if")
    assert view.undo.disabled and view.reset.disabled
    fusion, threads = "inductor_config[epilogue_fusion]", "cpp_runtime_thread_count"
    view.tree.off = [fusion]
    view.tree.off = [fusion, threads]
    assert "46 % → 79 %" in view.numbers.value
    view.undo.click()
    assert view.tree.off == [fusion]
    view.reset.click()
    assert (view.tree.off, view.reset.disabled) == ([], True)
    view.undo.click()
    assert view.tree.off == [fusion]


def test_what_is_compiled_never_leads_the_ranking(tour: Explorer) -> None:
    view = tour.pane("What-if")
    # Without gm, 3.2 s would be saved: more than without any other.
    names = ("epilogue_fusion", "cpp_runtime_thread_count", "graph (gm)")
    places = [shown(view.ranking).index(f">{name}<") for name in names]
    assert places == sorted(places)
    leaves = {leaf["name"]: leaf["saves"] for group in view.tree.groups for leaf in group["fields"]}
    assert leaves["inductor_config[epilogue_fusion]"] == "8 would hit, 2.0 s"
    assert leaves["aot_config"] == "nothing by itself" and leaves["torch_version"] == ""


def test_a_cause_beside_what_its_fields_save_opens_why(tour: Explorer) -> None:
    view = tour.pane("What-if")
    titles = re.findall("class='cs-link'[^>]*>(.*?)</button>", shown(tour.pane("Overview").cards))
    assert [one.startswith(row[0]) for one, row in zip(titles, view.by_cause.rows, strict=True)] == [True] * 3
    view.by_cause.chosen = [view.by_cause.ids[0], 0]
    assert tour.state.pane == "Why"


def test_keys_and_groups(scopes: dict[str, Scope]) -> None:
    tour = scopes["tour"]
    assert tour.what_if().key_counts(Chosen(tour)) == (26, 26, 0)
    found = tour.what_if(without="inductor_configs")
    assert found.key_counts(Chosen(tour)) == (26, 18, 8)
    one, other = found.frame.groupby("what_if_key")["lookup"].first().iloc[:2]
    assert found.key_counts(Chosen(tour, [one, other])) == (2, 2, 0)


def test_what_if_alone(scopes: dict[str, Scope]) -> None:
    view = scopes["config_flip"].what_if_view()
    view.tree.off = ["inductor_config[epilogue_fusion]"]
    assert repr(view) == "WhatIfView(2 -> 4 of 6 lookups hit)"


def test_machines_compares_two_contexts(tour: Explorer, scopes: dict[str, Scope]) -> None:
    machines = opened(tour, "Machines")
    assert tour.query == "scope.context_difference(0, 3)"
    assert "epilogue_fusion" in shown(machines.difference)
    machines.after.value = 1
    assert "Nothing that is known of the two contexts differs" in machines.difference.value
    machines.children[2].children[2].click()
    assert tour.state.contexts == (1, 0) and (machines.before.value, machines.after.value) == (1, 0)
    assert is_query_of(tour, scopes["tour"])


def test_time_shows_the_phases_of_the_chosen_run(scopes: dict[str, Scope]) -> None:
    scope = scopes["training"]
    explorer = scope.explore()
    pane = opened(explorer, "Time")
    pane.phases.plot.seen = pane.compiles.plot.seen = True
    every = pane.phases.plot.figure
    assert explorer.query == "scope.phases"
    assert "took 9.4 s longer than the quickest" in pane.said.value
    # A bar of a run chooses it, for Lookups as well; the same bar gives it back.
    pane.phases.plot.clicked = {"data": [2], "at": 0}
    assert explorer.state.run == 2 and is_query_of(explorer, scope)
    assert set(explorer.frame()["run"]) == {2}
    assert pane.phases.plot.figure != every
    assert len(explorer.pane("Lookups").frame()) == (scope.lookups["run"] == 2).sum()
    total = scope.phases.query("run == 2")["self_time_ns"].sum()
    pane.phases.show.value = True
    table = pane.phases.table
    at = [head["label"] for head in table.columns].index("Self time")
    longest = scope.phases.query("run == 2")["self_time_ns"].max()
    assert table.total == len(explorer.frame()) and table.rows[0][at] == duration(longest)
    assert re.search(rf">in all<.*>{total / 1e9:.1f} s<", pane.said.value)
    pane.phases.plot.clicked = {"data": [2], "at": 1}
    assert explorer.state.run is None


def test_a_bar_of_a_compile_opens_its_lookups(tour: Explorer, scopes: dict[str, Scope]) -> None:
    opened(tour, "Time").compiles.plot.clicked = {"data": [3, "2/0"], "at": 0}
    assert (tour.state.pane, tour.state.run, tour.state.text) == ("Lookups", 3, "2/0")
    lookups = scopes["tour"].lookups
    assert [*tour.frame()["lookup"]] == [*lookups.query("run == 3 and compile_id == '2/0'")["lookup"]]


def test_time_says_what_is_missing(recording: Any) -> None:
    text = cachescope.read(recording("2.13.0", "training") / "text").explore()
    assert "TORCH_TRACE" in opened(text, "Time").children[0].value
    assert text.frame().empty and text.query == "scope.phases"
    trace = recording("2.13.0", "training") / "trace"
    both = cachescope.read(trace, recording("2.13.0", "config_flip") / "text")
    explorer = both.explore()
    time = opened(explorer, "Time")
    explorer.state.run = min(set(both.runs["run"]) - set(both.phases["run"]))
    assert "no trace with events" in time.said.value
    assert explorer.frame().empty and explorer.state.error == ""


def test_whether_a_process_would_find_the_entries(scopes: dict[str, Scope]) -> None:
    view = scopes["entry_truncated"].explore().pane("Machines").will_hit
    assert "4 entries: 3 would be found, 1 not" in view.answer.value
    for run in (0, 3):
        view.run.value = run
        expected = cachescope.will_hit(scopes["entry_truncated"], scopes["entry_truncated"], run=run)
        counts = [expected["will_hit"].tolist().count(word) for word in ("yes", "no", "unknown")]
        assert "{} would be found, {} not, {} unknown".format(*counts) in view.answer.value
    assert "Read a cache directory" in scopes["tour"].explore().pane("Machines").will_hit.children[0].value


def test_entries(scopes: dict[str, Scope]) -> None:
    explorer = scopes["entry_truncated"].explore()
    entries = opened(explorer, "Entries")
    assert "damaged" in entries.one.value
    entries.table.chosen = [0, 0]
    assert explorer.query == "scope.entry(0).frame"
    assert "Generated source" in entries.one.value and "cs-code" in entries.one.value
    entries.sizes_plot.clicked = {"data": 3}
    assert explorer.state.entry == 3
    entries.kind.value = 2
    assert entries.table.total == 2


def test_a_scope_without_lookups_says_what_to_do(recording: Any) -> None:
    scope = cachescope.read(recording("2.13.0", "tour") / "cache")
    explorer = scope.explore()
    for name in PANES:
        assert not isinstance(opened(explorer, name), Failed) and is_query_of(explorer, scope)
    assert "cachescope record" in explorer.pane("Overview").children[0].value
    assert "No lookups were read" in explorer.pane("Why").children[0].value
    assert repr(explorer.pane("What-if")).startswith("WhatIfView(")


def test_a_scope_without_a_directory_says_which_to_give(tour: Explorer) -> None:
    assert "TORCHINDUCTOR_CACHE_DIR" in tour.pane("Entries").children[0].value


def test_a_pane_that_fails_leaves_the_others(tour: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(scope: Scope) -> None:
        raise RuntimeError("<b>broken</b>")

    monkeypatch.setattr(Scope, "sensitivity_rows", broken)
    assert "RuntimeError: &lt;b&gt;broken" in opened(tour, "What-if").children[0].value
    assert opened(tour, "Lookups").table.total == 24


def test_every_control_has_a_label(tour: Explorer) -> None:
    def check(widget: Any) -> None:
        if hasattr(widget, "description") and hasattr(widget, "value"):
            assert widget.description or isinstance(widget, ipywidgets.HTML), widget
        if hasattr(widget, "_esm") and type(widget).__name__ not in ("Tree", "Opens"):
            assert widget.label, widget
        for child in getattr(widget, "children", ()):
            check(child)

    for name in PANES:
        check(tour.pane(name))


def test_a_page_without_a_kernel_shows_the_answer_in_short(tour: Explorer) -> None:
    shown = tour._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in shown
    still = shown["text/html"]
    assert "48 lookups in 6 runs: 22 hit, 26 missed" in still and "epilogue_fusion" in still
    # GitHub takes scripts and styles out, and links to places of a report lead nowhere.
    assert "<script" not in still and "<a " not in still and "<figure" not in still


def test_a_span_of_the_day_filters_lookups_and_compiles(tour: Explorer, scopes: dict[str, Scope]) -> None:
    scope, over_time = scopes["tour"], tour.pane("Overview").over_time
    times = scope.lookups.groupby("run")["time"]
    first, last = times.min()[1], times.max()[2]
    over_time.clock.value = "wall"
    over_time.plot.zoomed = [first.value / 1e6 - 1, last.value / 1e6 + 1]
    wanted = scope.lookups[scope.lookups["time"].between(first, last)]
    tour.state.pane = "Lookups"
    assert tour.frame()["lookup"].tolist() == wanted["lookup"].tolist() and len(wanted) == 16
    assert is_query_of(tour, scope)
    compiles = tour.pane("Time")._compiles()
    assert 0 < len(compiles) < len(scope.compiles)
    assert all(first.value - 2_000_000 <= one.start_time <= last.value + 2_000_000 for one in compiles)
    # Seconds since each run began are no span of the day: they zoom only.
    over_time.clock.value = "run"
    assert tour.state.span is None and over_time.plot.zoomed == []
    over_time.plot.zoomed = [1.0, 2.0]
    assert tour.state.span is None
    over_time.every.click()
    assert over_time.plot.zoomed == []
    # A drag over the figure of the other clock, before the new one is there.
    over_time.clock.value = "wall"
    over_time.plot.zoomed = [1.0, 2.0]
    assert tour.state.span is None and over_time.plot.zoomed == []


def test_traces_that_have_gone_are_named_once_and_the_first_of_many(tmp_path: Path) -> None:
    for name in ("four_ranks", "tour"):
        shutil.copytree(cachescope.sample(name), tmp_path / name)
    scope = cachescope.read(tmp_path)
    traces = scope.runs["source"].nunique()
    shutil.rmtree(tmp_path)
    (pane,) = [child for child in TimePane(scope, State()).children if "gone" in getattr(child, "value", "")]
    assert pane.value.count("is gone since it was read") == 3 < traces
    assert f"… and {traces - 3} more" in pane.value


def test_a_span_narrows_every_pane_and_judges_nothing_again(tour: Explorer, scopes: dict[str, Scope]) -> None:
    scope, state = scopes["tour"], tour.state
    times = scope.lookups.groupby("run")["time"]
    # Runs 3 and 4: what their misses are compared with is in earlier runs.
    state.span = (times.min()[3].value, times.max()[4].value)
    lookups = scope.lookups[scope.lookups["run"].isin([3, 4])]
    misses = scope.misses[scope.misses["lookup"].isin(lookups["lookup"])]
    assert f"{len(lookups)} of 48 lookups" in tour.span.said.value and tour.span.layout.display == ""
    for name in PANES:
        state.pane = name
        assert is_query_of(tour, scope), name
    overview = tour.pane("Overview")
    hits = (lookups["outcome"] == "hit").sum()
    assert f"{hits} of {len(lookups)} lookups" in overview.numbers.value
    overview.outcomes.show.value = True
    assert {row[1] for row in overview.outcomes.table.rows} == {"3", "4"}
    cards = overview.cards.value
    works = re.findall("cs-faint'>([^<]*) misses</span>.*?data-opens='Lookups ([0-9]+)'", cards)
    counted = misses.groupby("cause").size().to_dict()
    assert works
    for cost, cause in works:
        assert int(cost.split(" ")[-1]) == counted[int(cause)]
    # None becomes a cold start because what came before it is not shown.
    assert misses["baseline"].notna().any() and "cold start" not in cards
    why = tour.pane("Why")
    assert state.lookup in set(misses["lookup"])
    assert set(why.others.ids) <= set(misses["lookup"])
    seen = set()
    for _ in range(len(misses)):
        seen.add(state.lookup)
        why._step(1)
    assert seen <= set(misses["lookup"])
    compare = tour.pane("Compare")
    state.compared = ((3,), (0,))
    before = {row.lookup for one in compare.found.aligned for row in one.before}
    assert before == set(lookups.query("run == 3")["lookup"])
    tour.span.clear.click()
    assert state.span is None and tour.span.layout.display == "none"
    for name in PANES:
        state.pane = name
        assert is_query_of(tour, scope), name
    assert "22 of 48 lookups" in overview.numbers.value
    assert state.error == ""


def test_what_if_counts_the_span_of_a_replay_of_all(tour: Explorer, scopes: dict[str, Scope]) -> None:
    scope = scopes["tour"]
    times = scope.lookups.groupby("run")["time"]
    view, mine = opened(tour, "What-if"), scope.lookups.query("run == 3")
    tour.state.without = ("inductor_configs",)
    tour.state.span = (times.min()[3].value, times.max()[3].value)
    frame = scope.what_if(without="inductor_configs").frame
    then = frame[frame["lookup"].isin(mine["lookup"])]["outcome_after"]
    hits = (mine["outcome"] == "hit").sum(), (then == "hit").sum()
    assert f"{hits[0]} → {hits[1]} of {len(mine)} lookups" in view.numbers.value
    assert set(view.changed.ids) <= set(mine["lookup"])
    assert is_query_of(tour, scope)


def test_a_span_without_lookups_says_so(tour: Explorer) -> None:
    tour.state.span = (0, 1)
    for name in PANES:
        for plot in figures_of(opened(tour, name)):
            plot.seen = True
            assert "could not be drawn" not in plot.figure, plot
    assert tour.pane("Why").others.total == 0
    assert "0 of 48 lookups" in tour.span.said.value and tour.state.error == ""
    assert "none of the 48 lookups" in tour.pane("Overview").numbers.value
    assert "No lookup is of this time" in tour.pane("Overview").outcomes.plot.figure


def test_entries_of_a_span_were_asked_for_or_written_in_it(scopes: dict[str, Scope]) -> None:
    scope = scopes["entry_truncated"]
    explorer = scope.explore()
    entries, times = opened(explorer, "Entries"), scope.lookups["time"]
    one = scope.lookups[scope.lookups["cache_key"].notna()].iloc[0]
    explorer.state.span = (one["time"].value, one["time"].value)
    asked = scope.entries["cache_key"].eq(one["cache_key"]) & scope.entries["cache"].eq(one["cache"])
    assert asked.any() and set(entries.table.ids) == set(scope.entries.loc[asked, "entry"])
    written = scope.entries["modified_time"]
    explorer.state.span = (written.min().value, written.max().value)
    assert entries.table.total == len(scope.entries) and times.notna().all()


def texts_of(widget: Any) -> str:
    value = getattr(widget, "value", "")
    below = "".join(map(texts_of, getattr(widget, "children", ())))
    return value + below if isinstance(value, str) else below


def test_each_factor_that_made_vllm_compile_again_is_told() -> None:
    scope = cachescope.read(cachescope.sample("vllm"))
    said = texts_of(scope.explore().pane("Overview"))
    factors = set(scope.vllm_changes["factor"])
    assert factors and all(safe(factor) in said for factor in factors)


def test_each_cell_of_a_possible_false_hit_is_below_its_heading(recording: Recording) -> None:
    # Keys of torch 2.10 lack a field in which those of 2.13 differ.
    scope = cachescope.read(recording("2.10.0", "cold_warm"), recording("2.13.0", "tour"))
    said = texts_of(scope.explore().pane("Overview"))
    heads, cells = (re.findall(f"<{one} .*?</{one}>", said) for one in ("th", "td"))
    seen = next(at for at, head in enumerate(heads) if "What was seen" in head)
    assert "before 2.13" in cells[seen]


def test_the_style_sheet_is_there_where_neither_table_nor_figure_is() -> None:
    explorer = Explorer(cachescope.read(cachescope.sample("whole_directory")))
    brought = [one for one in explorer.children if getattr(one, "_css", "")]
    assert explorer.state.pane == "Overview" and brought


def test_the_first_entry_is_compiled_code_if_none_is_damaged() -> None:
    scope = cachescope.read(cachescope.sample("whole_directory"))
    explorer = Explorer(scope)
    explorer.state.pane = "Entries"
    # The first two are the lock and the dump of a memoizer.
    assert scope.entries["cache"].iloc[:2].tolist() == ["memoizer_dump", "lock"]
    assert scope.facts.entries[explorer.state.entry].cache == "fxgraph"


def test_processes_that_are_alike_share_a_row_and_a_column(scopes: dict[str, Scope]) -> None:
    shown = opened(Explorer(scopes["config_flip"]), "Machines").side_by_side.value
    assert ">0, 2</td>" in shown and ">Context 0, 2</th>" in shown and ">Context 1</th>" in shown


def test_one_context_is_not_compared_with_itself(scopes: dict[str, Scope]) -> None:
    scope = scopes["tour"]
    first = {
        name: grain.Table(read.kind, [row for row in read.rows if row.run == 0])
        for name, read in (("lookups", scope.tables.lookups), ("runs", scope.tables.runs))
    }
    one = Scope(replace(scope.tables, **first))
    explorer = Explorer(one)
    titles = [child.value for child in opened(explorer, "Machines").children if hasattr(child, "value")]
    assert len(one.contexts) == 1 and not any("What differs" in title for title in titles)
    assert explorer.query == "scope.contexts" and is_query_of(explorer, one)


def test_captured_contexts_are_named_by_their_files() -> None:
    scope = cachescope.read(cachescope.sample("isolation_context"))
    figure = figures.context_sharing(scope.context_groups(), scope.contexts)
    assert figure.layout.xaxis.ticktext == ("base.json", "settings.json", "run 0", "run 1")
    assert "base.json" in shown(opened(Explorer(scope), "Machines").side_by_side)
