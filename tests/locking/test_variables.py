"""The environment variables that enter keys, by torch's source in the catalogue."""

import pytest

from cachescope.catalogue.facts import field_facts, versions
from cachescope.locking.variables import variables_of_keys

COMMON = "TORCHINDUCTOR_SHAPE_PADDING"
# torch/_inductor/config.py has `autotune_fallback_to_aten` through 2.7.
GONE = "TORCHINDUCTOR_AUTOTUNE_FALLBACK_TO_ATEN"


@pytest.mark.parametrize("version", ["2.6.0", versions()[-1]])
def test_the_variables_are_those_of_the_torch_that_was_asked_for(version: str) -> None:
    found = variables_of_keys(version)
    assert COMMON in found
    assert (GONE in found) is (version == "2.6.0")
    for name, fields in found.items():
        for field in fields:
            facts = field_facts(field, version)
            assert facts is not None and name in facts.environment and facts.in_key


def test_without_a_version_it_is_the_newest() -> None:
    assert variables_of_keys() == variables_of_keys(versions()[-1]) != variables_of_keys(versions()[0])
