"""The frames of what was read, each made when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cachescope.answers.recording import Recording
from cachescope.frames.recorded_rows import ProblemRow

if TYPE_CHECKING:
    import pandas as pd


class Frames(Recording):
    """What was read, as frames: each is made when it is first asked for, and is a cheap copy."""

    @property
    def runs(self) -> pd.DataFrame:
        """One row per process."""
        return _copy(self.tables.runs.frame)

    @property
    def lookups(self) -> pd.DataFrame:
        """One row per lookup; for a pre-flight, the lookups that a real run would make."""
        return _copy(self.shown.frame)

    @property
    def entries(self) -> pd.DataFrame:
        """One row per entry of the cache directories that were read."""
        return _copy(self.tables.entries.frame)

    @property
    def contexts(self) -> pd.DataFrame:
        """One row per isolation context. The snapshots come first, then each run, as far as its hash details show."""
        return _copy(self._contexts)

    @property
    def guards(self) -> pd.DataFrame:
        """One row per candidate, the sound entries under each key, with the guards that must hold."""
        from cachescope.analysis.directory.same_key import guards_frame

        return guards_frame(self.tables.entries.frame)

    @property
    def kernels(self) -> pd.DataFrame:
        """One row per kernel of the FX entries, with its source nodes and ATen operators."""
        return _copy(self.tables.kernels.frame)

    @property
    def autotune(self) -> pd.DataFrame:
        """One row per choice that max-autotune measured."""
        return _copy(self.tables.autotune.frame)

    @property
    def vllm_folders(self) -> pd.DataFrame:
        """One row per part of a model that one rank keeps in one folder of vLLM's torch_compile_cache."""
        from cachescope.frames.vllm_folders import FolderRow

        return _frame(self.folders_of_vllm, FolderRow)

    @property
    def vllm_changes(self) -> pd.DataFrame:
        """One row per factor in which a vLLM folder differs from the nearest earlier one."""
        from cachescope.analysis.vllm.changes import all_changes
        from cachescope.frames.vllm_folders import VllmChange

        return _frame(all_changes(self._vllm_named), VllmChange)

    @property
    def vllm_fragments(self) -> pd.DataFrame:
        """One row per factor that makes vLLM folders differ: how many folders would remain without it."""
        from cachescope.frames.vllm_folders import FragmentRow

        return _frame(self.fragments_of_vllm, FragmentRow)

    @property
    def vllm_ranks(self) -> pd.DataFrame:
        """One row per factor in which the folders of ranks with one vLLM configuration differ."""
        from cachescope.frames.vllm_folders import RankRow

        return _frame(self.ranks_of_vllm, RankRow)

    @property
    def vllm_factors(self) -> pd.DataFrame:
        """One row per cache_key_factors.json of vLLM: the factors of a folder's name."""
        return _copy(self.tables.vllm_factors.frame)

    @property
    def vllm_starts(self) -> pd.DataFrame:
        """One row per part of a model that vLLM compiled or loaded, according to its logs."""
        return _copy(self.tables.vllm_starts.frame)

    @property
    def links(self) -> pd.DataFrame:
        """One row per reference between files of a cache directory."""
        return _copy(self._links_frame)

    @property
    def orphans(self) -> pd.DataFrame:
        """One row per file that nothing refers to, or that refers to something that is gone."""
        return _copy(self._orphans_frame)

    @property
    def duplicates(self) -> pd.DataFrame:
        """One row per group of files of which one would be enough, judged by names, sizes and guards; no file is read."""
        from cachescope.analysis.directory.same_key import duplicates_frame

        return duplicates_frame(self.tables.entries.frame)

    @property
    def removable(self) -> pd.DataFrame:
        """One row per file that can go without a later process noticing; cachescope itself removes nothing."""
        from cachescope.analysis.directory.unused import removable_frame

        return removable_frame(self.tables.entries.frame, self._orphans_frame)

    @property
    def past_misses(self) -> pd.DataFrame:
        """One row per FX entry whose graph had been stored before: a miss that a directory shows without a log."""
        return _copy(self._past_misses_frame)

    @property
    def evidence(self) -> pd.DataFrame:
        """One row per set of fields in which entries of one graph differ, and whether their code differs too."""
        from cachescope.analysis.what_if.evidence import evidence_frame

        return evidence_frame(self._past_misses_frame)

    @property
    def false_hits(self) -> pd.DataFrame:
        """One row per key that seems to stand for more than one thing: a warning with its evidence."""
        return _copy(self.suspected.frame)

    @property
    def devices(self) -> pd.DataFrame:
        """One row per device that any source names, with its datasheet."""
        return _copy(self._devices_frame)

    @property
    def phases(self) -> pd.DataFrame:
        """Where compile time went, from the events of traces. These are read on first access."""
        return _copy(self._phases_read[0].frame)

    @property
    def phase_problems(self) -> pd.DataFrame:
        """One row per event or trace that could not be read for ``phases``; with the columns of ``problems``."""
        return _frame(self._phases_read[1], ProblemRow)

    @property
    def compiles(self) -> pd.DataFrame:
        """One row per compile and why it was made, from traces. These are read for it on first access."""
        return _copy(self._compiles_read[0].frame)

    @property
    def symbols(self) -> pd.DataFrame:
        """One row per size or number that became a symbol in a compile; read together with ``compiles``."""
        return _copy(self._compiles_read[1].frame)

    @property
    def recompiles(self) -> pd.DataFrame:
        """One row per guard whose failure caused recompiles of a function, the costliest first; read together with ``compiles``."""
        from cachescope.analysis.compiles.frames import recompiles
        from cachescope.frames.compile_rows import RecompileRow

        return _frame(recompiles(self._compiles_read[0].rows), RecompileRow)

    @property
    def compile_problems(self) -> pd.DataFrame:
        """One row per record or trace that could not be read for ``compiles``; with the columns of ``problems``."""
        return _frame(self._compiles_read[2], ProblemRow)

    @property
    def problems(self) -> pd.DataFrame:
        """One row per thing that could not be read."""
        return _copy(self.tables.problems.frame)

    @property
    def misses(self) -> pd.DataFrame:
        """One row per lookup that did not hit, with its verdict."""
        return _copy(self.missed.frame)

    @property
    def causes(self) -> pd.DataFrame:
        """One row per distinct reason, the costliest first."""
        return _copy(self.explained.frame)

    @property
    def rank_differences(self) -> pd.DataFrame:
        """One row per field in which some ranks of a job differ from the majority."""
        return _copy(self.differing_ranks.frame)


def _copy(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame that its user may change."""
    from cachescope.columns import DEEP

    return frame.copy(deep=DEEP)


def _frame(rows: Iterable[object], kind: type) -> pd.DataFrame:
    from cachescope.columns import frame_of

    return frame_of(rows, kind)
