"""Which environment variables vLLM counts in the names of its folders, and how it reads them (vllm/envs.py, ``compile_factors``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from cachescope.catalogue.facts import document

_FILE: Final = "vllm_variables.json"
_SECRET: Final = re.compile(r"key|token(?!s|iz)|secret|passw|credential", re.IGNORECASE)


@lru_cache(5_000)
def is_secret(name: str) -> bool:
    """Whether a variable is named like a secret: its values are compared, and never kept or shown."""
    return _SECRET.search(name) is not None


def no_longer_counted_by(name: str) -> str | None:
    """The newest release that is known, where it does not count a variable that an earlier one counts; else None.

    >>> no_longer_counted_by("VLLM_RAY_BUNDLE_INDICES"), no_longer_counted_by("VLLM_USE_AOT_COMPILE")
    ('0.33.0', None)
    """
    newest = _releases()[-1]
    return newest if _forms(name) and newest not in _forms(name) else None


def release_of(names: Iterable[str]) -> str | None:
    """The release that counts these variables and no others; None if none that is known does."""
    own, known = set(names), document(_FILE)["variables"]
    return next((one for one in _releases() if own == {name for name in known if one in _forms(name)}), None)


def values_of(
    name: str, environment: Mapping[str, str], release: str | None
) -> tuple[list[object], list[object]] | None:
    """What vLLM makes of a variable, and what it may set itself instead; None where that is not known.

    Of a release that is not known it is what the known ones make of a text; what an unset variable is, differs between releases.

    Raises
    ------
    ValueError
        If vLLM would not start with this value.

    Examples
    --------
    >>> values_of("VLLM_USE_TRITON_AWQ", {}, "0.33.0"), values_of("VLLM_ALL2ALL_BACKEND", {"VLLM_ALL2ALL_BACKEND": "pplx"}, None)
    (([False], [True]), (['pplx'], []))
    >>> values_of("VLLM_CONFIG_ROOT", {}, "0.13.0"), values_of("VLLM_USE_TRITON_AWQ", {}, None)
    (None, None)
    """
    by_release, (_, own) = _forms(name), document(_FILE)["variables"].get(name, ((), ()))
    forms = [form for one, form in by_release.items() if one == release] or list(by_release.values())
    if not forms or None in forms or None in own or (release is None and name not in environment):
        return None
    here = environment.get(name)
    return _distinct(_value(form, here) for form in forms), _distinct(
        _value(form, text) for form in forms for text in own
    )


def _distinct(values: Iterable[object]) -> list[object]:
    # Not by their hash: 1 is equal to True.
    return list({repr(one): one for one in values}.values())


def _releases() -> list[str]:
    """The releases that are known, the oldest first."""
    found: list[str] = document(_FILE)["releases"]
    return found


@lru_cache(1_000)
def _forms(name: str) -> dict[str, Sequence[Any] | None]:
    """How each release that counts a variable reads it; None where it does so by a function."""
    releases, (spans, _) = _releases(), document(_FILE)["variables"].get(name, ((), ()))
    return {
        one: form
        for first, last, form in spans
        for one in releases[releases.index(first) : releases.index(last) + 1]
    }


def _value(form: Sequence[Any] | None, text: str | None) -> object:
    assert form is not None
    kind, unset, *true = form
    text = unset if text is None else text
    if text is None:
        return None
    match kind:
        case "switch":
            return bool(int(text))
        case "int":
            return int(text)
        case "float":
            return float(text)
        case "is":
            return text in true[0]
        case "is_one_of":
            return text.lower() in true[0]
        case "bare_is_one_of":
            return text.strip().lower() in true[0]
        case _:
            return {"lower": text.lower(), "upper": text.upper()}.get(kind, text)
