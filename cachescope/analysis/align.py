"""Align the graphs of two runs the way a diff aligns the lines of two files.

A new graph and a changed one both have a `gm` that was never seen. What tells them apart is the place: a
changed graph stands where another one stood, a new one stands between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

from cachescope.analysis.graphs import graph_words, likeness
from cachescope.analysis.history import LookupRow
from cachescope.details import HashDetails

# Which of several alike ones it is: most of the score is the likeness of the code, the rest the compile id and
# equal inputs. Those alone make no likeness: every program has a compile 0/0, and many take the same inputs.
_CODE, _PLACE, _INPUTS = 0.6, 0.2, 0.2
# How alike the code of two graphs has to be: of one function little, for it may have been rewritten; of functions
# of other names, or where names are not known, most; of functions in other files nearly all.
_ENOUGH_OF_ONE_FUNCTION: Final = 0.2
_ENOUGH: Final = 0.6
_ENOUGH_OF_OTHER_FILES: Final = 0.75
# A longer stretch of changed graphs is halved until it is short enough to compare each graph with each.
_MOST_COMPARED: Final = 100 * 100


class GraphAligner:
    """Finds, for the graphs of one run, the graphs of another run that they took the place of."""

    def __init__(self, details: HashDetails) -> None:
        self._details = details
        self._words: dict[int, Counter[str]] = {}
        self._inputs: dict[int, tuple[int, ...]] = {}

    def partners(self, before: Sequence[LookupRow], after: Sequence[LookupRow]) -> dict[int, LookupRow]:
        """Pairs of changed graphs of one cache and one direction.

        Parameters
        ----------
        before, after : sequence of LookupRow
            Lookups of two runs in order; those without `gm` are passed over.

        Returns
        -------
        dict
            Lookup id in `after` -> the lookup in `before` whose graph it replaced. Equal graphs and new
            graphs are not in it.
        """
        old, new = _distinct(before), _distinct(after)
        matcher = SequenceMatcher(None, [r.gm for r in old], [r.gm for r in new], autojunk=False)
        pairs: dict[int, LookupRow] = {}
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            if tag == "replace":
                pairs |= self._pair_up(old[i1:i2], new[j1:j2])
        return pairs

    def score(self, a: LookupRow, b: LookupRow) -> float:
        """How likely one graph took the place of the other, between 0 and 1; 0 where they are not alike."""
        if not self.are_alike(a, b):
            return 0.0
        assert a.detail_set is not None and b.detail_set is not None
        same_place = a.compile_id is not None and a.compile_id == b.compile_id
        same_inputs = self._inputs_of(a.detail_set) == self._inputs_of(b.detail_set)
        return (
            _CODE * self.code_likeness(a.detail_set, b.detail_set)
            + _PLACE * same_place
            + _INPUTS * same_inputs
        )

    def are_alike(self, a: LookupRow, b: LookupRow) -> bool:
        """Whether one graph may be another form of the other: by its code, and the function it was made from."""
        assert a.detail_set is not None and b.detail_set is not None
        enough = _ENOUGH
        if a.function is not None and b.function is not None:
            if a.file != b.file:
                enough = _ENOUGH_OF_OTHER_FILES
            elif a.function == b.function:
                enough = _ENOUGH_OF_ONE_FUNCTION
        return self.code_likeness(a.detail_set, b.detail_set) >= enough

    def code_likeness(self, a: int, b: int) -> float:
        """How alike the code of the graphs in two sets of hash details is."""
        return likeness(self._words_of(a), self._words_of(b))

    def _pair_up(self, old: list[LookupRow], new: list[LookupRow]) -> dict[int, LookupRow]:
        """The pairs, in order, of the greatest total score; a pair that is too unlike is none."""
        if len(old) * len(new) > _MOST_COMPARED:
            i, j = len(old) // 2, len(new) // 2
            return self._pair_up(old[:i], new[:j]) | self._pair_up(old[i:], new[j:])
        best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
        scores = [[self.score(a, b) for b in new] for a in old]
        for i in range(len(old) - 1, -1, -1):
            for j in range(len(new) - 1, -1, -1):
                skip = max(best[i + 1][j], best[i][j + 1])
                pair = scores[i][j] + best[i + 1][j + 1] if scores[i][j] else 0.0
                best[i][j] = max(skip, pair)
        pairs: dict[int, LookupRow] = {}
        i = j = 0
        while i < len(old) and j < len(new):
            if scores[i][j] and best[i][j] == scores[i][j] + best[i + 1][j + 1]:
                pairs[new[j].lookup] = old[i]
                i, j = i + 1, j + 1
            elif best[i][j] == best[i + 1][j]:
                i += 1
            else:
                j += 1
        return pairs

    def _words_of(self, detail_set: int) -> Counter[str]:
        words = self._words.get(detail_set)
        if words is None:
            gm = self._details.detail(detail_set, "gm")
            words = self._words[detail_set] = graph_words(gm.value_text if gm else "")
        return words

    def _inputs_of(self, detail_set: int) -> tuple[int, ...]:
        inputs = self._inputs.get(detail_set)
        if inputs is None:
            store = self._details
            codes = store.sets[detail_set]
            inputs = self._inputs[detail_set] = tuple(
                int(store.hash_codes[code])
                for code in codes
                if store.fields[store.field_codes[code]].startswith("example_inputs")
            )
        return inputs


def _distinct(rows: Sequence[LookupRow]) -> list[LookupRow]:
    """Rows with a graph; a graph looked up twice in a row (through its AOTAutograd entry, then again) once."""
    kept: list[LookupRow] = []
    for row in rows:
        if row.gm is not None and not (kept and kept[-1].cache_key == row.cache_key):
            kept.append(row)
    return kept
