"""The page of the known defects and limits of the compile caches."""

from __future__ import annotations

from typing import Final

from markup import page, table

from cachescope.catalogue.defects import Defect, all_defects, releases_read

_HEADS: Final = (
    "what goes wrong, and when",
    "how it shows",
    "what to do meanwhile",
    "releases",
    "known from",
)


def defects_page() -> str:
    """Every defect and limit, torch's first."""
    rows, read = all_defects(), releases_read()
    parts = []
    for project, name in (("torch", "torch"), ("vllm", "vLLM")):
        mine = [_row(row) for row in rows if row.project == project]
        parts += [f"## Of {name}", f":::{{container}} long-names\n{table(_HEADS, mine)}\n:::"] if mine else []
    return page(
        "Known defects and limits of compile caches",
        f"{len(rows)} of them, checked against their threads and, where it could be, against the sources of the releases. A cause names "
        "one only where the version of torch is known and has it, and its sign was recorded. Sources of "
        f"torch {' to '.join(read['torch'])} and of vLLM {' to '.join(read['vllm'])} were read.",
        "`cachescope.defects()` has them with these signs: [the frame defects](frames/defects.md).",
        *parts,
    )


def _row(row: Defect) -> tuple[str, ...]:
    first = f"{row.first_version} " if row.first_version else ""
    last = row.last_version or releases_read()[row.project][1]
    mended = f"; mended by {row.mended_by}" if row.mended_by else ""
    known_from = f"{', '.join(row.threads)} ({row.basis})"
    return (
        f"{row.name} ({row.kind}): {row.meaning}",
        row.shows,
        row.meanwhile,
        f"{first}to {last}{mended}",
        known_from,
    )
