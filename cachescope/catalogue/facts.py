"""Facts on the fields of cache keys, by field and the nearest covered version of torch; the file is read on first use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cachescope.errors import NotFoundError
from cachescope.grouping import by_key
from cachescope.json_types import JsonObject
from cachescope.rows import col, row

if TYPE_CHECKING:
    import pandas as pd

_RELEASE: Final = re.compile(r"(\d{1,9})\.(\d{1,9})")

_FILE: Final = "fields.json"
_OPTION: Final = re.compile(r"(inductor_config|inductor_config_comms)\[(.*)\]")


@cache
def document(file: str) -> Any:
    """A file of the catalogue: the versions read, and what is listed by version; of fields only what changed, None where one is gone."""
    return json.loads((Path(__file__).parent / file).read_text(encoding="utf-8"))


def is_version(text: str) -> bool:
    """Whether a text begins with the numbers of a release."""
    return _RELEASE.match(text) is not None


def nearest(version: str, covered: Sequence[str]) -> str | None:
    """The covered version of the same release, else the last one before it; None if there is none."""
    if not is_version(version):
        return None
    before = [read for read in covered if release(read) <= release(version)]
    return before[-1] if before else None


def covered(version: str, what: str, versions: Sequence[str]) -> str:
    """The nearest covered version, of which there is something to list."""
    read = nearest(version, versions)
    if read is None:
        raise NotFoundError(f"no {what} of torch {version}; there are {', '.join(versions)}")
    return read


def release(version: str) -> tuple[int, int]:
    """The numbers of a release: ``2.10.1`` is one of (2, 10)."""
    found = _RELEASE.match(version)
    assert found
    return int(found[1]), int(found[2])


# fmt: off
@row("fields")
class FieldFacts:
    """One field of an FX graph or AOTAutograd cache key, as of one version of torch."""

    field: str = col("the field as hash details name it; [*] stands for any number or name")
    version: str = col("the version of torch that the row is true of")
    first_version: str = col("the first of the versions read that has the field")
    last_version: str = col("the last of the versions read that has the field")
    key_versions: tuple[str, ...] = col("the versions read whose keys hold the field")
    in_key: bool = col(
        "whether keys of this version hold it; False for options that torch leaves out",
        torch_name="_cache_config_ignore_prefix, EXCLUDED_KWARGS", default=True)
    python_name: str | None = col("the Python name that sets it", missing="follows from the program", default=None)
    environment: tuple[str, ...] = col("environment variables read for its default, or that force it", default=())
    option: str | None = col("argument of torch.compile that sets it", missing="none does", default=None)
    default: str | None = col(
        "its default as written in torch, cut at 120 characters", missing="no option of a config module", default=None)
    meaning: str | None = col(
        "the start of torch's own comment; of fields that are no option, a sentence", missing="torch says nothing", default=None)
    context_forms: tuple[str, ...] = col(
        "context forms that hold the same (torch 2.10 and later has them); empty where none does",
        torch_name="torch/_inductor/runtime/caching/context.py", default=())
    affects: str = col(
        "what is known: generated code (sources that make code read it), host (workers, waiting, logs), inputs, graph, or unknown",
        default="unknown")
    basis: str | None = col("what affects rests on", missing="generated code: read_by says it; unknown: nothing", default=None)
    read_by: tuple[str, ...] = col("modules of torch that read the option, without the config module itself", default=())
# fmt: on


def fields(version: str | None = None) -> pd.DataFrame:
    """List every field of an FX graph or AOTAutograd cache key.

    Parameters
    ----------
    version : str, optional
        A version of torch, like ``torch.__version__``. If that version is not covered, the last covered version
        before it is used. Without it, the fields of all versions, each as of the last version that has it.

    Returns
    -------
    DataFrame
        One row per field; ``cachescope.describe("fields")`` explains the columns. Options of Inductor that torch
        leaves out of keys are listed too, with ``in_key`` False.

    Raises
    ------
    NotFoundError
        If no version up to that one is covered.

    Notes
    -----
    Extracted from ``torch/_inductor/config.py``, ``FxGraphHashDetails`` of ``torch/_inductor/codecache.py`` and
    ``AOTAutogradCacheDetails`` of ``torch/_functorch/_aot_autograd/autograd_cache.py`` (2.4 to 2.15).
    ``torch._functorch.config`` is part of keys as one field, ``autograd_config``; ``torch._dynamo.config`` is not.

    Examples
    --------
    >>> import cachescope
    >>> frame = cachescope.fields("2.13.0").set_index("field")
    >>> frame.loc["inductor_config[epilogue_fusion]", "default"]
    'True'
    """
    from cachescope.columns import frame_of

    return frame_of(fields_of(version), FieldFacts)


def fields_of(version: str | None = None) -> list[FieldFacts]:
    """The rows of `fields`."""
    if version is None:
        return [facts[max(facts, key=release)] for facts in _facts().values()]
    read = covered(version, "fields", versions())
    return [facts[read] for facts in _facts().values() if read in facts]


def versions() -> tuple[str, ...]:
    """The versions of torch that are covered, in order."""
    return tuple(document(_FILE)["versions"])


def release_of(fields: Iterable[str]) -> str | None:
    """The release whose keys have these fields of Inductor's configuration and no others; None if none that was read has."""
    version = config_names().get(frozenset(filter(_OPTION.fullmatch, fields)))
    return None if version is None else version.rpartition(".")[0]


def field_facts(field: str, version: str | None = None) -> FieldFacts | None:
    """The facts on one field; None if no version has it, or not this one.

    >>> field_facts("example_inputs[3]").field
    'example_inputs[*]'
    >>> field_facts("inductor_config[coordinate_descent_tuning]", "2.13.0+cpu").environment
    ('TORCHINDUCTOR_COORDINATE_DESCENT_TUNING',)
    >>> field_facts("inputs_to_check[0]", "2.13.0")
    """
    facts = _history(field) or _history(re.sub(r"\[.*\]", "[*]", field, flags=re.DOTALL))
    if not facts:
        return None
    read = max(facts, key=release) if version is None else nearest(version, versions())
    return facts.get(read) if read else None


@cache
def config_names() -> dict[frozenset[str], str]:
    """The fields of all Inductor options that keys of a covered version of torch have, and the first version that has them."""
    options = {field: history for field, history in _facts().items() if _OPTION.fullmatch(field)}
    held = (
        (version, field, facts) for field, history in options.items() for version, facts in history.items()
    )
    names = by_key((version, field) for version, field, facts in held if facts.in_key)
    return {frozenset(names[version]): version for version in reversed(versions())}


def _facts() -> dict[str, dict[str, FieldFacts]]:
    """Facts by field and version."""
    return {field: _history(field) for field in document(_FILE)["fields"]}


# One by one: an answer names some of 780.
@lru_cache(1000)
def _history(field: str) -> dict[str, FieldFacts]:
    """Facts of one field by version: the file lists them once, and then the changes (None: the field is gone)."""
    changes = document(_FILE)["fields"].get(field)
    if changes is None:
        return {}
    found: dict[str, JsonObject] = {}
    now: JsonObject | None = None
    for version in versions():
        if version in changes:
            changed = changes[version]
            now = None if changed is None else {**(now or _named(field)), **changed}
        if now is not None:
            found[version] = now
    first, last = next(iter(found)), next(reversed(found))
    held = tuple(version for version, facts in found.items() if facts.get("in_key", True))
    return {
        version: FieldFacts(field, version, first, last, held, **plain(facts))
        for version, facts in found.items()
    }


def _named(field: str) -> JsonObject:
    """The Python name of an option, which follows from the field and is therefore not in the file."""
    option = _OPTION.fullmatch(field)
    return {"python_name": option_name(option[1], option[2])} if option else {}


def option_name(attribute: str, name: str) -> str:
    """What the option is in Python that ``inductor_config[name]`` or ``inductor_config_comms[name]`` is of."""
    return f"torch._inductor.{attribute.removeprefix('inductor_')}.{name}"


def plain(one: JsonObject) -> dict[str, Any]:
    """What a file says of one thing, as a row has it: tuples in place of lists."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in one.items()}
