"""What to do about a graph that torch would not cache, from the catalogue of its reasons."""

from __future__ import annotations

from typing import Final

from cachescope.catalogue.bypasses import bypass_facts, cacheable_since, operator_of, versions

_SHORT: Final = slice(0, 2)


def bypass_advice(reason: str | None, cache: str) -> str:
    """What lifts a bypass: from the catalogue, or that it is not known.

    Parameters
    ----------
    reason : str or None
        The reason in torch's words; None or empty where it gave none.
    cache : str
        The cache that was bypassed.
    """
    facts = bypass_facts(reason or "", cache)
    if facts is None:
        return _not_known()
    operator = operator_of(reason or "")
    return facts.advice if operator is None else f"{_about(operator)} {facts.advice}"


def _not_known() -> str:
    return (
        f"Not known: the caches of torch {_spanned()} give no such reason of their own. It may be the text of an error that ended the "
        "lookup."
    )


def _about(operator: str) -> str:
    since = cacheable_since(operator)
    if since is None:
        return f"No torch up to {_minor(versions()[-1])} caches graphs with {operator} by itself."
    return f"Torch {_minor(since)} and later cache graphs with {operator}."


def _spanned() -> str:
    covered = versions()
    return f"{_minor(covered[0])} to {_minor(covered[-1])}"


def _minor(version: str) -> str:
    return ".".join(version.split(".")[_SHORT])
