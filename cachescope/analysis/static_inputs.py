"""Which inputs of a graph torch takes for a part of the model: its static inputs, as parameters and buffers are."""

from __future__ import annotations

import re
from typing import Final

from cachescope.details import HashDetails

_FX: Final = "fx_kwargs[static_input_idxs]"
_NUMBERS: Final = re.compile(r"\[([\d, ]*)\]")
# torch 2.13 to 2.15, torch/_functorch/_aot_autograd/autograd_cache.py, `_reduce_aot_config`: between the sources of
# the arguments and two flags stand the `static_input_indices`.
_IN_AOT_CONFIG: Final = re.compile(r"\], \[([\d, ]*)\], (?:True|False), (?:True|False)\b")
# The code of a graph that Dynamo made, in every version: def forward(self, p_0 : torch.nn.parameter.Parameter, …):
_FORWARD: Final = "def forward(self, "
_PARAMETER: Final = ": torch.nn.parameter.Parameter"


def static_inputs(details: HashDetails, set_code: int) -> frozenset[int]:
    """The numbers of the inputs that are static; empty where that is not recorded.

    Of a backward graph it is not known which of them are of the model: torch takes every saved tensor for static there.
    """
    if details.direction(set_code) == "backward":
        return frozenset()
    inputs = _inputs_of_code(_text(details, set_code, "gm"))
    found = {number for number, name in enumerate(inputs) if name.endswith(_PARAMETER)}
    for field, pattern in ((_FX, _NUMBERS), ("aot_config", _IN_AOT_CONFIG)):
        if match := pattern.search(_text(details, set_code, field)):
            found.update(map(int, re.findall(r"\d+", match[1])))
    return frozenset(found)


def _inputs_of_code(code: str) -> list[str]:
    """The inputs of a graph with their annotations, as its code declares them."""
    line = next((line for line in code.split("\n") if line.startswith(_FORWARD)), "")
    return line.removeprefix(_FORWARD).partition(") ->")[0].removesuffix("):").split(", ")


def _text(details: HashDetails, set_code: int, field: str) -> str:
    detail = details.detail(set_code, field)
    return "" if detail is None else detail.value_text
