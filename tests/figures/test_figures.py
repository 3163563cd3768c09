"""What holds for every figure: nothing, one row, hostile texts, dark, the same between calls; and the bars of compiles, as many, as long and as deep as these."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import astuple
from typing import Any

import plotly.graph_objects as go
import pytest
from figures.frames import HOSTILE, START, frame, rows, runs_of

import cachescope
from cachescope import figures
from cachescope.columns import frame_of
from cachescope.figures import palette
from cachescope.figures.folding import MOST_ROWS
from tests.conftest import Recording
from tests.output_gates import unseen_in

pytestmark = pytest.mark.slow  # every figure is drawn

Make = Callable[..., go.Figure]


_RUN = rows("runs", [{"run": 0, "rank": 0, "source": "x", "start_time": START}])


def _lookups(text: str) -> Any:
    row = {"lookup": 0, "run": 0, "order": 0, "time": START, "end_time": START + 10**9, "time_taken_ns": 10**9,
           "cache": "fxgraph", "cache_key": text, "outcome": "full_miss", "compile_id": text, "direction": text}  # fmt: skip
    return rows("lookups", [row])


def _arguments(text: str) -> dict[str, tuple[Any, ...]]:
    """One row for each figure, with the text wherever a log could have put one."""
    entries = [
        {"entry": i, "cache": text if i else "fxgraph", "path": f"/c/{text}", "root": "/c", "size_bytes": 5,
         "modified_time": START, "status": "damaged", "damage": text, "name": text, "cache_key": text}
        for i in range(2)
    ]  # fmt: skip
    return {
        "outcomes": (_lookups(text), _RUN),
        "causes": (rows("causes", [{"cause": 0, "verdict": "bypassed", "misses": 1, "summary": text, "advice": text,
                                     "time_lost_ns": 10**9, "fields": (text,), "runs": (0,)}]),),
        "timeline": (_lookups(text), _RUN),
        "phases": (rows("phases", [{"run": 0, "compile_id": text, "segment": 1, "phase": text, "event": text, "count": 1,
                                     "unended": 0, "time_ns": 10**9, "self_time_ns": 10**9}]), _RUN),
        "compiles": (rows("compiles", [{"run": 0, "compile_id": text, "segment": 1, "kind": "recompile", "function": text,
                                         "file": text, "line": 3, "start_time": START, "time_taken_ns": 10**9,
                                         "recompile_reasons": (text,), "error": text}]), _RUN),
        "runs_by_graph": (_lookups(text), _RUN),
        "trend": (rows("trend", [{"run": 0, "start_time": START, "label": text, "commit": text, "starts": 1, "lookups": 2, "hits": 1,
                                   "hit_rate": 0.5, "time_lost_ns": 10**9, "avoidable_ns": 10**9}]),),
        "what_if_rates": (rows("what_if_rates", [
            {"when": text, "lookups": 1, "hits": 1, "misses": 0, "bypasses": 0, "unknown": 0, "hit_rate": 1.0, "undecided": 0,
             "time_saved_ns": 10**9, "time_hit_rate": 1.0}]),),
        "sensitivity": (rows("sensitivity", [{"fields": (text,), "misses_alone": 1, "time_alone_ns": 10**9,
                                               "affects": text, "advice": text}]),),
        "key_difference": (rows("changes", [{"field": text, "kind": "value", "summary": text}]),
                           rows("hash_details", [{"field": text, "detail_hash": "x", "value_text": text},
                                                  {"field": "gm", "detail_hash": "x", "value_text": text}])),
        "context_sharing": (rows("context_groups", [{"schema": text, "without": (text,), "group": 0, "contexts": (0, 1),
                                                      "isolation_key": text}]),
                            rows("contexts", [{"context": 0, "source": text, "host": text, "torch_version": text}])),
        "entry_sizes": (rows("entries", entries),),
        "entry_ages": (rows("entries", entries),),
        "link_layers": (rows("links", [{"parent": 0, "parent_kind": text, "child": 1, "child_kind": "x" + text,
                                         "child_key": text, "known_by": text}]), rows("entries", entries)),
        "autotune_margins": (rows("autotune", [{"entry": 0, "op": text, "inputs": text, "precision": text, "choice": text,
                                                 "time_ms": 1.5, "is_failed": False, "is_chosen": True,
                                                 "device_name": text}]),),
        "device_rates": (rows("devices", [{"device": 0, "name": text, "type": text, "seen_in": (text,), "arch": text,
                                            "datasheet": text, "source": text, "peak_fp32_tflops": 1.0}]),),
    }  # fmt: skip


EVERY = figures.__all__


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from strings(inner) if key != "family" else ()
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from strings(inner)


def test_every_figure_is_tried_here() -> None:
    assert set(_arguments("x")) == set(EVERY)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_gives_a_figure_that_says_why(name: str, dark: bool) -> None:
    made = getattr(figures, name)(*(rows[:0] for rows in _arguments("x")[name]), dark=dark)
    assert len(made.data) == 0
    (said,) = made.layout.annotations
    assert len(said.text) > 20


@pytest.mark.parametrize("name", EVERY)
def test_one_row_is_drawn_in_colours_of_the_palette(name: str) -> None:
    made = getattr(figures, name)(*_arguments("word")[name])
    assert len(made.data) >= 1
    assert 80 < made.layout.height < 600
    # No template of plotly is in it.
    assert len(json.dumps(made.to_dict()["layout"]["template"])) < 100
    known = {c for c in vars(palette).values() if isinstance(c, str) and c.startswith("#")}
    for look in (palette.LIGHT, palette.DARK):
        known |= {look.text, look.muted, look.faint, look.unknown, look.surface}
    used = {text for text in strings(json.loads(made.to_json())) if re.fullmatch(r"#[0-9a-fA-F]{6}", text)}
    assert used <= known | {"#ffffff", "#111111"}


@pytest.mark.parametrize("name", EVERY)
def test_the_browser_draws_what_plotly_holds(name: str) -> None:
    make, arguments = getattr(figures, name), _arguments("word")[name]
    held = json.loads(make(*arguments).to_json())
    # Plotly adds a trace of its own to every template.
    held["layout"]["template"] = {}
    drawn = make.__wrapped__(*arguments).drawn()
    assert {name: drawn[name] for name in held} == held


@pytest.mark.parametrize("name", EVERY)
def test_frames_give_the_figure_of_their_rows_and_stay_as_they_are(name: str) -> None:
    rows = _arguments("word")[name]
    frames = [frame_of(some, type(some[0])) for some in rows]
    before = [frame.copy() for frame in frames]
    make = getattr(figures, name)
    assert make(*frames).to_json() == make(*frames).to_json() == make(*rows).to_json()
    assert all(frame.equals(old) for frame, old in zip(frames, before, strict=True))


@pytest.mark.parametrize("name", EVERY)
def test_hostile_texts_are_harmless_and_short(name: str) -> None:
    made = getattr(figures, name)(*_arguments(HOSTILE)[name])
    # No text of a log is a template.
    templates = {text for trace in made.data for text in strings(getattr(trace, "hovertemplate", None))}
    assert templates <= {"%{customdata}<extra></extra>"}
    assert all(getattr(trace, "texttemplate", None) is None for trace in made.data)
    assert len(made.to_json()) < 40_000
    for trace in made.data:
        if trace.type == "bar":
            # Says what was clicked and is never shown.
            assert all(len(str(data)) < 4_000 for data in trace.customdata or ())
            trace.customdata = None
    for text in strings(made.to_dict()):
        assert re.search(r"<(?!/?(b|br|span|extra)\b)", text) is None, text[:80]
        assert unseen_in(text) == []
        # Nothing between dollar signs: MathJax would take it for a formula.
        assert "$" not in text


@pytest.mark.parametrize("name", EVERY)
def test_dark_changes_texts_and_not_the_data(name: str) -> None:
    make, arguments = getattr(figures, name), _arguments("word")[name]
    light, dark = make(*arguments), make(*arguments, dark=True)
    assert light.layout.paper_bgcolor == dark.layout.paper_bgcolor == "rgba(0,0,0,0)"
    assert light.layout.font.color == palette.LIGHT.text
    assert dark.layout.font.color == palette.DARK.text
    assert [trace.type for trace in light.data] == [trace.type for trace in dark.data]


def leaves(value: Any, is_colour: bool = False) -> Iterator[tuple[bool, Any]]:
    """Every value of a figure, and whether it is a colour by its name."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, name.endswith(("color", "colors", "colorscale")))
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, is_colour)
    else:
        yield is_colour, value


@pytest.mark.parametrize("name", EVERY)
def test_the_dark_has_the_colours_of_the_dark_and_the_same_texts(name: str) -> None:
    # A text that is the name of a colour stays what it is.
    make, arguments = getattr(figures, name), _arguments(palette.LIGHT.text)[name]
    light, dark = (leaves(json.loads(make(*arguments, dark=dark).to_json())) for dark in (False, True))
    darker = dict(zip(astuple(palette.LIGHT), astuple(palette.DARK), strict=True))
    for (is_colour, one), (_, other) in zip(light, dark, strict=True):
        if is_colour:
            assert other == darker.get(one, one)
        elif one != other:
            assert other == one.replace(f"color:{palette.LIGHT.muted}", f"color:{palette.DARK.muted}")


def test_every_text_on_a_colour_of_the_palette_is_readable() -> None:
    colours = {value for name, value in vars(palette).items() if name.isupper() and isinstance(value, str)}
    too_low = {c for c in colours - {palette._DARK_TEXT} if _contrast(c, palette.text_on(c)) < 4.5}
    assert len(colours) > 8
    assert not too_low


def _contrast(one: str, other: str) -> float:
    low, high = sorted(_luminance(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


MS = 10**6


def compile_row(start_ms: float, ms: float | None, kind: str = "first", **other: Any) -> dict[str, Any]:
    return {
        "run": 0, "compile_id": "0/0", "segment": 1, "kind": kind, "function": "forward", "file": "/home/me/model.py", "line": 3,
        "start_time": int(START + start_ms * MS), "time_taken_ns": None if ms is None else int(ms * MS), **other,
    }  # fmt: skip


def drawn(rows: list[dict[str, Any]], runs: int = 1) -> Any:
    return figures.compiles(frame("compiles", rows), runs_of(runs))


def bars(figure: Any) -> list[tuple[float, float, float, str]]:
    """Row, beginning and length of each bar, and its kind."""
    return [
        (round(y, 3), round(base, 6), round(x, 6), trace.name)
        for trace in figure.data
        for x, y, base in zip(trace.x, trace.y, trace.base, strict=True)
    ]


def test_every_compile_of_a_recording_has_a_bar_as_long_as_it_took(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "recompiles") / "trace")
    made = figures.compiles(scope.compiles, scope.runs)
    assert Counter(kind for *_, kind in bars(made)) == Counter(scope.compiles["kind"])
    assert {"first", "recompile"} <= set(scope.compiles["kind"])
    lengths = sorted(length for _, _, length, _ in bars(made))
    assert lengths == pytest.approx(sorted(scope.compiles["time_taken_ns"] / 1e9), abs=1e-6)
    texts = [text for trace in made.data for text in trace.hovertext]
    assert all("record_programs.py:" in text for text in texts)
    reasons = [row[0] for row in scope.compiles["recompile_reasons"] if row]
    assert len(reasons) == sum("guard of" in text for text in texts) > 0


def test_a_compile_within_another_is_below_it() -> None:
    outer, inner, innermost = compile_row(0, 100), compile_row(10, 50), compile_row(20, 10, "resume")
    made = bars(drawn([compile_row(70, 5), inner, outer, innermost]))
    lanes = sorted({row for row, *_ in made})
    assert len(lanes) == 3
    assert {(start, length): lanes.index(row) for row, start, length, _ in made} == {
        (0, 0.1): 0, (0.01, 0.05): 1, (0.02, 0.01): 2, (0.07, 0.005): 1,
    }  # fmt: skip


def test_compiles_one_after_the_other_share_a_lane() -> None:
    made = bars(drawn([compile_row(0, 100), compile_row(100, 50, "backward")]))
    assert len({row for row, *_ in made}) == 1


def test_runs_at_different_times_begin_at_the_same_place() -> None:
    rows = [compile_row(0, 10), compile_row(10_000, 10, run=1)]
    runs = frame("runs", [{"run": i, "source": "x", "start_time": START + i * 10_000 * MS} for i in range(2)])
    made = figures.compiles(frame("compiles", rows), runs)
    assert {start for _, start, *_ in bars(made)} == {0}
    assert made.layout.xaxis.title.text == "since the run began"


def test_runs_at_once_share_one_clock() -> None:
    made = drawn([compile_row(0, 100), compile_row(40, 100, run=1)], runs=2)
    assert sorted(start for _, start, *_ in bars(made)) == [0, 0.04]
    assert made.layout.xaxis.title.text == "since the first run began"


def test_bars_that_lie_over_each_other_have_no_names() -> None:
    def names(runs: int) -> list[str]:
        made = drawn([compile_row(0, 100, run=run) for run in range(runs)], runs)
        return [text for trace in made.data for text in trace.text]

    assert set(names(3)) == {"forward (model.py:3) [0/0]"}
    # More than there are rows for: runs share one.
    assert set(names(MOST_ROWS + 1)) == {""}


def test_a_compile_without_an_end_is_told_and_not_drawn() -> None:
    made = drawn([compile_row(0, 100), {**compile_row(200, None), "start_time": None}])
    assert len(bars(made)) == 1
    assert made.layout.annotations[0].text == "1 compile without an end in the log not shown"
    (said,) = drawn([compile_row(0, None)]).layout.annotations
    assert "No compile has an end" in said.text


def test_a_failed_compile_says_so_and_why() -> None:
    (trace,) = drawn([compile_row(0, 9, error="Unsupported: no")]).data
    assert "failed: Unsupported: no" in trace.hovertext[0]


def test_ten_thousand_compiles_stay_within_bounds() -> None:
    kinds = ("first", "recompile", "backward", "resume", "limit")
    rows = [
        compile_row(number // 100 * 10, 4, kinds[number % 5], run=number % 100, compile_id=f"{number}/0", file=f"/a/{number % 700}.py")
        for number in range(10_000)
    ]  # fmt: skip
    made = drawn(rows, runs=100)
    assert 100 < len(bars(made)) <= 2_500
    assert len(made.to_json()) < 2_000_000 and made.layout.height < 900
    texts = [text for trace in made.data for text in trace.hovertext if " compiles, " in text]
    stood_for = [int(text.partition(" ")[0]) for text in texts]
    assert sum(stood_for) + len(bars(made)) - len(stood_for) == 10_000
    assert "10,000 compiles in" in made.layout.annotations[0].text


def test_a_click_says_the_run_and_the_compile() -> None:
    (trace,) = drawn([compile_row(0, 9, run=3, compile_id="4/1")], runs=4).data
    assert [list(data) for data in trace.customdata] == [[3, "4/1"]]
