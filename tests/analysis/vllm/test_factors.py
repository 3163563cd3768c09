"""Two folders side by side: their factors in, the changes of fields and what to do about them out; made by hand."""

import pytest

from cachescope.analysis.differences import FieldChange
from cachescope.analysis.verdicts.causes import AdviceFacts
from cachescope.analysis.vllm.factors import Named, between, field_changes_of, vllm_advice


@pytest.mark.parametrize(("factor", "before", "after", "kind", "summary"), [
    ("env[VLLM_A]", '"1"', '"2"', "value", '"1" -> "2"'),
    ("env[VLLM_PORT]", "5600", "5601", "value", "apparently differs by port: "),
    # Of a hash the values say nothing: what it is made of does.
    ("code_hash", "aa11", "bb22", "value", "the files that were traced"),
    ("config_hash", "aa11", "bb22", "value", "the configuration"),
    ("env_hash", "aa11", "bb22", "value", "the environment variables that vLLM counts differ"),
])  # fmt: skip
def test_a_factor_that_differs(factor: str, before: str, after: str, kind: str, summary: str) -> None:
    sides = (
        Named(name, {factor: value, "env[VLLM_B]": "1"}, None)
        for name, value in (("a", before), ("b", after))
    )
    (change,) = field_changes_of(between(*sides))
    assert (change.field, change.before, change.after, change.kind) == (factor, before, after, kind)
    assert change.summary.startswith(summary)


def test_factors_with_values_come_before_hashes() -> None:
    sides = (Named(name, dict.fromkeys(("code_hash", "env[VLLM_B]", "env[A]"), name), None) for name in "ab")
    assert between(*sides).changed == ("env[A]", "env[VLLM_B]", "code_hash")


@pytest.mark.parametrize(("factor", "first", "sentences"), [
    ("env[VLLM_A]", "Give VLLM_A the same value in every engine, if it need not differ.", 1),
    ("env[VLLM_RAY_BUNDLE_INDICES]", "Give VLLM_RAY_BUNDLE_INDICES the same value in every engine", 2),
    # Of what only the hash is known there is no value to set.
    ("env_hash", "Read vLLM's torch_compile_cache beside the log", 1),
    ("config_hash", "A configuration is compiled for once", 1),
    ("code_hash", "Edited files are compiled for once", 2),
    ("compiler_hash", "vLLM counts torch and the machine", 1),
])  # fmt: skip
def test_what_to_do_about_a_factor(factor: str, first: str, sentences: int) -> None:
    change = FieldChange(factor, "value", "1", "2", "")
    advice = vllm_advice(AdviceFacts("key_changed", changes=(change,)), (change,)) or ""
    assert advice.startswith(first)
    assert advice.count(". ") == sentences - 1
