"""Why torch does not cache a graph: every reason in its sources, and what lifts it; the file is read on first use."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from cachescope.catalogue.facts import covered, document, plain, release
from cachescope.rows import col, row

if TYPE_CHECKING:
    import pandas as pd

_FILE: Final = "bypasses.json"
# Where torch puts something of the program into the message.
_HOLE: Final = "…"
_FUNCTION: Final = re.compile(
    r"Can't cache HigherOrderOperator: (\w+)|Unsupported call_function target .*\.\s+Function module: (\S+),\s+Function name: (\S+)(?:\s.*)?",
    re.DOTALL,
)
_OPERATORS: Final = "torch.ops.higher_order"


# fmt: off
@row("bypasses")
class BypassFacts:
    """One reason for which torch does not cache a graph."""

    message: str = col(
        "torch's reason; … stands for what it puts in; empty where it gives none", torch_name="cache_bypass_reason")
    caches: tuple[str, ...] = col("the caches whose lookups say it")
    versions: tuple[str, ...] = col("the versions read that have it")
    first_version: str = col("the first of the versions read that has it")
    last_version: str = col("the last of the versions read that has it")
    meaning: str = col("when torch gives it")
    advice: str = col("what lifts it, or that nothing does")
    basis: str = col("what the advice rests on: tried with a torch, or torch's sources alone")
    raised_in: tuple[str, ...] = col(
        "the files and functions of torch that raise it", torch_name="BypassFxGraphCache, BypassAOTAutogradCache")
# fmt: on


def bypasses(version: str | None = None) -> pd.DataFrame:
    """List every reason for which torch does not look a graph up, or does not store it.

    Parameters
    ----------
    version : str, optional
        A version of torch, like ``torch.__version__``. If that version is not covered, the last covered version
        before it is used. Without it, the reasons of all versions.

    Returns
    -------
    DataFrame
        One row per reason; ``cachescope.describe("bypasses")`` explains the columns.

    Raises
    ------
    NotFoundError
        If no version up to that one is covered.

    Notes
    -----
    Extracted from all places in torch's sources (2.4 to 2.15) that raise ``BypassFxGraphCache`` or ``BypassAOTAutogradCache``.
    An exception of another kind that ends an AOTAutograd lookup is a bypass as well; its text can be any.

    Examples
    --------
    >>> import cachescope
    >>> frame = cachescope.bypasses("2.13.0").set_index("message")
    >>> frame.loc["mkldnn tensors unpickleable", "caches"]
    ('fxgraph', 'aotautograd')
    """
    rows = _reasons()
    if version is not None:
        read = covered(version, "bypasses", versions())
        rows = tuple(row for row in rows if read in row.versions)
    from cachescope.columns import frame_of

    return frame_of(rows, BypassFacts)


def versions() -> tuple[str, ...]:
    """The versions of torch that are covered, in order."""
    return tuple(document(_FILE)["versions"])


def bypass_facts(reason: str, cache: str) -> BypassFacts | None:
    """What is known of a reason as torch gave it; None if its words are in no covered version."""
    if not reason.strip():
        return next((facts for facts in _reasons() if not facts.message and cache in facts.caches), None)
    # Behind its first words a reason may quote the error.
    texts = reason.strip(), reason.strip().partition(": ")[0]
    return next((facts for text in texts for pattern, facts in _patterns() if pattern.fullmatch(text)), None)


def function_of(reason: str) -> str | None:
    """The function that a reason may name, with its module: as in torch._inductor.config.unsafe_marked_cacheable_functions."""
    found = _FUNCTION.fullmatch(reason.strip())
    # torch prints None for what has no name, such as a functools.partial.
    if found is None or "None" in found.groups():
        return None
    return f"{found[2] or _OPERATORS}.{found[1] or found[3]}"


def operator_of(function: str) -> str | None:
    """The higher-order operator that a function is; None if it is none."""
    module, _, name = function.rpartition(".")
    return name if module == _OPERATORS else None


def cacheable_since(operator: str) -> str | None:
    """The version from which on torch caches graphs with a higher-order operator; None if the newest does not."""
    held = document(_FILE)["operators"].get(operator, [])
    since = None
    for version in reversed(versions()):
        if version not in held:
            break
        since = version
    return since


@cache
def _reasons() -> tuple[BypassFacts, ...]:
    return tuple(
        BypassFacts(
            **plain(row),
            first_version=min(row["versions"], key=release),
            last_version=max(row["versions"], key=release),
        )
        for row in document(_FILE)["reasons"]
    )


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], BypassFacts], ...]:
    """A pattern for each message, the one with the most fixed text first."""
    rows = sorted(
        (row for row in _reasons() if row.message), key=lambda row: -len(row.message.replace(_HOLE, ""))
    )
    return tuple((_pattern(row.message), row) for row in rows)


def _pattern(message: str) -> re.Pattern[str]:
    # A text log may have trimmed the ends of lines.
    lines = (re.escape(line.strip()).replace(re.escape(_HOLE), ".*?") for line in message.split("\n"))
    return re.compile(r"\s*\n\s*".join(lines), re.DOTALL)
