"""Starts of vLLM: what its own logs say, and whether one would use a folder that is there, as far as its environment says it before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

from cachescope.analysis.vllm.factors import HASHES, Named, name_of_variable, process_kinds
from cachescope.answers.recording import Recording
from cachescope.catalogue.vllm_variables import is_secret, release_of, values_of
from cachescope.frames.vllm import StartRow


class Started(NamedTuple):
    """A part of a model that vLLM's log says to have been compiled or loaded."""

    row: StartRow
    run: int
    unsaved_by: int | None  # the run that could not save the whole model, where its graphs alone were loaded


def starts_of_vllm(read: Recording) -> tuple[Started, ...]:
    """Of all logs that were read."""
    found, unsaved = [], dict[tuple[str | None, int | None, str | None], int]()
    for row in read.tables.vllm_starts.rows:
        run, of_rank = read.facts.lookups[row.lookup].run, (row.folder, row.rank, row.prefix)
        are_graphs = row.outcome == "loaded" and row.path is not None
        found.append(Started(row, run, unsaved.get(of_rank) if are_graphs else None))
        if row.save_error is not None:
            unsaved.setdefault(of_rank, run)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Differing:
    """A variable with which the start would make another folder."""

    name: str
    here: str | None  # its text in the environment; None if it is not set
    reads_as: str  # what vLLM makes of it, as JSON
    folder: str  # the value in the folder, as JSON
    # The values of a process by which they differ, such as a port: each start makes another folder.
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prospect:
    """One folder, and what is known of a start that would use it."""

    folder: str
    equal: int  # how many variables have the folder's value here
    differing: tuple[Differing, ...]
    # Variables that vLLM reads by a function of its own, or may set itself; in a folder of another release also those not set here.
    not_known: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VllmStart:
    """The folders whose factors are known, the likeliest to be used first."""

    prospects: tuple[Prospect, ...]
    without_factors: int  # folders of which nothing says what their names were made of

    @property
    def may_hit(self) -> bool:
        """Whether nothing that is known keeps the start from one of them."""
        return any(not one.differing for one in self.prospects)

    @classmethod
    def of(cls, read: Recording, environment: Mapping[str, str]) -> Self:
        """Hold an environment against every folder that was read."""
        found = [prospect_of(folder, environment) for folder in read.named_of_vllm]
        found.sort(key=lambda one: (len(one.differing), one.folder))
        others = {row.folder for row in read.folders_of_vllm} - {one.folder for one in found}
        return cls(tuple(found), len(others))


def prospect_of(folder: Named, environment: Mapping[str, str]) -> Prospect:
    """Hold an environment against one folder."""
    equal, differing, not_known = 0, [], []
    release = release_of(name for one in folder.values if (name := name_of_variable(one)) is not None)
    for factor, value in folder.values.items():
        name = name_of_variable(factor)
        if factor in HASHES or name is None:
            continue
        here = environment.get(name)
        try:
            values = values_of(name, environment, release)
        except ValueError:
            values = None
        if values is None or (is_secret(name) and here and value != "null"):
            not_known.append(name)
            continue
        read, own = ({json.dumps(one) for one in some} for some in values)
        if read == {value}:
            equal += 1
        elif value in read | own:
            not_known.append(name)
        else:
            reads_as, here = ('"(secret)"', "(secret)") if is_secret(name) and here else (min(read), here)
            kinds = process_kinds(factor, reads_as, value)
            differing.append(Differing(name, here, reads_as, value, kinds.kinds if kinds else ()))
    return Prospect(folder.name, equal, tuple(differing), tuple(not_known))
