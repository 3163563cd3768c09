"""Which environment variables vLLM counts in the names of its folders, by release (vllm/envs.py, ``compile_factors``)."""

from __future__ import annotations

from cachescope.catalogue.facts import document


def no_longer_counted_by(name: str) -> str | None:
    """The newest release that is known, where it does not count a variable that an earlier one counts; else None.

    Examples
    --------
    >>> no_longer_counted_by("VLLM_RAY_BUNDLE_INDICES"), no_longer_counted_by("VLLM_USE_AOT_COMPILE")
    ('0.33.0', None)
    """
    # The releases, the oldest first, and which of them count each variable.
    found = document("vllm_variables.json")
    newest: str = found["releases"][-1]
    return newest if newest not in found["counted_by"].get(name, [newest]) else None
