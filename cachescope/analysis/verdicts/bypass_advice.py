"""What to do about a graph that torch would not cache, from the catalogue of its reasons."""

from __future__ import annotations

from typing import Final

from cachescope.catalogue.bypasses import bypass_facts, cacheable_since, operator_of, versions

_SHORT: Final = slice(0, 2)
# torch/_functorch/_aot_autograd/autograd_cache.py, `BypassAOTAutogradCache`.
_OWN: Final = "Bypass"
_ERROR: Final = (
    "An error ended the lookup in AOTAutograd's cache, and torch compiled as if there were no such cache. To see where it is raised: "
    "torch._functorch.config.strict_autograd_cache = True lets it through; torch 2.10 and later also write its traceback into the trace, "
    "as cache_bypass_traceback of the artifact aotautograd_cache_bypass."
)


def is_error(exception: str | None) -> bool:
    """Whether a bypass is due to an error, by the class of the exception: not to a decision of torch."""
    return exception is not None and not exception.startswith(_OWN)


def bypass_advice(reason: str | None, cache: str, exception: str | None = None) -> str:
    """What lifts a bypass: from the catalogue, or that it is not known."""
    if is_error(exception):
        return _ERROR
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
