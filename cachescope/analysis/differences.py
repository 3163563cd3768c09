"""What changed in one field: a graph diff, the parts of a tensor's metadata, old and new value, or opaque bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from os.path import commonprefix
from typing import Final, NamedTuple

from cachescope.analysis.aot_config import (
    aot_config_parts,
    aot_config_values,
    argument_name,
    argument_sources,
)
from cachescope.analysis.graphs import calls_of_the_same, graph_diff, inner_graphs, replacement
from cachescope.analysis.process_values import DiffersBy, Sides, differs_by
from cachescope.components import Detail
from cachescope.details import ChangedField, HashDetails, differing
from cachescope.keys.detail_hash import default_hashes
from cachescope.keys.device_text import device_difference
from cachescope.keys.input_hash import MAIN, module_of_format
from cachescope.keys.key_fields import TORCH_VERSION
from cachescope.keys.printed_values import (
    FLAG,
    NUMBER,
    arguments,
    graph_inputs,
    literal_value,
    printed_value,
    shown_settings,
)
from cachescope.wording import listed, plural, rank_names, short

_TENSOR: Final = re.compile(r"TensorMetadata(?:AndValues)?\((?P<body>.*)\)", re.DOTALL)
# Raw bytes that torch decoded with replacement (2.10+) or did not print at all (through 2.9).
_OPAQUE: Final = re.compile("[\x00-\x08\x0e-\x1f\x7f\ufffd]|^<bytes>$")
# torch prints the metadata alone: `get_str` in torch/_inductor/codecache.py, 2.4 to 2.15.
_PRINTED_ALIKE: Final = (
    "the printed metadata are equal; what a tensor subclass holds, such as the placements of a DTensor, or the "
    "values of a constant differ"
)
FOUND_ELSEWHERE: Final = "the metadata are equal; pickle found the memory format in"
"""What is said of an input that differs in nothing but the order of the imports."""
_ADDRESS: Final = re.compile(r"0x[0-9a-f]{6,}")
_INPUT: Final = re.compile(r"example_inputs\[(\d{1,18})\]")
_CUT: Final = 200
_INNER_SHOWN: Final = 3
_LONG: Final = 80
_CONTEXT: Final = 24
_STATIC_OF_FX: Final = "fx_kwargs[static_input_idxs]"
_LISTED_NUMBERS: Final = re.compile(r"\[(?:\d{1,18}(?:, \d{1,18})*)?\]")
# In the code of Dynamo's graphs, in every version: def forward(self, p_0 : torch.nn.parameter.Parameter, …):
_PARAMETER: Final = ": torch.nn.parameter.Parameter"
# torch/_dynamo/source.py, `ParamBufferSource` and `UnspecializedParamBufferSource`. A buffer is annotated like any other tensor.
_PARAMETER_OR_BUFFER: Final = "ParamBufferSource("


class FieldChange(NamedTuple):
    """One changed field of a key.

    Attributes
    ----------
    field : str
        Path of the field.
    kind : str
        ``graph``, ``tensor``, ``value``, ``opaque``, ``new`` or ``gone``.
    before, after : str or None
        The texts torch printed; None if the field is absent, which also means an empty container. Where these are equal,
        and torch does not print the graphs within the graph: what Dynamo traced, if the traces have it.
    summary : str
        One line.
    parts : tuple of (name, before, after)
        The parts that differ: of a tensor's metadata, of ``aot_config``, settings in pickled bytes.
    diff : str
        Unified diff of the graph's code.
    process_values : DiffersBy or None
        The process-specific values in which it differs: a rank, a path, a time; None if none is recognised.
    is_static : bool
        Whether it is an input that torch takes for a part of the model, before and after: a parameter or buffer.
    """

    field: str
    kind: str
    before: str | None
    after: str | None
    summary: str
    parts: tuple[tuple[str, str, str], ...] = ()
    diff: str = ""
    process_values: DiffersBy | None = None
    is_static: bool = False

    @property
    def differs_by(self) -> tuple[str, ...]:
        """The kinds of those values."""
        return () if self.process_values is None else self.process_values.kinds

    @property
    def is_certain(self) -> bool | None:
        """Whether these values are certain; None if there are none."""
        return None if self.process_values is None else self.process_values.is_certain


def field_changes(
    details: HashDetails, before: int, after: int, sides: Sides = (None, None)
) -> list[FieldChange]:
    """What changed in each field that differs between two sets, is new, or is gone."""
    changes, of_fields = [], details.changes(before, after)
    for field, *codes in of_fields:
        old, new = map(details.parsed, codes)
        change = _changed(details, old, new)
        if old is not None and new is not None:
            change = _with_process_values(change, old, new, sides)
            if field == TORCH_VERSION:
                change = change._replace(summary="".join(upgrade_of(details, of_fields, sides)))
        changes.append(change)
    return _with_what_inputs_are(changes, details, before, after)


def upgrade_of(details: HashDetails, changes: Iterable[ChangedField], sides: Sides) -> tuple[str, str]:
    """``torch 2.13.0 -> 2.15.0, Python 3.13 -> 3.14``, as far as it is known of the processes; and which options differ besides, if any do."""
    old, new = (None if run is None else run.torch_version for run in sides)
    if old is None or new is None:
        text = "another torch" if new is None else f"another torch -> {new}"
    elif old == new:
        text = f"another build of torch {old}, or files in it were edited"
    else:
        text = f"torch {old} -> {new}"
    pythons = [None if run is None else run.python_version for run in sides]
    if None not in pythons and pythons[0] != pythons[1]:
        text += f", Python {pythons[0]} -> {pythons[1]}"
    besides = changed_besides(details, changes, old, new)
    return text, f"; also changed: {listed(besides, 4 if len(besides) <= 4 else 3)}" if besides else ""


def changed_besides(
    details: HashDetails, changes: Iterable[ChangedField], before: str | None, after: str | None
) -> tuple[str, ...]:
    """Options that had torch's default before an upgrade and differ from the default of the new torch: the user set them."""
    if before is None or after is None:
        return ()
    return tuple(
        field
        for field, old, new in changes
        if _has_default(details, field, old, before) and _has_default(details, field, new, after) is False
    )


def _has_default(details: HashDetails, field: str, component: int | None, version: str) -> bool | None:
    defaults = default_hashes(field, version)
    return None if component is None or not defaults else details.components[component][1:52] in defaults


def component_change(details: HashDetails, before: int | None, after: int | None) -> FieldChange:
    """What changed in one field, from the components of both sides; None for a side that lacks the field."""
    return _changed(details, details.parsed(before), details.parsed(after))


def _changed(details: HashDetails, old: Detail | None, new: Detail | None) -> FieldChange:
    one = new or old
    assert one is not None
    texts = [None if side is None else side.value_text for side in (old, new)]
    change = field_change(one.field, *texts)
    if old is None or new is None:
        return change
    if options := tuple(details.changed_options(old, new)):
        return change._replace(kind="value", summary=_parts_text(options), parts=options)
    if change.summary != _PRINTED_ALIKE:
        return change
    modules = [module_of_format(tensor_parts(side.value_text), side.detail_hash) for side in (old, new)]
    if None in modules or modules[0] == modules[1]:
        return change
    before, after = ("the main program" if module == MAIN else "torch" for module in modules)
    return change._replace(summary=f"{FOUND_ELSEWHERE} {before}, and now in {after}")


def _with_what_inputs_are(
    changes: list[FieldChange], details: HashDetails, before: int, after: int
) -> list[FieldChange]:
    """The changes. Those of inputs have their names in the program and whether they belong to the model, where that is recorded."""
    inputs = {change.field: change for change in changes if _INPUT.fullmatch(change.field)}
    if not inputs:
        return changes
    # If one side has more inputs, their numbers differ between the sides.
    static = static_inputs(details, after)
    if not any(change.kind in ("new", "gone") for change in inputs.values()):
        static &= static_inputs(details, before)
    old, new = (argument_sources(details.text(one, "aot_config") or "") for one in (before, after))
    # The inputs that only one side has, by the kind of the change.
    sides = {"gone": (before, old), "new": (after, new)}
    left = {"gone": [one for one in old if one not in new], "new": [one for one in new if one not in old]}

    def hash_of(set_code: int, field: str) -> int | None:
        code = details.component_of(set_code, field)
        return None if code is None else details.hash_codes[code]

    def one_sided(change: FieldChange) -> str | None:
        """Which input is new or gone. Hashes do not tell equal inputs apart: it is one whose name the other side lacks."""
        set_code, sources = sides[change.kind]
        known = {source: f"example_inputs[{number}]" for number, source in enumerate(sources)}
        equal = [
            one
            for one in left[change.kind]
            if hash_of(set_code, known[one]) == hash_of(set_code, change.field)
        ]
        source = min(equal, key=lambda one: known[one] != change.field, default=None)
        if source is not None:
            left[change.kind].remove(source)
        return source

    def told(change: FieldChange) -> FieldChange:
        number = int(change.field[len("example_inputs[") : -1])
        summary, parts = change.summary, change.parts
        was, now = (
            source[number] if text is not None and number < len(source) else None
            for source, text in ((old, change.before), (new, change.after))
        )
        only = one_sided(change) if change.kind in sides else None
        name = argument_name(only or now or was or "")
        # If one side has no such input, the name of the other side counts; else both must agree.
        if name is not None and (change.kind in ("new", "gone") or argument_name(was or "") == name):
            summary = f"{name}, {summary}"
        elif name is not None and now in old:
            other = f"example_inputs[{old.index(now)}]"
            if hash_of(before, other) == hash_of(after, change.field):
                summary, parts = f"{name}, which was {other}", (("place", other, change.field),)
        is_static = change.kind == "tensor" and number in static
        return change._replace(summary=summary, parts=parts, is_static=is_static)

    return [told(change) if change.field in inputs else change for change in changes]


def static_inputs(details: HashDetails, set_code: int) -> frozenset[int]:
    """The numbers of the inputs that torch takes for part of the model, such as parameters and buffers; empty if not recorded.

    For a backward graph that is not known: torch takes every saved tensor for static there.
    """
    if details.direction(set_code) == "backward":
        return frozenset()
    config = details.text(set_code, "aot_config") or ""
    of_autograd = aot_config_values(config)
    # What the graph itself holds comes before its arguments.
    held = int(of_autograd.get("num_params_buffers", "0"))
    inputs = graph_inputs(details.text(set_code, "gm") or "")
    found = {*range(held)}
    found.update(number for number, name in enumerate(inputs, held) if name.endswith(_PARAMETER))
    sources = enumerate(argument_sources(config))
    found.update(number for number, source in sources if _PARAMETER_OR_BUFFER in source)
    for text in (details.text(set_code, _STATIC_OF_FX) or "", of_autograd.get("static_input_indices", "")):
        if _LISTED_NUMBERS.fullmatch(text):
            found.update(map(int, re.findall(r"\d+", text)))
    return frozenset(found)


def _with_process_values(change: FieldChange, old: Detail, new: Detail, sides: Sides) -> FieldChange:
    """The change, its summary with the values of a process that differ."""
    if change.kind == "graph":
        found = _in_code(change, sides)
    elif change.kind in ("value", "opaque"):
        found = differs_by(change.field, old.value_text, new.value_text, sides)
    else:
        # Numbers of a tensor are sizes, even if one equals a value of the process.
        found = None
    if found is None or ("address" in found.kinds and not _are_texts(old, new)):
        return change
    kind, told = change.kind, change.summary
    if kind == "opaque":
        if found.kinds != ("address",):
            return change
        kind, told = "value", _contrast(old.value_text, new.value_text)
    return change._replace(kind=kind, summary=f"{found.words}: {told}", process_values=found)


def _in_code(change: FieldChange, sides: Sides) -> DiffersBy | None:
    """The values of a process in changed lines of a graph. Only certain ones, since code may contain any number."""
    lines = change.diff.split("\n")[2:]
    old, new = (" ".join(line[1:] for line in lines if line[:1] == sign) for sign in "-+")
    found = differs_by(change.field, old, new, sides)
    return found if found is not None and found.is_certain and found.is_all else None


def _are_texts(old: Detail, new: Detail) -> bool:
    """Whether a printed address is part of the value. Torch hashes an object by its content, however it is printed."""
    for one in (old, new):
        try:
            literal_value(one.value_text)
        except ValueError:
            if printed_value(one) is NotImplemented:
                return False
    return True


def field_change(field: str, before: str | None, after: str | None) -> FieldChange:
    """What changed in a field whose hash differs, from the texts that torch printed."""
    if before is None:
        return FieldChange(field, "new", None, after, f"not there -> {_in_short(after or '')}")
    if after is None:
        return FieldChange(field, "gone", before, None, f"{_in_short(before)} -> not there")
    if field == "gm":
        return graph_change(field, before, after)
    old, new = tensor_parts(before), tensor_parts(after)
    if old and new:
        parts = tuple(differing(old, new))
        return FieldChange(field, "tensor", before, after, _parts_text(parts) or _PRINTED_ALIKE, parts)
    if old or new:
        return FieldChange(field, "value", before, after, f"{_in_short(before)} -> {_in_short(after)}")
    if _OPAQUE.search(before) or _OPAQUE.search(after):
        return _bytes_change(field, before, after)
    if field == "aot_config" and (parts := aot_config_parts(before, after)):
        return FieldChange(field, "value", before, after, _parts_text(parts), parts)
    if _ADDRESS.sub("0x…", before) == _ADDRESS.sub("0x…", after):
        summary = f"the hashes differ and the printed value does not: {short(after)}"
        return FieldChange(field, "opaque", before, after, summary)
    device = device_difference(before, after) if field == "system_info[device]" else None
    return FieldChange(field, "value", before, after, device or _contrast(before, after))


def _bytes_change(field: str, before: str, after: str) -> FieldChange:
    """A change of bytes that torch hashes and does not print. Pickled settings are compared as far as they can be read."""
    old, new = shown_settings(before), shown_settings(after)
    names = [name for name in old if name in new]
    parts = tuple((name, old[name], new[name]) for name in names if old[name] != new[name])
    if parts:
        return FieldChange(field, "value", before, after, _parts_text(parts), parts)
    summary = "opaque bytes, which torch hashes and does not spell out, differ"
    if names:
        open_names = sum(old[name] in (FLAG, NUMBER) for name in names)
        summary += (
            f"; of {plural(len(names), 'setting')} that can be read in them none does, though {open_names} of these print alike"
            " whatever they are, and the rest is cut"
        )
    return FieldChange(field, "opaque", before, after, summary)


def _in_short(text: str) -> str:
    """A value in one line; for a tensor its type and shape."""
    parts = tensor_parts(text)
    if not {"dtype", "shape"} <= parts.keys():
        return short(text)
    return f"{parts['dtype']} {_plain(parts['shape'])}"


def _contrast(before: str, after: str) -> str:
    """``old -> new``; for long values, the part that differs."""
    old, new = " ".join(before.split()), " ".join(after.split())
    if len(old) <= _LONG and len(new) <= _LONG:
        return f"{old or '(empty)'} -> {new or '(empty)'}"
    if _LISTED_NUMBERS.fullmatch(old) and _LISTED_NUMBERS.fullmatch(new):
        spans = (rank_names([*map(int, re.findall(r"\d+", text))]) for text in (old, new))
        return " -> ".join(f"[{text}]" for text in spans)
    # Compared character by character on purpose: these are values, not paths.
    start = len(commonprefix([old, new]))  # noqa: RUF071
    rest = [old[start:], new[start:]]
    end = len(commonprefix([text[::-1] for text in rest]))  # noqa: RUF071
    return " -> ".join(_window(text, start, len(text) - end) for text in (old, new))


def _window(text: str, start: int, end: int) -> str:
    first, last = max(start - _CONTEXT, 0), end + _CONTEXT
    shown = text[first:last]
    if len(shown) > _CUT:
        shown = shown[: _CUT - 1] + "…"
    return ("…" if first else "") + shown + ("…" if last < len(text) and not shown.endswith("…") else "")


def graph_change(field: str, before: str, after: str) -> FieldChange:
    """What changed in the code of a graph."""
    diff = graph_diff(before, after)
    if not diff:
        inner = [name for name in inner_graphs(after) if name in inner_graphs(before)]
        within = f"the code within {listed(inner, _INNER_SHOWN, ' or ')}, " if inner else ""
        summary = f"the printed code is equal: {within}a captured tensor, an attribute, an annotation or the class of the graph differs"
        return FieldChange(field, "graph", before, after, summary)
    lines = diff.split("\n")[2:]
    gone, new = ([line[1:] for line in lines if line.startswith(sign)] for sign in "-+")
    replaced = replacement("\n".join(gone), "\n".join(new))
    if replaced is not None:
        summary = f"{short(replaced)} in {plural(len(gone), 'line')}"
    elif (calls := calls_of_the_same(before, after)) is not None:
        summary = f"{plural(calls[0], 'call')} of operators -> {calls[1]} of the same ones"
    else:
        summary = f"{plural(len(gone), 'line')} of code gone, {len(new)} new"
    return FieldChange(field, "graph", before, after, summary, diff=diff)


def tensor_parts(text: str) -> dict[str, str]:
    """The printed metadata of a tensor by their names; empty if it is none."""
    match = _TENSOR.search(text)
    parts = () if match is None else (argument.partition("=") for argument, _ in arguments(match["body"]))
    return {name: value for name, equals, value in parts if equals}


def _parts_text(parts: tuple[tuple[str, str, str], ...]) -> str:
    return "; ".join(_part(*part) for part in parts)


def _part(name: str, before: str, after: str) -> str:
    device = device_difference(before, after) if name == "device" else None
    return device or f"{name} {_plain(before)} -> {_plain(after)}"


def _plain(text: str) -> str:
    """``torch.Size([8, 8])`` as people write it: ``[8, 8]``."""
    return short(re.sub(r"^torch\.Size\((.*)\)$", r"\1", text), 80)


def is_reordered(before: str | None, after: str | None) -> bool:
    """Whether two printed values are equal except for the order of sets in them.

    Examples
    --------
    >>> is_reordered("[{'x', 'y'}]", "[{'y', 'x'}]")
    True
    """
    if before is None or after is None:
        return False
    if "{" not in before or before == after or sorted(before) != sorted(after):
        return False
    try:
        return bool(literal_value(before) == literal_value(after))
    except (ValueError, RecursionError):
        return False
