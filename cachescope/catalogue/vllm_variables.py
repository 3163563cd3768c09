"""Which environment variables vLLM counts in the names of its folders, by release (vllm/envs.py, ``compile_factors``)."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files


def no_longer_counted_by(name: str) -> str | None:
    """The newest release that is known, where it does not count a variable that an earlier one counts; else None.

    Examples
    --------
    >>> no_longer_counted_by("VLLM_RAY_BUNDLE_INDICES"), no_longer_counted_by("VLLM_USE_AOT_COMPILE")
    ('0.33.0', None)
    """
    releases, counted_by = _variables()
    return releases[-1] if name in counted_by and releases[-1] not in counted_by[name] else None


@lru_cache(maxsize=1)
def _variables() -> tuple[list[str], dict[str, list[str]]]:
    """The releases, the oldest first, and which of them count each variable."""
    found = json.loads(files(__package__).joinpath("vllm_variables.json").read_text(encoding="utf-8"))
    return found["releases"], found["counted_by"]
