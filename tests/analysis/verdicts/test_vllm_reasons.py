"""What is said of a whole compiled model that was there and was not used: an error and what its folder says in, made by hand."""

import pytest

from cachescope.analysis.verdicts.misses import Why
from cachescope.analysis.verdicts.vllm_misses import Judged, not_loaded

EDITED = "Source code has changed since the last compilation. Recompiling the model."
CODE_CHANGED, OTHER_CHANGED = (
    Judged(Why("key_changed", "it changed", "inferred", "", changed), baseline=3)
    for changed in (("code_hash",), ("code_hash", "env[VLLM_A]"))
)
NEW = Judged(Why("first_lookup", "it is new", "inferred", ""), baseline=3)


@pytest.mark.parametrize(
    ("changed", "baseline"), [(None, None), (NEW, None), (OTHER_CHANGED, None), (CODE_CHANGED, 3)]
)
def test_files_that_were_edited(changed: Judged | None, baseline: int | None) -> None:
    """They are compared with another start only if nothing else changed since then."""
    found = not_loaded(EDITED, changed)
    why = found.why
    assert (why.verdict, why.changed, why.evidence) == ("key_changed", ("code_hash",), "recorded")
    assert found.baseline == baseline


@pytest.mark.parametrize(("changed", "reason"), [
    (None, "a whole compiled model was there and could not be loaded: EOFError"),
    (NEW, "a whole compiled model was there and could not be loaded: EOFError"),
    (CODE_CHANGED, "a whole compiled model was there and could not be loaded: EOFError; of its graphs, it changed"),
])  # fmt: skip
def test_an_error_of_loading_it(changed: Judged | None, reason: str) -> None:
    found = not_loaded("EOFError", changed)
    why = found.why
    assert (why.verdict, why.kind, why.evidence) == ("entry_unavailable", "load error", "recorded")
    assert found.why.reason == reason
