"""The environment variables that enter keys, and how torch makes the values of fields from them.

The catalogue quotes torch's source: an expression of any other form is named, not evaluated.
"""

from __future__ import annotations

import re
from typing import Final

from cachescope.catalogue.facts import FieldFacts, field_facts, fields, nearest, versions
from cachescope.keys.key_fields import is_of_the_program

Rule = tuple[str, str | None]
"""``switch``, ``int``, ``text`` or ``other``, and what counts where the variable is not set."""

_GET: Final = (
    r"os\.(?:environ\.get|getenv)\('(?P<name>\w+)'(?:, (?:'(?P<unset>[^']*)'|(?P<number>\d+)|None))?\)"
)
_FORMS: Final = {
    "switch": re.compile(_GET + r" == '1'"),
    "int": re.compile(rf"int\({_GET}\)"),
    "text": re.compile(_GET),
}
# Not made in a config module, so the catalogue quotes no expression: torch/_inductor/config.py, `cache_key_tag` by
# torch/compiler/config.py (2.6 to 2.15); ATen's number of threads, which it takes from OpenMP.
_KNOWN: Final[dict[tuple[str, str], Rule]] = {
    ("TORCH_COMPILE_CACHE_KEY_TAG", "cache_key_tag"): ("text", ""),
    ("OMP_NUM_THREADS", "cpp_runtime_thread_count"): ("int", None),
}


def variables_of_keys(version: str | None = None) -> dict[str, dict[str, Rule]]:
    """By variable, the fields that it sets in the keys of a torch, and how.

    Examples
    --------
    >>> found = variables_of_keys("2.13.0")
    >>> found["TORCHINDUCTOR_SHAPE_PADDING"]
    {'inductor_config[shape_padding]': ('switch', '1')}
    >>> found["TORCHINDUCTOR_MULTI_KERNEL"]
    {'inductor_config[triton.multi_kernel]': ('int', '0')}
    """
    read = versions()[-1] if version is None else nearest(version, versions())
    found: dict[str, dict[str, Rule]] = {}
    for name in fields(read or versions()[0])["field"]:
        facts = field_facts(name, read)
        if facts is None or not facts.in_key or is_of_the_program(name):
            continue
        for variable in facts.environment:
            found.setdefault(variable, {})[name] = _rule(variable, facts)
    return found


def _rule(variable: str, facts: FieldFacts) -> Rule:
    if (known := _KNOWN.get((variable, facts.field))) is not None:
        return known
    for kind, form in _FORMS.items():
        match = form.fullmatch(facts.default or "")
        if match is not None and match["name"] == variable:
            return kind, match["unset"] if match["unset"] is not None else match["number"]
    return "other", None
