"""The right numbers in the figures, from real recordings and from frames made by hand."""

import itertools
from collections import Counter

import pytest
from figures.frames import START, frame, many_entries, many_lookups, runs_of

import cachescope
from cachescope import figures
from cachescope.figures.autotuning import input_shapes
from cachescope.figures.palette import KIND_COLOURS, OUTCOME_COLOURS
from tests.conftest import Directory

pytestmark = pytest.mark.slow  # every figure is drawn


def points(figure: object) -> int:
    total = 0
    for trace in figure.data:  # type: ignore[attr-defined]
        if trace.type == "heatmap":
            total += sum(len(row) for row in trace.z)
        else:
            total += len(trace.x if trace.type != "treemap" else trace.values)
    return total


def test_outcomes_add_up_to_the_lookups_of_each_cache(tour: cachescope.Scope) -> None:
    made = figures.outcomes(tour.lookups, tour.runs)
    counted: Counter[tuple[int, str, str]] = Counter()
    for bar in made.data:
        for x, data in zip(bar.x, bar.customdata or (), strict=False):
            counted[data[0], data[1], data[2]] += x
            assert bar.marker.color == OUTCOME_COLOURS[data[2]]
    assert counted == tour.lookups.groupby(["run", "cache", "outcome"]).size().to_dict()
    assert made.layout.yaxis.ticktext[1] == "run 1 · 16:12:49"
    titles = [note.text for note in made.layout.annotations]
    assert titles == ["<b>aotautograd</b>  11 of 24 hit", "<b>fxgraph</b>  11 of 24 hit"]


def test_the_costliest_cause_is_on_top(tour: cachescope.Scope) -> None:
    made = figures.causes(tour.causes)
    drawn = sorted((y, x, data, text) for bar in made.data
                   for y, x, data, text in zip(bar.y, bar.x, bar.customdata, bar.text, strict=True))  # fmt: skip
    assert [data for _, _, data, _ in drawn] == [0, 1, 2, 3]
    assert [round(x, 1) for _, x, _, _ in drawn] == [13.4, 2.0, 2.0, 1.0]
    assert drawn[1][3] == "8 misses · 2.0 s"
    assert made.layout.annotations[1].text == "inductor_config[epilogue_fusion]"
    assert made.layout.yaxis.range[0] > made.layout.yaxis.range[1]


def test_causes_without_times_are_ranked_by_misses() -> None:
    rows = [{"cause": i, "verdict": "bypassed", "misses": n, "summary": f"c{n}"} for i, n in ((0, 1), (1, 9))]
    made = figures.causes(frame("causes", rows))
    assert list(made.data[0].x) == [9, 1] and made.data[0].text[0] == "9 misses · time not recorded"


def test_causes_beyond_fifteen_are_counted() -> None:
    row = {"verdict": "key_changed", "misses": 1, "summary": "x", "time_lost_ns": 10**9}
    rows = [row | {"cause": i} for i in range(20)]
    made = figures.causes(frame("causes", rows))
    assert len(made.data[0].x) == 15
    assert made.layout.annotations[-1].text == "not shown: 5 causes of less time, 5 misses, 5.0 s"


def test_a_miss_spans_its_compile(tour: cachescope.Scope) -> None:
    made = figures.timeline(tour.lookups, tour.runs)
    (bars,) = (trace for trace in made.data if trace.type == "bar")
    assert round(bars.x[0], 2) == 10.93 and bars.customdata[0] == 1
    marks = [trace for trace in made.data if trace.type == "scatter"]
    assert sorted(lookup for trace in marks for lookup in trace.customdata) == list(range(48))
    assert made.layout.xaxis.title.text == "since the run began"


def test_a_single_run_has_a_row_per_compile(tour: cachescope.Scope) -> None:
    made = figures.timeline(tour.lookups[tour.lookups["run"] == 0], tour.runs)
    names = ("0/0 matmul_relu", "1/0 gated_relu", "2/0 softmax_rows", "3/0 centred")
    assert made.layout.yaxis.ticktext == names


def test_a_log_without_times_says_so(tour: cachescope.Scope) -> None:
    made = figures.timeline(tour.lookups.assign(time=None), tour.runs)
    assert "no times" in made.layout.annotations[0].text


def test_the_heatmap_tells_each_graph_of_each_run(tour: cachescope.Scope) -> None:
    made = figures.runs_by_graph(tour.lookups, tour.runs)
    blocks = [trace for trace in made.data if trace.type == "heatmap"]
    names = list(OUTCOME_COLOURS)
    codes = tour.lookups.set_index("lookup")["outcome"]
    # The last run has another function in the place of the second: one compile id, and two graphs.
    ids = tour.lookups["compile_id"] + tour.lookups["function"]
    assert [len(block.z[0]) for block in blocks] == [ids.nunique()] * 2 == [5, 5]
    drawn = set()
    for block in blocks:
        for row, lookups in zip(block.z, block.customdata, strict=True):
            outcomes = [None if i is None else codes[i] for i in lookups]
            assert outcomes == [None if code is None else names[code] for code in row]
            drawn |= set(lookups) - {None}
    assert drawn == set(codes.index)


def test_a_cell_of_several_runs_shows_the_worst_of_its_lookups() -> None:
    rows = [{"lookup": i, "run": i, "order": 0, "cache": "fxgraph", "outcome": "full_miss" if i == 1 else "hit",
             "compile_id": "0/0"} for i in range(192)]  # fmt: skip
    labelled = runs_of(192).assign(label=[f"--bs {i}" for i in range(192)])
    heat = figures.runs_by_graph(frame("lookups", rows), labelled).data[-1]
    assert len(heat.z) == 64 and heat.z[0][0] == list(OUTCOME_COLOURS).index("full_miss")
    assert heat.customdata[0][0] == 1 and "3 lookups, the worst shown" in heat.text[0][0]


def test_graphs_with_one_compile_id_have_a_column_each() -> None:
    """As after ``torch._dynamo.reset()``: a hundred functions were one cell."""
    rows = [{"lookup": i, "run": 0, "order": i, "cache": "fxgraph", "outcome": "hit", "compile_id": "0/0",
             "function": f"f{i // 2}", "file": "/a/m.py", "line": i // 2} for i in range(200)]  # fmt: skip
    heat = figures.runs_by_graph(frame("lookups", rows), runs_of(1))
    assert heat.data[-1].customdata == ([*range(200)],)
    assert heat.layout.xaxis.ticktext[:1] == ("0/0<br>f0",)
    assert "f0 (m.py:0)" in heat.data[-1].text[0][1]
    assert "number 2 in this run" in heat.data[-1].text[0][1]


def test_the_name_of_a_graph_is_cut_only_for_want_of_room() -> None:
    name = "a_function_with_a_long_name"

    def labels(graphs: int) -> tuple[str, ...]:
        rows = [{"lookup": i, "run": 0, "order": i, "cache": "fxgraph", "outcome": "hit", "compile_id": f"{i}/0",
                 "function": name} for i in range(graphs)]  # fmt: skip
        return tuple(figures.runs_by_graph(frame("lookups", rows), runs_of(1)).layout.xaxis.ticktext)

    assert labels(2) == (f"0/0<br>{name}", f"1/0<br>{name}")
    assert labels(30)[0] == "0/0<br>a_function_…"


def test_a_block_of_one_graph_beside_large_ones_has_room_for_its_title() -> None:
    directions = ["inference"] * 40 + ["forward"] * 4 + ["backward"] * 4 + [None]
    rows = [{"lookup": i, "run": 0, "order": i, "cache": cache, "outcome": "hit", "compile_id": f"{i}/0",
             "direction": direction} for cache in ("aotautograd", "fxgraph") for i, direction in enumerate(directions)]  # fmt: skip
    layout = figures.runs_by_graph(frame("lookups", rows), runs_of(1)).layout
    domains = [layout[axis].domain for axis in ("xaxis", "xaxis2", "xaxis3", "xaxis4", "xaxis5")]
    assert [right - left for left, right in domains[2:]] == pytest.approx([0.15] * 3)
    assert domains[0][1] - domains[0][0] > domains[1][1] - domains[1][0] > 0.15
    assert domains[-1][1] == pytest.approx(1)
    for (_, before), (after, _) in itertools.pairwise(domains):
        assert after - before == pytest.approx(0.02)


def test_graphs_of_backward_passes_have_a_block_of_their_own() -> None:
    scope = cachescope.read(cachescope.sample("training"))
    titles = [note.text for note in figures.runs_by_graph(scope.lookups, scope.runs).layout.annotations]
    assert titles == ["<b>aotautograd</b>", "<b>fxgraph</b> forward", "<b>fxgraph</b> backward"]


def test_before_and_after_are_those_of_the_replay(tour: cachescope.Scope) -> None:
    made = figures.what_if_rates(tour.what_if(without="cpp_runtime_thread_count").rates)
    drawn = {(bar.name, bar.xaxis): [round(x, 1) for x in bar.x] for bar in made.data}
    assert drawn == {
        ("hit", "x"): [22, 30], ("missed", "x"): [26, 18], ("saved", "x2"): [39.5, 41.4],
        ("lost", "x2"): [18.4, 16.4],
    }  # fmt: skip
    assert made.layout.annotations[0].text == "<b>lookups that hit</b><br>46 % → 62 %"


def test_fields_that_help_are_ranked_by_time_and_the_program_comes_last(tour: cachescope.Scope) -> None:
    made = figures.sensitivity(tour.sensitivity())
    drawn = sorted((y, data) for bar in made.data for y, data in zip(bar.y, bar.customdata, strict=True))
    # Without gm the most would be saved, and it is what is compiled.
    wanted = ["inductor_config[epilogue_fusion]", "cpp_runtime_thread_count", "gm"]
    assert [data[0] for _, data in drawn] == wanted


def test_every_field_has_a_cell_and_the_changed_one_is_named(tour: cachescope.Scope) -> None:
    why = tour.explain()
    made = figures.key_difference(why.frame, tour.hash_details(lookup=why.lookup))
    cells = Counter(cell for row in made.data[-1].z for cell in row if cell is not None)
    assert cells == {0: len(tour.hash_details(lookup=why.lookup)) - 1, 1: 1}
    texts = [note.text for note in made.layout.annotations]
    assert any("inductor_config[epilogue_fusion]" in text and "True -&gt; False" in text for text in texts)
    names = tour.hash_details(lookup=why.lookup)["field"].tolist()
    assert figures.key_difference(why.frame, names).data[-1].z == made.data[-1].z


def test_new_and_gone_fields_have_colours_of_their_own() -> None:
    rows = [{"field": name, "kind": kind, "summary": kind} for name, kind in (("a", "new"), ("b", "gone"))]
    changes = frame("changes", rows)
    made = figures.key_difference(changes, ["a", "c"])
    assert sorted(cell for cell in made.data[-1].z[0] if cell is not None) == [0, 2, 3]


def test_contexts_that_share_a_key_have_one_letter() -> None:
    groups = frame("context_groups", [
        {"schema": "s", "without": ("runtime",), "group": 0, "contexts": (0, 2)},
        {"schema": "s", "without": ("runtime",), "group": 1, "contexts": (1,)},
        {"schema": "s", "without": ("runtime",), "contexts": (3,)},
    ])  # fmt: skip
    made = figures.context_sharing(groups, frame("contexts", []))
    assert [list(row) for row in made.data[-1].z] == [[2, 0, 2, 1]]
    assert [note.text for note in made.layout.annotations] == ["A", "A", "?"]


def test_no_two_schemas_have_the_same_label() -> None:
    left_out = [(), ("a", "b", "c"), ("a", "d"), ("a", "c", "d"), ("a", "b", "d"), ("a", "b", "c", "d")]
    groups = frame("context_groups", [
        {"schema": f"s{at}", "without": without, "group": 0, "contexts": (0, 1)} for at, without in enumerate(left_out)
    ])  # fmt: skip
    labels = figures.context_sharing(groups, frame("contexts", [])).layout.yaxis.ticktext
    assert labels[0] == "all forms" and len(set(labels)) == len(left_out)
    assert all(label.startswith("without ") for label in labels[1:])


def test_the_names_of_many_contexts_are_not_cut() -> None:
    groups = frame("context_groups", [{"schema": "s", "without": (), "group": 0, "contexts": (*range(70),)}])
    contexts = frame("contexts", [{"context": run, "run": run, "source": "x"} for run in range(70)])
    axis = figures.context_sharing(groups, contexts).layout.xaxis
    assert list(axis.ticktext) == [f"run {run}" for run in axis.tickvals] and len(axis.tickvals) >= 8


def test_the_treemap_adds_up(directory: Directory) -> None:
    entries = cachescope.read(directory("triton_kernels")).entries
    made = figures.entry_sizes(entries).data[0]
    sizes = dict(zip(made.ids, made.values, strict=True))
    assert sizes["all"] == entries["size_bytes"].sum()
    assert made.labels[made.ids.index("kind 1")] == "<b>triton</b>  1.0 MB"
    for box in ("all", "kind 1", "kind 1 0"):
        below = [s for s, parent in zip(made.values, made.parents, strict=True) if parent == box]
        assert sum(below) == sizes[box]
    assert len(set(made.ids)) == len(made.ids)
    shown = [e for e in made.customdata if e is not None]
    assert set(shown) == set(entries["entry"])


def test_ages_count_every_file(directory: Directory) -> None:
    entries = cachescope.read(directory("triton_kernels")).entries
    made = figures.entry_ages(entries)
    assert {bar.name: sum(bar.y) for bar in made.data} == entries["cache"].value_counts().to_dict()


def test_layers_run_from_autograd_to_triton(directory: Directory) -> None:
    scope = cachescope.read(directory("triton_kernels"))
    made = figures.link_layers(scope.links, scope.entries)
    names = [tuple(label.split(" → ")) for label in made.layout.yaxis.ticktext]
    drawn = dict(zip(names, made.data[0].x, strict=True))
    assert drawn.items() >= {
        ("aotautograd", "fxgraph"): 6, ("fxgraph", "wrapper"): 10, ("wrapper", "kernels"): 9,
        ("fxgraph", "triton"): 25, ("best_config", "triton"): 9,
    }.items()  # fmt: skip
    assert sum(drawn.values()) == len(scope.links)


def test_files_that_are_gone_and_locks_are_told(directory: Directory) -> None:
    scope = cachescope.read(directory("torch_2.13.0"))
    made = figures.link_layers(scope.links, scope.entries)
    gone = [text for text in made.data[0].text if text.endswith("that are gone")]
    assert gone == ["2 to files that are gone"]
    assert sum(scope.links["child"].isna()) == 2
    assert "117 references of locks not shown" in made.layout.annotations[0].text


def test_the_fastest_choice_stands_out(directory: Directory) -> None:
    made = figures.autotune_margins(cachescope.read(directory("torch_2.13.0")).autotune)
    assert {trace.name: len(trace.x) for trace in made.data} == {"fastest": 2, "other choice": 2}
    assert any("920× faster than the next" in note.text for note in made.layout.annotations)


@pytest.mark.parametrize("name", ["torch_2.6.0", "torch_2.13.0", "torch_2.15.0"])
def test_inputs_of_every_torch_are_shapes(name: str, directory: Directory) -> None:
    made = figures.autotune_margins(cachescope.read(directory(name)).autotune)
    texts = [note.text for note in made.layout.annotations]
    assert texts and not [text for text in texts if "torch." in text or " of float32 on cpu" not in text]


@pytest.mark.parametrize(("inputs", "shown"), [
    # Three numbers before the offset are no sizes with their strides.
    ("[('cpu', 'torch.float32', 4, 3, 1, 0)]", "[('cpu', 'torch.float32', 4, 3, 1, 0)]"),
    ("[('cuda', 'torch.int8', 7, 1, 0)]", "7 of int8 on cuda"),
    ("[('cuda', 'torch.int8', 7, 1, 5)]", "7 from 5 of int8 on cuda"),
    ("[('cpu', 'torch.bool', 0)]", "a number of bool on cpu"),
    ("[('cpu', 'torch.int8', 7, 1, 0), ('cpu', 'torch.bool', 0)]",
     "7 of int8 on cpu, a number of bool on cpu"),
    ("[('cpu', 'torch.int8', 7, 1, 0)] and more", "[('cpu', 'torch.int8', 7, 1, 0)] and more"),
    ("", ""),
])  # fmt: skip
def test_inputs_are_shapes_where_they_have_torchs_form(inputs: str, shown: str) -> None:
    assert input_shapes(inputs) == shown


def test_times_that_are_alike_have_two_ticks() -> None:
    row = {"entry": 0, "op": "mm", "inputs": "[]", "precision": "high"}
    made = figures.autotune_margins(frame("autotune", [
        row | {"choice": "a", "time_ms": 3.1, "is_chosen": True}, row | {"choice": "b", "time_ms": 3.2},
    ]))  # fmt: skip
    low, high = made.layout.xaxis.range
    assert len([at for at in made.layout.xaxis.tickvals if 10**low <= at <= 10**high]) >= 2


def test_a_choice_that_failed_stands_to_the_right() -> None:
    row = {"entry": 0, "op": "mm", "inputs": "[]", "precision": "high"}
    made = figures.autotune_margins(frame("autotune", [
        row | {"choice": "a", "time_ms": 2.0, "is_chosen": True}, row | {"choice": "b", "is_failed": True},
    ]))  # fmt: skip
    assert {trace.name: list(trace.x) for trace in made.data} == {"fastest": [2.0], "failed": [4.0]}


def test_devices_show_their_datasheet_and_no_invented_number() -> None:
    made = figures.device_rates(frame("devices", [
        {"device": 0, "name": "Frobnicator", "type": "cuda", "arch": "sm_123"},
        {"device": 1, "name": "NVIDIA H100", "type": "cuda", "datasheet": "H100 SXM", "peak_bf16_tflops": 989.4,
         "peak_int8_tops": 1979.0, "datasheet_bandwidth_gbs": 3350.0},
    ]))  # fmt: skip
    assert list(made.data[0].x) == [989.4, 1979.0]
    assert list(made.layout.yaxis.ticktext) == ["bf16", "int8"]
    texts = [note.text for note in made.layout.annotations]
    assert texts == [
        "<b>NVIDIA H100</b>", "datasheet: H100 SXM, 3,350 GB/s", "<b>Frobnicator</b>",
        "no datasheet, seen: sm_123",
    ]  # fmt: skip


@pytest.mark.sweep
def test_many_lookups_stay_within_bounds() -> None:
    lookups, runs = many_lookups(100_000, 300, 150), runs_of(300)
    timeline = figures.timeline(lookups, runs)
    assert points(timeline) < 30_000
    assert "100,000 lookups in" in timeline.layout.annotations[-1].text
    assert len(timeline.to_json()) < 6_000_000
    outcomes = figures.outcomes(lookups, runs)
    assert points(outcomes) < 64 * 5 * 2 + 20
    # Shares of the lookups of a row in each cache.
    labels = outcomes.layout.yaxis.ticktext
    assert sum(x or 0 for bar in outcomes.data for x in bar.x) == pytest.approx(100 * 2 * len(labels))
    assert outcomes.layout.height < 900
    grid = figures.runs_by_graph(lookups, runs)
    assert points(grid) < 64 * 400 + 20 and len(grid.to_json()) < 2_000_000


@pytest.mark.parametrize("runs", [1, 300])
def test_no_outcome_covers_another_in_the_timeline_of_many_lookups(runs: int) -> None:
    """Every second lookup hit: drawn over each other, the misses would hide all hits."""
    lookups = many_lookups(100_000, runs, 3)
    lookups["outcome"] = (lookups["order"] // 2 % 2).map({0: "hit", 1: "full_miss"})
    made = figures.timeline(lookups, runs_of(runs))
    drawn = {trace.name: trace for trace in made.data if trace.type == "scatter"}
    assert set(drawn) == {"hit", "full_miss"}
    places = [(x, y, name) for name, trace in drawn.items() for x, y in zip(trace.x, trace.y, strict=True)]
    span = max(place[0] for place in places) - min(place[0] for place in places)
    places.sort(key=lambda place: (place[1], place[0]))
    apart = [
        other - one
        for (one, lane, name), (other, lane_of_other, other_name) in itertools.pairwise(places)
        if lane == lane_of_other and name != other_name
    ]
    # A mark is 5 pixels wide, and the plot some 800.
    assert apart and min(apart) > 5 / 800 * span


def test_64_ranks_and_200_graphs_are_all_shown() -> None:
    runs = runs_of(64).assign(label=[f"--bs {i}" for i in range(64)])
    made = figures.runs_by_graph(many_lookups(64 * 400, 64, 200), runs)
    blocks = [trace for trace in made.data if trace.type == "heatmap"]
    assert [(len(block.z), len(block.z[0])) for block in blocks] == [(64, 200), (64, 200)]
    assert all(cell is not None for block in blocks for row in block.z for cell in row)


@pytest.mark.sweep
def test_many_entries_stay_within_bounds() -> None:
    entries = many_entries(100_000)
    treemap = figures.entry_sizes(entries).data[0]
    assert len(treemap.values) < 6_000
    tops = [size for size, parent in zip(treemap.values, treemap.parents, strict=True) if not parent]
    assert sum(tops) == entries["size_bytes"].sum()
    # What stands for many files does not look like the largest one.
    folded = [at for at, label in enumerate(treemap.labels) if " smaller, " in label]
    assert folded and {treemap.marker.colors[at] for at in folded}.isdisjoint(KIND_COLOURS.values())
    ages = figures.entry_ages(entries)
    assert sum(sum(bar.y) for bar in ages.data) == 100_000
    assert points(ages) <= 41 * 5
    row = {"parent_kind": "fxgraph", "child_kind": "code", "known_by": "x"}
    rows = [row | {"parent": i, "child": i + 1} for i in range(100_000)]
    assert len(figures.link_layers(frame("links", rows), entries).to_json()) < 20_000


@pytest.mark.sweep
def test_many_fields_and_choices_stay_within_bounds() -> None:
    names = [f"example_inputs[{i}]" for i in range(100_000)]
    changes = frame("changes", [{"field": n, "kind": "tensor", "summary": "s"} for n in names[-500:]])
    made = figures.key_difference(changes, names)
    assert sum(cell is not None for row in made.data[-1].z for cell in row) == 900
    assert sum(cell == 1 for row in made.data[-1].z for cell in row) == 500
    assert made.layout.annotations[-1].text == "… and 488 more fields"
    rows = [{"entry": 0, "op": f"op{i % 500}", "inputs": "[]", "precision": "high", "choice": f"c{i}", "time_ms": 1.0 + i}
            for i in range(100_000)]  # fmt: skip
    assert points(figures.autotune_margins(frame("autotune", rows))) == 20 * 60


def test_lookups_of_all_ranks_at_once_share_one_clock() -> None:
    rows = [{"lookup": i, "run": i, "order": 0, "time": START + i * 10**8, "cache": "fxgraph", "outcome": "full_miss",
             "end_time": START + 10**10, "time_taken_ns": 10**9} for i in range(2)]  # fmt: skip
    made = figures.timeline(frame("lookups", rows), runs_of(2))
    assert made.layout.xaxis.title.text == "since the first run began"


def test_phases_of_each_run_add_up_to_its_time() -> None:
    scope = cachescope.read(cachescope.sample("training"))
    made = figures.phases(scope.phases, scope.runs)
    sums: dict[int, float] = {}
    for bar in made.data:
        for row, seconds in zip(bar.y, bar.x, strict=True):
            sums[row] = sums.get(row, 0) + seconds
    of_runs = scope.phases.groupby("run")["self_time_ns"].sum() / 1e9
    assert [sums[row] for row in sorted(sums)] == pytest.approx(of_runs.tolist())
    assert made.data[0].name == scope.phases.groupby("phase")["self_time_ns"].sum().idxmax()
    assert [bar.name for bar in made.data][-1] == "other phases"
    # Eight have a colour of their own.
    assert len(made.data) == 9


def test_what_takes_seconds_has_a_colour_of_its_own() -> None:
    """Waiting among it: of ranks that start together it is the longest."""
    waits = [f"waiting for {what}" for what in ("another's compile", "compilers", "a vector test")]
    names = [*waits, "precompiled headers", "loading"]
    rows = [{"run": 0, "segment": 1, "phase": name, "event": "x", "count": 1, "unended": 0, "time_ns": 10**9,
             "self_time_ns": (9 - at) * 10**9} for at, name in enumerate(names)]  # fmt: skip
    made = figures.phases(frame("phases", rows), runs_of(1))
    assert [bar.name for bar in made.data] == names
    assert len({bar.marker.color for bar in made.data}) == len(names)


def test_of_many_runs_the_phases_share_rows() -> None:
    rows = [{"run": run, "segment": 1, "phase": "Dynamo", "event": "x", "count": 1, "unended": 0, "time_ns": 10**9,
             "self_time_ns": 10**9} for run in range(1000)]  # fmt: skip
    made = figures.phases(frame("phases", rows), runs_of(1000))
    (bar,) = made.data
    # All went alike: one row, whose bar is their mean.
    assert bar.x == (1,)
    assert made.layout.height < 900


def test_an_axis_of_minutes_says_minutes(tour: cachescope.Scope) -> None:
    causes = tour.causes
    short, long = (figures.causes(causes.assign(time_lost_ns=causes["time_lost_ns"] * n)) for n in (1, 20))
    assert short.layout.xaxis.ticksuffix == " s"
    # 268 s
    assert long.layout.xaxis.ticktext == ("0 s", "1 min", "2 min", "3 min", "4 min")
    assert long.layout.xaxis.tickvals == (0, 60, 120, 180, 240)
