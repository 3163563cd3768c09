"""Which factors make folders of vLLM many: how many there would be if a factor did not count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.analysis.vllm.changes import coded
from cachescope.analysis.vllm.factors import HASHES, Named, name_of_variable, process_kinds
from cachescope.catalogue.vllm_variables import no_longer_counted_by
from cachescope.columns import frame_of
from cachescope.frames.vllm import FragmentRow

_EXAMPLES: Final = 3
_JUDGED: Final = 50


def fragments_frame(folders: Sequence[Named]) -> pd.DataFrame:
    """The frame ``vllm_fragments``: what leaves the fewest folders comes first."""
    rows = sorted(_fragments(folders), key=lambda row: (row.folders_without, row.factors))
    return frame_of(rows, FragmentRow)


def _fragments(folders: Sequence[Named]) -> Iterator[FragmentRow]:
    varying, codes = coded(folders)
    # Those that change only together have equal codes.
    groups: dict[bytes, list[int]] = defaultdict(list)
    for number in range(len(varying)):
        groups[codes[:, number].tobytes()].append(number)
    of_process: list[list[int]] = []
    kinds: dict[int, tuple[str, ...]] = {}
    for group in groups.values():
        of_factor = [_kinds(varying[number], _values(folders, varying[number])) for number in group]
        kinds[group[0]] = _together(of_factor) if all(of_factor) else ()
        if kinds[group[0]]:
            of_process.append(group)
        yield _row(folders, varying, codes, group, kinds[group[0]])
    if len(of_process) > 1:
        every = [number for group in of_process for number in group]
        yield _row(folders, varying, codes, every, _together(kinds[group[0]] for group in of_process))


def _row(
    folders: Sequence[Named],
    varying: Sequence[str],
    codes: npt.NDArray[np.int32],
    group: list[int],
    kinds: tuple[str, ...],
) -> FragmentRow:
    names = tuple(varying[number] for number in group)
    ignored = {_ignored_by(name) for name in names}
    values = [] if len(names) > 1 or names[0] in HASHES else _values(folders, names[0])
    return FragmentRow(
        factors=names,
        values=len(np.unique(codes[:, group], axis=0)),
        folders=len(folders),
        folders_without=_left(codes, group),
        differs_by=kinds,
        examples=tuple(value for value in values if value is not None)[:_EXAMPLES],
        ignored_by=ignored.pop() if len(ignored) == 1 else None,
    )


def _values(folders: Sequence[Named], factor: str) -> list[str | None]:
    return list(dict.fromkeys(folder.values.get(factor) for folder in folders))


def _together(kinds: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(kind for each in kinds for kind in each))


def _left(codes: npt.NDArray[np.int32], without: list[int]) -> int:
    kept = np.delete(codes, without, axis=1)
    return len(np.unique(kept, axis=0)) if kept.shape[1] else 1


def _kinds(name: str, values: Sequence[str | None]) -> tuple[str, ...]:
    """The kinds by which the first value differs from all others, as far as they are looked at; none if from one by something else."""
    if name in HASHES:
        return ()
    first = values[0]
    found: dict[str, None] = {}
    for value in islice(values, 1, _JUDGED):
        kinds = None if first is None or value is None else process_kinds(name, first, value)
        if kinds is None or not kinds.is_all:
            return ()
        found.update(dict.fromkeys(kinds.kinds))
    return tuple(found)


def _ignored_by(factor: str) -> str | None:
    name = name_of_variable(factor)
    return None if name is None else no_longer_counted_by(name)
