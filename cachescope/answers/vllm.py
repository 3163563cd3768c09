"""Why vLLM compiled again, as far as its ``torch_compile_cache`` tells."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Self

from cachescope.answers.read import Read
from cachescope.columns import rows_of
from cachescope.frames.vllm import FolderRow, FragmentRow


@dataclass(frozen=True, slots=True)
class Again:
    """Folders that exist for the same reason.

    Attributes
    ----------
    factors : tuple of str
        In which factors each differs from the nearest folder that was there before.
    folders : tuple of FolderRow
        One row of each.
    """

    factors: tuple[str, ...]
    folders: tuple[FolderRow, ...]


@dataclass(frozen=True, slots=True, eq=False)
class VllmFolders:
    """Why vLLM compiled again.

    Attributes
    ----------
    named : int
        Folders whose name follows from their factors.
    again : tuple of Again
        Those of them that another had been there before, by what differs; the reason of most folders comes first.
    fragments : tuple of FragmentRow
        Factors without which there would be fewer folders; what leaves the fewest comes first.
    unknown : tuple of FolderRow
        One row of each folder of which it is not known what its name was made of, but those of ``torch_aot_compile``.
    packages : int
        Folders of ``torch_aot_compile``.
    """

    named: int
    again: tuple[Again, ...]
    fragments: tuple[FragmentRow, ...]
    unknown: tuple[FolderRow, ...]
    packages: int

    @classmethod
    def of(cls, read: Read) -> Self | None:
        """Of all that was read; None if no folder of vLLM was."""
        rows = rows_of(read.vllm_folders, FolderRow)
        if not rows:
            return None
        named = {row.folder: row for row in reversed(rows) if row.name_is == "recomputed"}
        others = {row.folder: row for row in reversed(rows) if row.folder not in named}
        packages = sum(row.prefix is None for row in others.values())
        return cls(
            named=len(named),
            again=_again([row for row in rows if named.get(row.folder) is row and row.baseline is not None]),
            fragments=tuple(
                row for row in rows_of(read.vllm_fragments, FragmentRow) if row.folders_without < row.folders
            ),
            unknown=tuple(row for row in others.values() if row.prefix is not None),
            packages=packages,
        )


def _again(rows: list[FolderRow]) -> tuple[Again, ...]:
    counts = Counter(row.changed for row in rows)
    return tuple(
        Again(changed, tuple(row for row in rows if row.changed == changed))
        for changed, _ in counts.most_common()
    )
