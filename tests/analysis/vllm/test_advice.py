"""What to do about factors that differ: their names in, sentences out."""

from __future__ import annotations

import pytest

from cachescope.analysis.vllm.advice import factor_advice


@pytest.mark.parametrize(
    ("factor", "first", "sentences"),
    [
        ("env[VLLM_A]", "Give VLLM_A the same value in every engine, if it need not differ.", 1),
        ("env[VLLM_RAY_BUNDLE_INDICES]", "Give VLLM_RAY_BUNDLE_INDICES the same value in every engine", 2),
        # Of what only the hash is known there is no value to set.
        ("env_hash", "Read vLLM's torch_compile_cache beside the log", 1),
        ("config_hash", "A configuration is compiled for once", 1),
        ("code_hash", "Edited files are compiled for once", 2),
        ("compiler_hash", "vLLM counts torch and the machine", 1),
    ],
)
def test_what_to_do_about_a_factor(factor: str, first: str, sentences: int) -> None:
    advice = factor_advice(factor)
    assert advice.startswith(first)
    assert advice.count(". ") == sentences - 1
