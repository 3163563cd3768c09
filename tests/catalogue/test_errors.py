"""Bypasses that an error caused, against the error that torch raises itself where its cache is strict."""

from __future__ import annotations

import json

import pytest

import cachescope
from cachescope.analysis.verdicts.advice import bypass_advice
from cachescope.readers.json_record import Record
from cachescope.readers.logs.trace_artifacts import lookup_from_artifact
from tests.conftest import DATA, Archive

_VERSIONS = sorted(path.name.removesuffix(".tar.xz") for path in (DATA / "errors").glob("*.tar.xz"))
_REASONS = {"text": "KeyError: 'scale'", "none": "AssertionError"}


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("way", _REASONS)
def test_a_bypass_names_the_error_that_ended_the_lookup(version: str, way: str, archive: Archive) -> None:
    folder = archive(f"errors/{version}") / version / way
    lenient, strict = (json.loads((folder / f"{how}.json").read_text()) for how in ("lenient", "strict"))
    scope = cachescope.read(folder / "trace")
    bypassed = scope.lookups.query("cache == 'aotautograd' and outcome == 'bypass'")
    assert len(bypassed) == lenient["bypasses"] == 2
    # The tensor's own function is compiled as well; torch does not cache what it calls.
    own = bypassed.set_index("function")["bypass_exception"].to_dict()
    assert own == {"scaled": strict["raised"], "__torch_dispatch__": "BypassAOTAutogradCache"}
    causes = scope.causes.query("verdict == 'bypassed'").set_index("kind")
    assert causes.loc[_REASONS[way], "advice"] == bypass_advice("", "aotautograd", strict["raised"])
    assert "an error ended the lookup: " + _REASONS[way] in str(scope.explain())


def test_where_torch_names_no_class_an_error_is_told_from_its_own_decision() -> None:
    """By hand, in the form of torch 2.6."""
    for is_error, named in ((True, "Exception"), (False, None)):
        payload = Record({"cache_bypass_reason": "", "cache_bypass_hard_exception": is_error})
        lookup = lookup_from_artifact("aotautograd_cache_bypass", payload)
        assert lookup.bypass_exception == named
    assert bypass_advice("", "aotautograd", "Exception") != bypass_advice("", "aotautograd", None)
