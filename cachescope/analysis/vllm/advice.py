"""What to do about a miss of vLLM's own cache: only what is true of vLLM 0.13.0 and 0.33.0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from cachescope.analysis.differences import FieldChange
from cachescope.analysis.vllm.factors import CODE, COMPILER, CONFIGURATION, ENVIRONMENT, name_of_variable
from cachescope.catalogue.vllm_variables import no_longer_counted_by
from cachescope.grouping import by_key
from cachescope.verdict_kinds import Judged, kind_of
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


def vllm_advice(miss: Judged, changes: Sequence[FieldChange]) -> str | None:
    """Advice for a cause, from its first miss and what changed in its key; None if nothing is certain."""
    return " ".join(_of_factors([change.field for change in changes])) or kind_of(miss).vllm_advice


def _of_factors(factors: Sequence[str]) -> Iterator[str]:
    variables = [name for one in factors if one not in _HASHES and (name := name_of_variable(one))]
    if variables:
        yield f"Give {listed(variables, _NAMED)} the same value in every engine, if it need not differ."
    ignored = by_key((since, name) for name in variables if (since := no_longer_counted_by(name)) is not None)
    for release, names in ignored.items():
        yield f"vLLM {release} does not count {listed(names, _NAMED)}."
    yield from (_HASHES[one] for one in factors if one in _HASHES)
