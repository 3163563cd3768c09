"""The page of the known defects and limits of the compile caches."""

from __future__ import annotations

from typing import Final

from markup import page, table

from cachescope.catalogue.defects import Defect, all_defects

_HEADS: Final = (
    "what goes wrong, and when",
    "how it shows",
    "what to do meanwhile",
    "releases",
    "known from",
)


def defects_page() -> str:
    """Every defect and limit, torch's first."""
    rows = all_defects()
    parts = []
    for project, name in (("torch", "torch"), ("vllm", "vLLM")):
        mine = [_row(row) for row in rows if row.project == project]
        parts += [f"## Of {name}", f":::{{container}} long-names\n{table(_HEADS, mine)}\n:::"] if mine else []
    return page(
        "Known defects and limits of compile caches",
        f"{len(rows)} of them, each checked against its thread and, where it could be, against the sources of the releases. A cause names "
        "one only where the version of torch is known and has it, and its sign was recorded. The newest that were read are torch 2.14 and "
        "vLLM 0.33.",
        "`cachescope.defects()` has them with these signs: [the frame defects](frames/defects.md).",
        *parts,
    )


def _row(row: Defect) -> tuple[str, ...]:
    first, last = row.first_version or "the first", row.last_version or "the newest"
    mended = f"; mended by {row.mended_by}" if row.mended_by else ""
    known_from = f"{', '.join(row.threads)} ({row.basis})"
    return (
        f"{row.name} ({row.kind}): {row.meaning}",
        row.shows,
        row.meanwhile,
        f"{first} to {last}{mended}",
        known_from,
    )
