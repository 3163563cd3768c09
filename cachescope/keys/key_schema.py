"""What counts in a cache key: torch's isolation schema, plus fields or patterns; and what that removes from hash details.

Pure and without torch. torch itself has only the isolation schema, and applies it to isolation contexts.
Applied to the hash details of FX and AOTAutograd keys, it gives cachescope's own what-if keys. A *part* is a piece of one
field that has no hash of its own: the ``device`` of an input, the Triton version within ``system_info[version]``. Parts are
compared by their printed text.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cachescope.errors import NotFoundError, SchemaError
from cachescope.json_types import JsonObject
from cachescope.keys.isolation import FORMS, IsolationSchema, forms_off, kind_name, loaded, schema_without
from cachescope.keys.printed_values import arguments, literal_value

# torch/_inductor/runtime/caching/context.py (2.10 to 2.15), compared with `FxGraphHashDetails.__init__` of
# torch/_inductor/codecache.py and `AOTAutogradCacheDetails.__init__`, which contain the same facts.
_WHOLE_FIELDS: Final = {
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


@dataclass(frozen=True, slots=True)
class KeySchema:
    """What counts in a what-if key.

    Parameters
    ----------
    isolation : IsolationSchema
        Which context forms count; each covers the fields that represent it.
    without : tuple of str
        Fields that do not count: names, options (``epilogue_fusion``), patterns with ``*``, parts of tensors
        (``example_inputs[*].device``), or context forms, which are moved to `isolation`.

    Raises
    ------
    SchemaError
        If `isolation` is no schema, `without` no list, or a field not a text.

    Notes
    -----
    Order and repetition in `without` do not matter. A form in `without` is the same as a form left out of
    `isolation`; equal schemas compare equal.

    Examples
    --------
    >>> KeySchema(without=("gm", "inductor_configs")).isolation.forms("runtime_context")
    ('torch_determinism_configs', 'cuda_matmul_precision_configs')
    >>> KeySchema(IsolationSchema(False, {})) == KeySchema(IsolationSchema.none())
    True
    """

    isolation: IsolationSchema = IsolationSchema()  # noqa: RUF009 (frozen)
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Sort the fields, and move the forms among them to the isolation schema."""
        if not isinstance(self.isolation, IsolationSchema):
            raise SchemaError(
                f"the isolation of a key schema is an IsolationSchema, not {kind_name(self.isolation)}"
            )
        without: object = self.without
        if isinstance(without, str | Mapping) or not isinstance(without, Iterable):
            raise SchemaError(f"without is a list of fields, not {kind_name(without)}")
        wanted: list[object] = list(without)
        named = [name for name in wanted if isinstance(name, str) and name]
        if len(named) < len(wanted):
            odd = next(name for name in wanted if name not in named)
            what = "the empty one" if odd == "" else f"{kind_name(odd)} {odd!r}"
            raise SchemaError(f"a field that does not count is named by a text, not {what}")
        object.__setattr__(self, "isolation", schema_without(named, self.isolation))
        object.__setattr__(self, "without", tuple(sorted({*named} - {*FORMS})))

    @classmethod
    def from_dict(cls, schema: Mapping[str, Any]) -> KeySchema:
        """Make a schema from ``{"runtime_context": …, "compile_context": …, "without": […]}``.

        torch's own two keys may both be omitted, and so may ``without``.

        Raises
        ------
        SchemaError
            If a key is unknown or malformed.
        """
        if not isinstance(schema, Mapping):
            raise SchemaError(f"a key schema is a mapping, not {kind_name(schema)}")
        rest = {key: value for key, value in schema.items() if key != "without"}
        isolation = IsolationSchema.from_dict(rest) if rest else IsolationSchema()
        return cls(isolation, schema.get("without", ()))

    def to_dict(self) -> JsonObject:
        """Return torch's own two keys and ``without``."""
        return {**self.isolation.to_dict(), "without": list(self.without)}

    @classmethod
    def from_json(cls, text: str | bytes) -> KeySchema:
        """Make a schema from JSON text.

        Raises
        ------
        SchemaError
            If the text is not JSON or not a schema.
        """
        return cls.from_dict(loaded(text, "a key schema"))

    def to_json(self) -> str:
        """Return the schema as JSON text, keys sorted."""
        return json.dumps(self.to_dict(), sort_keys=True)

    @property
    def forms_off(self) -> tuple[str, ...]:
        """The context forms that do not count, in torch's order."""
        return forms_off(self.isolation)

    def removed(self, fields: Sequence[str], is_tensor: Callable[[str], bool]) -> Removed:
        """Which of the given fields, and parts of fields, the schema removes.

        Raises
        ------
        NotFoundError
            If a field or pattern of `without` matches none of them.
        """
        found = form_fields(self.forms_off, fields)
        for pattern in self.without:
            found |= pattern_fields(pattern, fields, is_tensor)
        return found

    def __str__(self) -> str:
        """Describe what does not count."""
        off = (*self.forms_off, *self.without)
        return f"without {', '.join(off)}" if off else "everything counts"


def key_schema(
    schema: KeySchema | IsolationSchema | Mapping[str, Any] | None, without: Iterable[str] | str = ()
) -> KeySchema:
    """Make a schema from any accepted form, plus more fields that do not count."""
    if schema is None:
        schema = KeySchema()
    elif isinstance(schema, IsolationSchema):
        schema = KeySchema(schema)
    elif not isinstance(schema, KeySchema):
        schema = KeySchema.from_dict(schema)
    more = (without,) if isinstance(without, str) else tuple(without)
    return KeySchema(schema.isolation, (*schema.without, *more))


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
    is ``example_inputs[*]``. ``example_inputs[*].device`` is one part of each tensor. The name in the brackets is enough
    if one field alone has it, as answers name options: ``epilogue_fusion``.

    >>> there = ["gm", "inductor_config[cpp.threads]", "inductor_config[cpp.simdlen]"]
    >>> sorted(pattern_fields("inductor_config[cpp.*]", there, lambda field: False).fields)
    ['inductor_config[cpp.simdlen]', 'inductor_config[cpp.threads]']
    >>> set(pattern_fields("cpp.threads", there, lambda field: False).fields)
    {'inductor_config[cpp.threads]'}
    """
    found = _matching(pattern, fields)
    named = [name for name in fields if name.endswith(f"[{pattern}]")]
    if found or len(named) == 1:
        return Removed(frozenset(found or named))
    match = _PART_PATTERN.fullmatch(pattern)
    if match is None:
        raise NotFoundError(f"no field {pattern!r}; {_near(pattern, fields)}")
    tensors = [name for name in _matching(match["fields"], fields) if is_tensor(name)]
    if not tensors:
        near = _near(match["fields"], fields)
        raise NotFoundError(f"no field {pattern!r}, and no tensor {match['fields']!r}; {near}")
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


def is_tensor_text(text: str) -> bool:
    """Whether a printed value is the metadata of a tensor."""
    return _TENSOR.match(text) is not None


def without_parts(text: str, parts: Iterable[str]) -> str:
    """A printed value without some of its parts; unchanged if it does not have them.

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
