"""Which hash details represent which context form, and which fields a pattern removes from a key.

Pure and without torch. A *part* is a piece of one field that has no hash of its own: the ``device`` of
an input, the Triton version within ``system_info[version]``. Parts are compared by their printed text.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from cachescope.errors import NotFoundError
from cachescope.keys.device_text import arguments
from cachescope.keys.printed_values import literal_value

# The fields of an FX key that depend on the program (the graph, its inputs, the call) and not on the process:
# torch/_inductor/codecache.py, `FxGraphHashDetails` (2.6 to 2.15). A field that a later torch adds counts as the process's
# until it is listed here.
OF_THE_PROGRAM: Final = frozenset(
    "gm example_inputs fx_kwargs user_defined_triton_source inputs_to_check nested_inductor_config_patches "  # noqa: SIM905
    "cudagraph_override cudagraph_annotation var_to_hint_override".split()
)

# torch/_inductor/codecache.py, `FxGraphHashDetails.__init__` (2.9 to 2.15; up to 2.8 the first is the flag allow_tf32).
_MATMUL: Final = (
    "fp32_precision",
    "allow_fp16_reduced_precision_reduction",
    "allow_bf16_reduced_precision_reduction",
)

# torch/_inductor/runtime/caching/context.py (2.10 to 2.15), compared with `FxGraphHashDetails.__init__` of
# torch/_inductor/codecache.py and `AOTAutogradCacheDetails.__init__`, which contain the same facts.
_WHOLE_FIELDS: Final = MappingProxyType(
    {
        "inductor_configs": ("inductor_config", "inductor_config_comms"),
        "torch_determinism_configs": ("deterministic_algorithms_settings", "deterministic_algorithms"),
        "cuda_matmul_precision_configs": ("cuda_matmul_settings",),
        "torch_version_hash": ("torch_version",),
        "triton_version_hash": (),
        "runtime": (),
        "runtime_version": (),
        # 2.15 adds what each backend reports about its device.
        "accelerator_properties": ("system_info[device]", "system_info[device_interfaces]"),
    }
)
# torch/_inductor/codecache.py, `CacheBase.get_system`: {"triton": …, "cuda" or "hip": …}.
VERSION_FIELD: Final = "system_info[version]"
"""The only field of which forms remove parts."""
_VERSION_PARTS: Final = ("triton_version_hash", "runtime", "runtime_version")
_SYSTEM_FORMS: Final = (*_VERSION_PARTS, "accelerator_properties")

# torch/_subclasses/fake_tensor.py, `TensorMetadata` (2.4 to 2.15).
TENSOR_PARTS: Final = (
    "dtype", "shape", "stride", "device", "layout", "memory_format", "storage_offset", "storage_bytes",
    "requires_grad", "is_quantized", "is_conj", "is_neg", "is_inference", "is_sparse", "is_coalesced",
    "dense_dim", "sparse_dim",
)  # fmt: skip
_TENSOR: Final = re.compile(r"\(?(?:FakeTensor)?TensorMetadata\(")
_PART_PATTERN: Final = re.compile(r"(?P<fields>.*\]|[\w*]+)\.(?P<part>\w+)")


OF_THE_INSTALLATION: Final = ("torch_version", "system_info")
"""What the fields begin with that nothing a program sets brings back: another torch, another machine."""


_OF_INPUTS: Final = re.compile(r"example_inputs\[.*|inputs_to_check\[.*|fx_kwargs\[static_input_idxs\]")
# Of an AOTAutograd key: what it knows of the arguments, and two states that Dynamo guards.
_OF_THE_CALL: Final = ("aot_config", "grad_enabled", "autocast_state")


def is_of_the_program(name: str) -> bool:
    """Whether a field of an FX key depends on the program rather than on the process.

    Examples
    --------
    >>> is_of_the_program("example_inputs[0]"), is_of_the_program("inductor_config[epilogue_fusion]")
    (True, False)
    """
    return name.partition("[")[0] in OF_THE_PROGRAM


@lru_cache(maxsize=1 << 14)
def is_input(name: str) -> bool:
    """Whether a field describes the inputs of a graph."""
    return _OF_INPUTS.fullmatch(name) is not None


def is_of_the_call(name: str) -> bool:
    """Whether a field depends on the program and the call: on its arguments, or on whether gradients or autocast are on around it.

    Examples
    --------
    >>> is_of_the_call("grad_enabled"), is_of_the_call("inductor_config[epilogue_fusion]")
    (True, False)
    """
    return is_of_the_program(name) or name.partition("[")[0] in _OF_THE_CALL


@dataclass(frozen=True, slots=True)
class Removed:
    """What is removed from a key: whole fields, and parts of fields."""

    fields: frozenset[str] = frozenset()
    parts: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether anything is removed."""
        return bool(self.fields or self.parts)

    def __or__(self, other: Removed) -> Removed:
        """Combine both."""
        fields = self.fields | other.fields
        parts: dict[str, frozenset[str]] = {}
        for name in {*self.parts, *other.parts} - fields:
            parts[name] = self.parts.get(name, frozenset()) | other.parts.get(name, frozenset())
        return Removed(fields, parts)


def form_fields(forms: Iterable[str], fields: Sequence[str]) -> Removed:
    """The fields, and parts of fields, that represent the given context forms.

    Examples
    --------
    >>> sorted(form_fields(["inductor_configs"], ["gm", "inductor_config[max_autotune]"]).fields)
    ['inductor_config[max_autotune]']
    >>> dict(form_fields(["runtime"], ["system_info[version]"]).parts)
    {'system_info[version]': frozenset({'runtime'})}
    """
    off = set(forms)
    if not off:
        return Removed()
    names = {name for form in off for name in _WHOLE_FIELDS[form]}
    if off.intersection(_SYSTEM_FORMS):
        # The hash of the others: it adds nothing, and would keep the removed fields in the key.
        names.add("system_info[hash]")
    parts = off.intersection(_VERSION_PARTS)
    if parts == set(_VERSION_PARTS):
        names.add(VERSION_FIELD)
    whole = frozenset(f for f in fields if f in names or f.partition("[")[0] in names)
    if parts and VERSION_FIELD in fields and VERSION_FIELD not in whole:
        return Removed(whole, {VERSION_FIELD: frozenset(parts)})
    return Removed(whole)


def pattern_fields(pattern: str, fields: Sequence[str], is_tensor: Callable[[str], bool]) -> Removed:
    """The fields, and parts of fields, that a name or pattern removes.

    ``*`` matches anything; brackets are literal. A bare name includes its elements: ``example_inputs``
    is ``example_inputs[*]``. ``example_inputs[*].device`` is one part of each tensor.

    Examples
    --------
    >>> there = ["gm", "inductor_config[cpp.threads]", "inductor_config[cpp.simdlen]"]
    >>> sorted(pattern_fields("inductor_config[cpp.*]", there, lambda field: False).fields)
    ['inductor_config[cpp.simdlen]', 'inductor_config[cpp.threads]']
    """
    found = _matching(pattern, fields)
    if found:
        return Removed(frozenset(found))
    match = _PART_PATTERN.fullmatch(pattern)
    if match is None:
        raise NotFoundError(f"no field {pattern!r}; {_near(pattern, fields)}")
    tensors = [name for name in _matching(match["fields"], fields) if is_tensor(name)]
    if not tensors:
        raise NotFoundError(
            f"no field {pattern!r}, and no tensor {match['fields']!r}; {_near(match['fields'], fields)}"
        )
    if match["part"] not in TENSOR_PARTS:
        raise NotFoundError(f"a tensor has no part {match['part']!r}; it has {', '.join(TENSOR_PARTS)}")
    return Removed(parts={name: frozenset({match["part"]}) for name in tensors})


def _matching(pattern: str, fields: Sequence[str]) -> list[str]:
    if "[" in pattern and "*" not in pattern:
        # The name of one field, as most are: a schema of hundreds does not search all of them for each.
        return [pattern] if pattern in fields else []
    expression = re.compile(re.escape(pattern).replace(r"\*", ".*"), re.DOTALL)
    return [f for f in fields if expression.fullmatch(f) or f.partition("[")[0] == pattern]


def _near(pattern: str, fields: Sequence[str], most: int = 5) -> str:
    """The fields that may have been meant, or else all names."""
    if not fields:
        return "no source recorded any field"
    inside = pattern.strip("*").rstrip("]").rpartition("[")[2].strip("*")
    near = [f for f in fields if inside and inside.lower() in f.lower()][:most]
    near += [f for f in _alike(pattern, fields, most) if f not in near]
    if near:
        return f"near it: {', '.join(near[:most])}"
    names = dict.fromkeys(f.partition("[")[0] + ("[…]" if "[" in f else "") for f in fields)
    return f"there are {', '.join(names)}; and the context forms {', '.join(_WHOLE_FIELDS)}"


def _alike(pattern: str, fields: Sequence[str], most: int) -> list[str]:
    """The fields, their bare names and the context forms with a similar spelling."""
    if "[" in pattern:
        return difflib.get_close_matches(pattern, fields, most)
    # Otherwise the long name before the bracket would dominate the comparison.
    names = {f.partition("[")[2].rstrip("]"): f for f in fields if "[" in f}
    names |= {bare: bare for bare in (*(f.partition("[")[0] for f in fields), *_WHOLE_FIELDS)}
    return [names[name] for name in difflib.get_close_matches(pattern, names, most)]


def matmul_settings(value: object) -> tuple[str, ...]:
    """The names of what ``cuda_matmul_settings`` holds, in its order; none if this is no value of that field."""
    if not isinstance(value, tuple) or len(value) != len(_MATMUL):
        return ()
    names = ("allow_tf32", *_MATMUL[1:]) if isinstance(value[0], bool) else _MATMUL
    return tuple(f"torch.backends.cuda.matmul.{name}" for name in names)


def is_tensor_text(text: str) -> bool:
    """Whether a printed value is the metadata of a tensor."""
    return _TENSOR.match(text) is not None


def without_parts(text: str, parts: Iterable[str]) -> str:
    """A printed value without some of its parts; unchanged if it does not have them.

    Examples
    --------
    >>> without_parts("TensorMetadata(shape=torch.Size([8, 16]), device=device(type='cuda', index=1))", ["device"])
    'TensorMetadata(shape=torch.Size([8, 16]))'
    >>> without_parts("{'triton': '3.4', 'cuda': '12.8'}", ["runtime_version"])
    "{'triton': '3.4', 'cuda': None}"
    """
    wanted = set(parts)
    if is_tensor_text(text):
        head, _, rest = text.partition("Metadata(")
        kept = [a for a, _ in arguments(rest) if a.partition("=")[0].strip() not in wanted]
        return f"{head}Metadata({', '.join(kept)})"
    return _without_versions(text, wanted)


def _without_versions(text: str, parts: set[str]) -> str:
    try:
        versions = literal_value(text)
    except ValueError:
        return text
    if not isinstance(versions, dict):
        return text
    if "triton_version_hash" in parts:
        versions.pop("triton", None)
    runtimes = {key: value for key, value in versions.items() if key != "triton"}
    for key, value in runtimes.items():
        del versions[key]
        versions["runtime" if "runtime" in parts else key] = None if "runtime_version" in parts else value
    return repr(versions)
