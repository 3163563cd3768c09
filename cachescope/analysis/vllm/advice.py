"""What to do about a miss of vLLM's own cache: only what is true of vLLM 0.13.0 and 0.33.0."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from cachescope.analysis.differences import FieldChange
from cachescope.analysis.vllm.factors import CODE, COMPILER, CONFIGURATION, ENVIRONMENT, name_of_variable
from cachescope.catalogue.vllm_variables import no_longer_counted_by
from cachescope.terms import Verdict
from cachescope.wording import listed

_NAMED: Final = 4
_HASHES: Final = {
    ENVIRONMENT: "Read vLLM's torch_compile_cache beside the log: cache_key_factors.json has the variables.",
    CONFIGURATION: "A configuration is compiled for once: give every engine of one model the same arguments and the same vLLM, or ship a "
    "cache for each configuration.",
    CODE: "Edited files are compiled for once. Where the files are equal, their paths may differ: install vLLM and the model in the "
    "same place on each machine.",
    COMPILER: "vLLM counts torch and the machine; 0.33.0 counts the settings of torch._inductor as well: keep them equal, or ship a cache "
    "for each.",
}


def vllm_advice(verdict: Verdict, kind: str, changes: Sequence[FieldChange]) -> str | None:
    """Advice for a cause, from its first miss; None if nothing is certain."""
    match verdict:
        case "key_changed":
            return " ".join(_of_factors([change.field for change in changes])) or None
        case "entry_unavailable" if kind == "another directory":
            return (
                "Point VLLM_CACHE_ROOT of both processes to one directory, or copy torch_compile_cache there."
            )
        case "entry_unavailable" if kind == "load error":
            return "vLLM compiles again and stores the model anew. If the error stays, remove the folder that it names."
        case "compiled_concurrently":
            return "Let one engine compile before the others start, or ship a torch_compile_cache made beforehand."
        case "disabled":
            return "VLLM_DISABLE_COMPILE_CACHE=1 switches it off: unset it."
    return None


def factor_advice(factor: str) -> str:
    """What to do about one factor that differs."""
    return " ".join(_of_factors([factor]))


def _of_factors(factors: Sequence[str]) -> Iterator[str]:
    variables = [name for one in factors if one not in _HASHES and (name := name_of_variable(one))]
    if variables:
        yield f"Give {listed(variables, _NAMED)} the same value in every engine, if it need not differ."
    ignored: dict[str, list[str]] = defaultdict(list)
    for name in variables:
        if (release := no_longer_counted_by(name)) is not None:
            ignored[release].append(name)
    for release, names in ignored.items():
        yield f"vLLM {release} does not count {listed(names, _NAMED)}."
    yield from (_HASHES[one] for one in factors if one in _HASHES)
