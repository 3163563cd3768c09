"""The page of all reasons for which torch does not cache a graph."""

from __future__ import annotations

from typing import Any, Final

from markup import page, table

import cachescope
from cachescope.catalogue.bypasses import versions

_HEADS: Final = ("torch's reason", "when", "what lifts it", "the advice is", "torch")
_CACHE_NAMES: Final = {"fxgraph": "FX graph", "aotautograd": "AOTAutograd"}


def bypasses_page() -> str:
    """Every reason, those of both caches first."""
    rows = list(cachescope.bypasses().itertuples(index=False))
    oldest, *_, newest = versions()
    parts = []
    for caches in sorted({row.caches for row in rows}, key=len, reverse=True):
        named = " and ".join(_CACHE_NAMES[cache] for cache in caches)
        mine = [_row(row) for row in rows if row.caches == caches]
        parts += [f"## {named}", f":::{{container}} long-names\n{table(_HEADS, mine)}\n:::"]
    return page(
        "Why torch does not cache a graph",
        f"The {len(rows)} reasons that the sources of torch {oldest} to {newest} give, by the cache whose lookups say them. `…` stands for "
        "what torch puts in. *torch* says in which of the versions read it is.",
        "An error that ends an AOTAutograd lookup is a bypass as well, with the text of the error as its reason: of those nothing is listed.",
        "`cachescope.bypasses()` has them with the places in torch that raise them: [the frame bypasses](frames/bypasses.md).",
        *parts,
    )


def _row(row: Any) -> tuple[Any, ...]:
    message = " ".join(row.message.split())
    span = (
        row.first_version
        if row.first_version == row.last_version
        else f"{row.first_version} to {row.last_version}"
    )
    return f"`{message}`" if message else "(none)", row.meaning, row.advice, row.basis, span
