"""The printed code of graphs: how similar two graphs are, and how they differ."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from typing import Final

_WORD: Final = re.compile(r"\w+|[@+*/-]")
# Words that every printed graph contains do not make graphs similar: torch/fx/graph.py, `python_code`.
_EVERYWHERE: Final = frozenset(
    {"def", "forward", "self", "torch", "Tensor", "return", "ops", "aten", "default"}
)
_PLACEHOLDER: Final = re.compile(r"(?:arg|primals|tangents|p|s|x)_?\d+(?:_\d+)?|L_\w+_|None")
# torch/nn/modules/module.py, `Module.__repr__`.
_INNER: Final = re.compile(r"^  \((\w+)\): ", re.MULTILINE)
# An operator in none of torch's own namespaces, 2.4 to 2.15.
_OPERATOR: Final = re.compile(
    r"\btorch\.ops\.(?!(?:aten|prims?|rngprims|debugprims|inductor|inductor_prims|higher_order|_?quantized|quantized_decomposed|onednn|mkl|mkldnn|"
    r"mkldnn_prepacked|fbgemm|sparse|c10d|_?c10d_functional|_c10d_functional_autograd|streams|symm_mem|profiler|fsdp|export|bucketing|"
    r"device_mesh|_dtensor|_native|_inductor_test|_inductor_debug)\.)(\w+)\.(\w+)"
)
_TOKEN: Final = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|[A-Za-z_]\w*|\d+(?:\.\d+)?(?:e[+-]?\d+)?|[^\w\s]")
# torch/distributed/_functional_collectives.py, 2.4 to 2.15: the size of the group comes before its name. In broadcast, a rank does.
_GROUP_SIZE: Final = re.compile(
    r"\b_?c10d_functional\.(?:all_gather_into_tensor|reduce_scatter_tensor)\w*(?:\.default)?\([^()]*, (\d+), '[^'\n]*'\)"
)
# A function or method, as in `torch.nn.functional.linear(`, or a sign between two values.
_CALL: Final = re.compile(r"(?:torch(?:\.\w+)+|\.\w+)\(| (?:[@+*/%-]|//|\*\*) ")
_FLOATS: Final = frozenset({"float16", "bfloat16", "float32", "float64"})
# The largest number, the smallest normal one and the precision of each.
_LIMITS: Final = frozenset(
    "65504.0 6.103515625e-05 0.0009765625 3.3895313892515355e+38 1.1754943508222875e-38 0.0078125 "  # noqa: SIM905
    "3.4028234663852886e+38 1.1920928955078125e-07 1.7976931348623157e+308 2.2250738585072014e-308 "
    "2.220446049250313e-16".split()
)
_LAST_HINT: Final = "# To see more debug info"


def graph_words(code: str) -> Counter[str]:
    """How often each word is in a graph's code: its operations and constants, without what every graph contains."""
    return Counter(
        w for w in _WORD.findall(_body(code)) if w not in _EVERYWHERE and not _PLACEHOLDER.fullmatch(w)
    )


def likeness(a: Counter[str], b: Counter[str]) -> float:
    """Between 0 and 1: the share of words that two graphs have in common (Dice)."""
    total = a.total() + b.total()
    return 1.0 if total == 0 else 2 * (a & b).total() / total


def graph_diff(before: str, after: str, context: int = 2) -> str:
    """A unified diff of two graphs' code; empty if the printed code is equal."""
    lines = difflib.unified_diff(
        _body(before).splitlines(), _body(after).splitlines(), "before", "after", lineterm="", n=context
    )
    return "\n".join(lines)


def tokens(code: str) -> list[str]:
    """The names, numbers, texts and signs of a graph's code."""
    return _TOKEN.findall(code)


def replacement(gone: str, new: str) -> str | None:
    """The one token that replaces another one, with the argument that it belongs to; None if more differs.

    Examples
    --------
    >>> replacement("cross_entropy(x, y, label_smoothing = 0.0)", "cross_entropy(x, y, label_smoothing = 0.1)")
    'label_smoothing = 0.0 -> 0.1'
    """
    old, now = tokens(gone), tokens(new)
    if len(old) != len(now):
        return None
    places = [at for at, (a, b) in enumerate(zip(old, now, strict=True)) if a != b]
    if len({(old[at], now[at]) for at in places}) != 1:
        return None
    arguments = {old[at - 2] if old[at - 1] == "=" and old[at - 3] in ("(", ",") else "" for at in places}
    argument = arguments.pop() if len(arguments) == 1 else ""
    return f"{argument and f'{argument} = '}{old[places[0]]} -> {now[places[0]]}"


def calls_of_the_same(before: str, after: str) -> tuple[int, int] | None:
    """How often two graphs call operators, if one calls the same ones as the other, none of them less often; None otherwise.

    Examples
    --------
    >>> calls_of_the_same("a = torch.relu(x);  b = a + x", "a = torch.relu(x);  b = a + x;  c = torch.relu(b)")
    (2, 3)
    """
    old, new = (Counter(_CALL.findall(_body(code))) for code in (before, after))
    is_more_of_same = old.keys() == new.keys() and old != new and (old <= new or new <= old)
    return (old.total(), new.total()) if is_more_of_same else None


def differ_in_dtypes(before: str, after: str) -> bool:
    """Whether two graphs differ in floating dtypes alone, and in their limits, such as ``torch.finfo(x.dtype).min``."""
    old, new = tokens(_body(before)), tokens(_body(after))
    differing = {(a, b) for a, b in zip(old, new, strict=False) if a != b}
    are_floats = all({*pair} <= _FLOATS or {*pair} <= _LIMITS for pair in differing)
    return bool(differing) and are_floats and len(old) == len(new)


def inner_graphs(code: str) -> list[str]:
    """The names of the graphs within a printed graph. torch prints their names, but not their code.

    These are the functions given to flex attention, the branches of cond, and checkpointed regions.
    """
    return _INNER.findall(code.partition("def forward(")[0])


def own_operators(code: str) -> tuple[str, ...]:
    """The operators in a graph that are not torch's own, such as ``mylib::scaled``.

    Examples
    --------
    >>> own_operators("torch.ops.mylib.scaled.default(torch.ops.aten.relu.default(x))")
    ('mylib::scaled',)
    """
    return tuple(dict.fromkeys(map("::".join, _OPERATOR.findall(code))))


def group_sizes(code: str) -> list[str]:
    """The group sizes of the collectives in a graph, where the code has them.

    Examples
    --------
    >>> group_sizes("torch.ops._c10d_functional.all_gather_into_tensor.default(x, 4, '0')")
    ['4']
    """
    return _GROUP_SIZE.findall(code)


def _body(code: str) -> str:
    kept = [line.rstrip() for line in code.split("\n") if not line.startswith(_LAST_HINT)]
    return "\n".join(kept).strip("\n") + "\n"
