"""Align the graphs of two runs the way a diff aligns the lines of two files.

A new graph and a changed one both have a `gm` that was never seen. Their place distinguishes them: a
changed graph is in the place of another one, a new one is in between.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from difflib import SequenceMatcher
from itertools import chain
from typing import Final, Generic, Protocol, TypeVar

from cachescope.analysis.graphs import graph_words, likeness
from cachescope.analysis.key_distance import KeyDistances
from cachescope.details import HashDetails
from cachescope.notebook_cells import code_file, is_cell

# The score chooses among several alike graphs: most of it is the likeness of the code, the rest the compile id and
# equal inputs. Those alone prove nothing: every program has a compile 0/0, and many take the same inputs.
_CODE, _PLACE, _INPUTS = 0.6, 0.2, 0.2
# How alike the code of two graphs must be. A function of the user may have been rewritten; many programs call a
# library function.
_ENOUGH_OF_ONE_FUNCTION: Final = 0.2
_ENOUGH: Final = 0.6
# A torch.nn.Sequential and a lambda have no name of their own; only their caller is known.
_ENOUGH_OF_ONE_CALL: Final = 0.9
_NEVER: Final = 2.0
_LIBRARY: Final = re.compile(r"[\\/](?:site|dist)-packages[\\/]")
# A longer stretch of changed graphs is halved until it is short enough to compare all pairs.
_MOST_COMPARED: Final = 100 * 100


class Code(Protocol):
    """The code of a graph that was looked up or stored."""

    @property
    def detail_set(self) -> int | None:
        """Its hash details."""


class Graph(Code, Protocol):
    """A graph that was looked up or stored, as far as it is compared with others."""

    @property
    def cache_key(self) -> Hashable:
        """Its key; equal ones are equal keys."""

    @property
    def compile_id(self) -> str | None:
        """The compile that it belongs to."""

    @property
    def function(self) -> str | None:
        """The function that was compiled."""

    @property
    def file(self) -> str | None:
        """The file of that function."""


SomeGraph = TypeVar("SomeGraph", bound=Graph)


class GraphAligner(Generic[SomeGraph]):
    """Finds the graphs of another run that the graphs of a run replaced."""

    def __init__(
        self,
        details: HashDetails,
        keys: KeyDistances,
        graph_above: Callable[[SomeGraph], int | None] | None = None,
    ) -> None:
        self._details = details
        self._keys = keys
        self._graph_above = graph_above or (lambda _: None)
        self._words: dict[int, Counter[str]] = {}
        self._likeness: dict[tuple[int, int], float] = {}
        self._inputs: dict[int, tuple[int, ...]] = {}

    def partners(
        self, before: Sequence[SomeGraph], after: Sequence[SomeGraph], *, is_one_program: bool = False
    ) -> list[tuple[SomeGraph, SomeGraph]]:
        """Pair the changed graphs of one cache and one direction."""
        old, new = self._distinct(before), self._distinct(after)
        graph = self._keys.graph
        replaced, share_a_graph = replaced_stretches(
            [graph(row.detail_set) for row in old], [graph(row.detail_set) for row in new]
        )
        is_one_program |= share_a_graph
        pairs = (self.pair_up(old[some], new[others], is_one_program) for some, others in replaced)
        return list(chain.from_iterable(pairs))

    def score(self, a: SomeGraph, b: SomeGraph) -> float:
        """How likely it is, between 0 and 1, that one of two alike graphs replaced the other."""
        assert a.detail_set is not None and b.detail_set is not None
        same_place = a.compile_id is not None and a.compile_id == b.compile_id
        same_inputs = self._inputs_of(a.detail_set) == self._inputs_of(b.detail_set)
        return _CODE * self.code_likeness(a, b) + _PLACE * same_place + _INPUTS * same_inputs

    def are_alike(self, a: SomeGraph, b: SomeGraph, *, is_one_program: bool = False) -> bool:
        """Whether one graph may be another form of the other.

        Their code and their source functions decide. If functions are not named, as in a text log,
        two graphs of one program may be forms of each other; for two programs nothing can be concluded. The graphs that
        AOTAutograd made from one graph are forms of it, such as those for training and for inference.
        """
        above = self._graph_above(a)
        if above is not None and above == self._graph_above(b):
            return True
        return self.code_likeness(a, b) >= _enough(a, b, is_one_program)

    def may_be_alike(self, a: SomeGraph, b: SomeGraph) -> bool:
        """Whether one graph may be a form of the other, if a source function is unknown."""
        if is_named(a) and is_named(b):
            return False
        is_in_place = a.compile_id is not None and a.compile_id == b.compile_id
        return self.code_likeness(a, b) >= (_ENOUGH_OF_ONE_FUNCTION if is_in_place else _ENOUGH)

    def code_likeness(self, a: Code, b: Code) -> float:
        """How alike the code of two graphs with hash details is."""
        assert a.detail_set is not None and b.detail_set is not None
        # A fleet compares the same graphs again and again, under many keys.
        one, other = self._keys.graph(a.detail_set), self._keys.graph(b.detail_set)
        if one is None or other is None:
            return likeness(self._words_of(a.detail_set), self._words_of(b.detail_set))
        if (one, other) not in self._likeness:
            self._likeness[one, other] = likeness(self._words_of(a.detail_set), self._words_of(b.detail_set))
        return self._likeness[one, other]

    def pair_up(
        self, old: Sequence[SomeGraph], new: Sequence[SomeGraph], is_one_program: bool
    ) -> list[tuple[SomeGraph, SomeGraph]]:
        """The pairs, in order, with the greatest total score; graphs that are too different are not paired."""
        if len(old) * len(new) > _MOST_COMPARED:
            i, j = len(old) // 2, len(new) // 2
            first = self.pair_up(old[:i], new[:j], is_one_program)
            return first + self.pair_up(old[i:], new[j:], is_one_program)
        best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
        scores = [
            [self.score(a, b) if self.are_alike(a, b, is_one_program=is_one_program) else 0.0 for b in new]
            for a in old
        ]
        for i in range(len(old) - 1, -1, -1):
            for j in range(len(new) - 1, -1, -1):
                skip = max(best[i + 1][j], best[i][j + 1])
                pair = scores[i][j] + best[i + 1][j + 1] if scores[i][j] else 0.0
                best[i][j] = max(skip, pair)
        pairs: list[tuple[SomeGraph, SomeGraph]] = []
        i = j = 0
        while i < len(old) and j < len(new):
            if scores[i][j] and best[i][j] == scores[i][j] + best[i + 1][j + 1]:
                pairs.append((old[i], new[j]))
                i, j = i + 1, j + 1
            elif best[i][j] == best[i + 1][j]:
                i += 1
            else:
                j += 1
        return pairs

    def _words_of(self, detail_set: int) -> Counter[str]:
        if detail_set not in self._words:
            gm = self._details.detail(detail_set, "gm")
            self._words[detail_set] = graph_words(gm.value_text if gm else "")
        return self._words[detail_set]

    def _inputs_of(self, detail_set: int) -> tuple[int, ...]:
        number = self._keys.content(detail_set)
        if number not in self._inputs:
            self._inputs[number] = self._keys.example_inputs(detail_set)
        return self._inputs[number]

    def _distinct(self, rows: Sequence[SomeGraph]) -> list[SomeGraph]:
        """Rows with a graph; a graph looked up twice in a row (through its AOTAutograd entry, then again) is kept once."""
        kept: list[SomeGraph] = []
        for row in rows:
            has_graph = self._keys.graph(row.detail_set) is not None
            if has_graph and not (kept and kept[-1].cache_key == row.cache_key):
                kept.append(row)
        return kept


def replaced_stretches(
    before: Sequence[int | None], after: Sequence[int | None]
) -> tuple[list[tuple[slice, slice]], bool]:
    """Where graphs of one run are in the place of graphs of another, as in the diff of two files."""
    steps = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    stretches = [(slice(i1, i2), slice(j1, j2)) for tag, i1, i2, j1, j2 in steps if tag == "replace"]
    return stretches, any(tag == "equal" for tag, *_ in steps)


def is_named(row: Graph) -> bool:
    """Whether the source function of a graph is known."""
    return _function_of(row) is not None


def _function_of(row: Graph) -> tuple[str, str] | None:
    """The name and the file of a graph's source function; None if it has no name."""
    file = code_file(row.file)
    if row.function is None or file is None or row.function.startswith("<"):
        return None
    return row.function, file


def _enough(a: Graph, b: Graph, is_one_program: bool) -> float:
    """How alike the code of two graphs must be for one to be another form of the other."""
    one, other = _function_of(a), _function_of(b)
    if one is None or other is None:
        if is_one_program:
            return _ENOUGH
        is_same = a.file is not None and (code_file(a.file), a.function) == (code_file(b.file), b.function)
        return _ENOUGH_OF_ONE_CALL if is_same else _NEVER
    if one == other:
        return _ENOUGH if _LIBRARY.search(one[1]) else _ENOUGH_OF_ONE_FUNCTION
    # A renamed function, or a program that was moved as a whole; a cell that was edited has another name.
    is_moved = os.path.basename(one[1]) == os.path.basename(other[1])
    is_edited = a.file is not None and b.file is not None and is_cell(a.file) and is_cell(b.file)
    is_one = one[1] == other[1] or (one[0] == other[0] and (is_moved or is_edited))
    return _ENOUGH if is_one else _NEVER
