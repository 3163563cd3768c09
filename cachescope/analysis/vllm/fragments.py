"""Which factors make folders of vLLM many: how many there would be if a factor did not count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.analysis.process_values.recognition import differs_by
from cachescope.analysis.vllm.changes import coded
from cachescope.analysis.vllm.factors import HASHES, Named, variable
from cachescope.frames.vllm import VLLM_FRAGMENTS, FragmentRow

_EXAMPLES: Final = 3
_JUDGED: Final = 50
# `ignored_factors` of `compile_factors` in vllm/envs.py: those of 0.33.0 that 0.13.0 counts.
_IGNORED_BY: Final = {
    variable(name): "0.33.0"
    for name in (
        "VLLM_API_KEY",
        "VLLM_CONFIG_ROOT",
        "VLLM_FORCE_AOT_LOAD",
        "VLLM_NIXL_SIDE_CHANNEL_HOST",
        "VLLM_OBJECT_STORAGE_SHM_BUFFER_NAME",
        "VLLM_RAY_BUNDLE_INDICES",
        "VLLM_XLA_CACHE_PATH",
    )
}


def fragments_frame(folders: Sequence[Named]) -> pd.DataFrame:
    """The frame ``vllm_fragments``: what leaves the fewest folders comes first."""
    rows = sorted(_fragments(folders), key=lambda row: (row.folders_without, row.factors))
    return VLLM_FRAGMENTS.of_rows(rows)


def _fragments(folders: Sequence[Named]) -> Iterator[FragmentRow]:
    varying, codes = coded(folders)
    of_process: list[int] = []
    kinds: dict[int, tuple[str, ...]] = {}
    for number, name in enumerate(varying):
        values = list(dict.fromkeys(folder.values.get(name) for folder in folders))
        kinds[number] = () if name in HASHES else _kinds(name, values)
        if kinds[number]:
            of_process.append(number)
        examples = () if name in HASHES else tuple(value for value in values if value is not None)[:_EXAMPLES]
        left = _left(codes, [number])
        yield FragmentRow(
            (name,), len(values), len(folders), left, kinds[number], examples, _IGNORED_BY.get(name)
        )
    if len(of_process) > 1:
        together = codes[:, of_process]
        yield FragmentRow(
            tuple(varying[number] for number in of_process),
            len(np.unique(together, axis=0)),
            len(folders),
            _left(codes, of_process),
            tuple(dict.fromkeys(kind for number in of_process for kind in kinds[number])),
            (),
            None,
        )


def _left(codes: npt.NDArray[np.int32], without: list[int]) -> int:
    kept = np.delete(codes, without, axis=1)
    return len(np.unique(kept, axis=0)) if kept.shape[1] else 1


def _kinds(name: str, values: Sequence[str | None]) -> tuple[str, ...]:
    """The kinds by which the first value differs from all others, as far as they are looked at; none if from one by something else."""
    first = values[0]
    found: dict[str, None] = {}
    for value in islice(values, 1, _JUDGED):
        kinds = None if first is None or value is None else differs_by(name, first, value)
        if kinds is None or not kinds.is_all:
            return ()
        found.update(dict.fromkeys(kinds.kinds))
    return tuple(found)
