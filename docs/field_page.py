"""The page of all fields of a key, in sections."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import Any, Final

from markup import is_there, page, table

import cachescope
from cachescope.catalogue.facts import versions

# AOTAutogradCacheDetails (torch/_functorch/_aot_autograd/autograd_cache.py) is a subclass of FxGraphHashDetails
# (torch/_inductor/codecache.py): its key has the attributes of both. These are its own (2.4 to 2.15).
_AOTAUTOGRAD_ALONE: Final = {
    "act_input_paths",
    "aot_config",
    "autocast_state",
    "autograd_config",
    "code_hash",
    "custom_estimator_solver_uuids",
    "deterministic_algorithms",
    "disable_amp",
    "grad_enabled",
    "region_activation_memory_budget",
    "region_activation_memory_budget_annotations",
    "sac_context_fn_hashes",
    "saved_tensors_hooks_fx_wrap_cache_hashes",
    "triton_kernel_source_codes",
}
# It is given none of the inputs to check, and of the arguments of a graph these (torch/_inductor/compile_fx.py).
_FX_ALONE: Final = {"inputs_to_check", "fx_kwargs"}
_ARGUMENTS_OF_BOTH: Final = {"fx_kwargs[cudagraphs]", "fx_kwargs[boxed_forward_device_index]"}

_OPTION: Final = re.compile(r"inductor_config\[(?:(?P<group>\w+)\.)?(?P<first>\w).*\]")
# Groups of options below this size stand among those without a group.
_LEAST: Final = 3
_LETTERS: Final = ("_", "ab", "cd", "e–l", "m–p", "q–z")
_HEADS: Final = ("field", "in the key of", "default", "meaning", "affects", "torch")


def fields_page() -> str:
    """Every field of a key."""
    fields = cachescope.fields()
    columns = ["field", "default", "meaning", "affects", "first_version", "last_version", "in_key"]
    rows = list(fields[columns].itertuples(index=False))
    groups = Counter(found["group"] for row in rows if (found := _OPTION.fullmatch(row.field)))
    sections: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for row in rows:
        sections[_section(row.field, groups)].append(_row(row))
    oldest, *_, newest = versions()
    parts = []
    for title in sorted(sections, key=lambda title: (title.startswith("inductor"), title)):
        parts += [f"## {title}", f":::{{container}} long-names\n{table(_HEADS, sections[title])}\n:::"]
    return page(
        "Fields of a key",
        f"The {len(fields)} fields of FX graph and AOTAutograd keys, read off the sources of torch {oldest} to {newest}. Each is "
        "shown as of the newest torch that has it. *In the key of* says which cache has it in its key; `none` are options "
        "of Inductor that torch leaves out of keys. *torch* says since when it is there (`2.9.1 on`), or until when as well; "
        f"it is empty for what was there in {oldest} and still is in {newest}.",
        "`cachescope.fields()` has them with what sets each, its environment variables, and where torch's code "
        "generation reads it: [the frame fields](frames/fields.md).",
        *parts,
    )


def keys_of(field: str) -> str:
    """Which cache's key has a field: ``both``, ``AOTAutograd`` or ``FX graph``."""
    attribute = field.split("[", 1)[0]
    if attribute in _AOTAUTOGRAD_ALONE:
        return "AOTAutograd"
    return "FX graph" if attribute in _FX_ALONE and field not in _ARGUMENTS_OF_BOTH else "both"


def _row(row: Any) -> tuple[Any, ...]:
    default = f"`{row.default}`" if is_there(row.default) else ""
    held = keys_of(row.field) if row.in_key else "none"
    return f"{{field}}`{row.field}`", held, default, row.meaning, row.affects, _span(row)


def _span(row: Any) -> str:
    """Since when and until when torch has a field, as far as its sources were read."""
    oldest, *_, newest = versions()
    if row.last_version != newest:
        is_one = row.first_version == row.last_version
        return f"{row.first_version} alone" if is_one else f"{row.first_version} to {row.last_version}"
    return "" if row.first_version == oldest else f"{row.first_version} on"


def _section(field: str, groups: Counter[str | None]) -> str:
    option = _OPTION.fullmatch(field)
    if option is None:
        attribute = field.split("[", 1)[0]
        listed = attribute in ("fx_kwargs", "system_info", "inductor_config_comms")
        return attribute if listed else "Graph, inputs and settings"
    if option["group"] is not None and groups[option["group"]] >= _LEAST:
        return f"inductor_config: {option['group']}"
    letter = option["group"][0] if option["group"] else option["first"]
    return f"inductor_config: {_letters_with(letter.lower())}"


def _letters_with(letter: str) -> str:
    for letters in _LETTERS:
        if letter in letters or ("–" in letters and letters[0] <= letter <= letters[-1]):
            return "private" if letters == "_" else f"{letters[0]} to {letters[-1]}"
    raise AssertionError(letter)
