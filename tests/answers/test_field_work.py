"""Advice on a changed key, taken apart by its fields."""

from __future__ import annotations

import pytest

import cachescope
from cachescope.analysis.fields import field_advice
from cachescope.answers.explanation import Explanation
from cachescope.answers.worklist import advice_by_field
from tests.conftest import Recording

OPTIONS = ["inductor_config[epilogue_fusion]", "inductor_config[max_fusion_size]"]


@pytest.mark.slow
def test_advice_on_several_fields_stands_beside_each(recording: Recording) -> None:
    found = []
    for name in ("config_flip", "tour", "training", "four_graphs", "two_services"):
        scope = cachescope.read(recording("2.13.0", name))
        for lookup in scope.misses["lookup"].tolist():
            explained = Explanation.of(scope, lookup)
            parts = advice_by_field(scope, explained)
            if not parts:
                continue
            assert " ".join(sentence for _, sentence in parts) == explained.advice
            changed = {change.field for change in explained.changes}
            for fields, sentence in parts:
                assert set(fields) <= changed
                # What is said of an option is what the list of fields says of it.
                assert [
                    s for field in fields if field in OPTIONS and (s := field_advice(field)) != sentence
                ] == []
            found.append(len(parts))
    assert found
