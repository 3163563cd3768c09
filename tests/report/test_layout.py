"""Lines: laid out for a width, of a run and of toggles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenarios import VERSIONS

import cachescope
from cachescope.analysis.differences import field_change
from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import headline
from cachescope.columns import rows_of
from cachescope.frames.replay_rows import SensitivityRow
from cachescope.report.blocks import Diff, diff_lines
from cachescope.report.layout import Line, laid_out
from cachescope.report.page.replay import savings_of
from cachescope.report.terminal import terminal_lines
from cachescope.report.what_if_forms import saves
from cachescope.report.why_missed import answer_blocks
from tests.conftest import Recording
from tests.hostile_texts import TEXTS
from tests.output_gates import acting_in


def rows(*lines: Line, width: int = 40) -> list[str]:
    return [text for text, _ in laid_out(lines, width)]


def test_what_stands_at_the_right_ends_at_the_edge() -> None:
    (row,) = rows(Line("1  gm", right="2 misses"))
    assert row == "1  gm" + " " * 27 + "2 misses" and len(row) == 40


def test_a_long_title_wraps_beside_its_right() -> None:
    first, *more = rows(Line("1  " + "word " * 12, right="2 misses"))
    assert first.endswith("  2 misses")
    assert all(row.startswith("   ") for row in more)


def test_a_limit_of_rows_is_marked() -> None:
    shown = rows(Line("word " * 40, 3, rows=2))
    assert len(shown) == 2 and shown[-1].endswith(" …")


def test_two_lines_that_begin_alike_are_shown_where_they_differ() -> None:
    before, after = ("def forward(self, " + "p : Parameter, " * count for count in (9, 10))
    change = field_change("gm", f"{before}):\n    return 1", f"{after}):\n    return 1")
    shown = rows(*terminal_lines([Diff("", *diff_lines(change.diff))]), width=65)
    old, new = (next(row.strip() for row in shown if row.strip().startswith(sign)) for sign in "-+")
    assert old[1:] != new[1:]
    assert len(old) <= 60 and len(new) <= 60
    assert old.startswith("-def forward") and old.endswith("):")
    # Where there is room they are whole.
    assert f"     -{before}):" in rows(*terminal_lines([Diff("", *diff_lines(change.diff))]), width=300)


def test_code_is_cut_and_keeps_its_spaces() -> None:
    assert rows(Line("-    x  =  1", 2, verbatim=True)) == ["  -    x  =  1"]
    (cut,) = rows(Line("x" * 100, verbatim=True))
    assert cut == "x" * 39 + "…"


def test_a_path_to_copy_is_neither_wrapped_nor_cut() -> None:
    assert rows(Line("/a b" * 40, 3, whole=True)) == ["   " + "/a b" * 40]
    assert rows(Line("/a\nb", whole=True)) == ["/a\\nb"]


def test_further_rows_stand_in_as_far_as_the_text() -> None:
    first, *more = rows(Line("status      " + "word " * 12, hang=12))
    assert first.startswith("status      word")
    assert more
    assert all(row.startswith(" " * 12 + "word") for row in more)


@pytest.mark.slow
@given(st.text(max_size=300), st.integers(0, 8), st.integers(40, 120), st.sampled_from(["", "1 miss"]))
def test_no_row_is_wider_than_the_screen(text: str, indent: int, width: int, right: str) -> None:
    assert all(len(row) <= width for row in rows(Line(text, indent, right=right), width=width))


@pytest.mark.parametrize("name", TEXTS)
def test_no_row_acts_wherever_a_text_stands_and_is_wrapped(name: str) -> None:
    text = TEXTS[name]
    for before in ("", "x ", "word " * 7):
        for form in ({}, {"whole": True}, {"verbatim": True}, {"rows": 2}, {"right": text}):
            shown = rows(Line(before + text, 3, **form), Line(text, **form))
            assert acting_in("\n".join(shown)) == []
            # What begins a row is what was wrapped, and nothing in the text begins one.
            assert not any("\n" in row for row in shown)


def test_a_megabyte_is_cut_and_its_length_told() -> None:
    for form in ({}, {"whole": True}):
        assert rows(Line("x" * 1_000_000, **form))[-1].endswith("(1.0 MB)")
    (row,) = rows(Line("x" * 1_000_000, verbatim=True))
    assert len(row) == 40


def test_a_form_with_one_field_that_varies_saves_what_that_field_saves(recording: Recording) -> None:
    """Ranks that began together: only a staggered start would save something, of the field and of its form."""
    scope = cachescope.read(recording("2.13.0", "two_ranks_cold_paths"))
    ranking = rows_of(scope.sensitivity(), SensitivityRow)
    (row,) = ranking
    assert (row.misses_alone, row.staggered > 0) == (0, True)
    said = savings_of(scope, row.fields)
    assert said["inductor_configs"] == said[row.fields[0]] == saves(row)


@pytest.mark.parametrize("name", ["cold_warm", "dynamic_guards", "bypass_custom_pass", "bypass_freezing"])
def test_hits_misses_and_bypasses_are_told_apart(name: str, recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", name) / "trace")
    expected = VERSIONS["2.13.0"][name]
    assert scope.lookups["run"].nunique() == len(expected)
    for run, lookups in enumerate(expected):
        outcomes = [lookup.split()[1] for lookup in lookups]
        hits, bypasses = outcomes.count("hit"), outcomes.count("bypass")
        words = f"{hits} hit, {len(outcomes) - hits - bypasses} missed"
        words += f", {bypasses} bypassed or disabled" if bypasses else ""
        head = f"{len(outcomes)} lookups in 1 run: {words} ("
        lines = terminal_lines(answer_blocks(scope, {run}))[:2]
        assert any(line.text.startswith(head) for line in lines)


@pytest.mark.slow
def test_what_no_run_before_it_says_is_what_that_run_alone_says(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "config_flip") / "trace")
    alone = [headline(Chosen(cachescope.read(source))) for source in scope.runs["source"]]
    said = [terminal_lines(answer_blocks(scope, {run}))[0].text for run in scope.runs["run"]]
    assert said[0] == alone[0] and said[2] == alone[2]  # the first, and one that hits
    assert "epilogue_fusion" in said[1] and "epilogue_fusion" not in alone[1]
