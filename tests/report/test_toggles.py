"""What the toggles of a replay say: a form and its fields do not contradict each other."""

import cachescope
from cachescope.columns import rows_of
from cachescope.frames.replay_rows import SensitivityRow
from cachescope.report.page.toggles import savings_of
from cachescope.report.what_if_forms import saves
from tests.conftest import Recording


def test_a_form_with_one_field_that_varies_saves_what_that_field_saves(recording: Recording) -> None:
    """Ranks that began together: only a staggered start would save something, of the field and of its form."""
    scope = cachescope.read(recording("2.13.0", "two_ranks_cold_paths"))
    ranking = rows_of(scope.sensitivity(), SensitivityRow)
    (row,) = ranking
    assert (row.misses_alone, row.staggered > 0) == (0, True)
    said = savings_of(scope, ranking, row.fields)
    assert said["inductor_configs"] == said[row.fields[0]] == saves(row)
