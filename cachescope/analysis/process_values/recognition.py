"""By which values of a process two printed values differ: their texts are laid side by side, and each place judged.

The work is bounded whatever the texts: long ones, and those that differ in many places, are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from cachescope.analysis.process_values.kinds import (
    DATE,
    UUID4,
    Differing,
    Kind,
    RecognizedKind,
    Sides,
    endpoint_kinds,
    equal_to_ranks,
    kind_of,
)

# What says which machine and which torch it is: the numbers in it are versions and sizes.
_OF_THE_MACHINE: Final = ("system_info", "torch_version", "example_inputs", "inputs_to_check")
_LONGEST: Final = 20_000
_MOST_PLACES: Final = 32
_LONGEST_PLACE: Final = 1_000
_NAME_WITHIN: Final = 80
# A date with its time, or all between blanks, quotes, brackets and signs of a printed value.
_TOKEN: Final = re.compile(rf"(?:{DATE})|[^\s'\"(){{}}\[\],;=<>]+")
_PIECE: Final = re.compile(rf"(?:{DATE})|{UUID4}|[A-Za-z]+|\d+|[^A-Za-z\d]")
# `'rank': 3`, `rank=3`, `--rank 3`, and the first of a pair: `('rank', 3)`.
_NAME_BEFORE: Final = re.compile(
    r"(?:\((?P<quote>['\"])(?P<first>[A-Za-z_][\w.-]*)(?P=quote), *"
    r"|(?:^|[^\w.-])(?P<name>[A-Za-z_][\w.-]*)['\"]?\]? *[:=] *|--(?P<option>[A-Za-z][\w-]*) +)['\"]?$"
)
_LAST_NAME: Final = re.compile(r"[A-Za-z_]\w*(?=\W*$)")
# Differing devices of ranks are reported with devices.
_DEVICE: Final = re.compile(r"(?:cpu|cuda|hip|hpu|meta|mps|mtia|npu|privateuseone|xla|xpu):\d+")
_WORD_BEFORE: Final = re.compile(r"(?P<name>[A-Za-z](?:[A-Za-z_-]*[A-Za-z])?)[_:=./-]?$")
# Such a rank is that of a matrix.
_OF_MATRICES: Final = re.compile(
    r"(?:.*_)?(?:adapter|approx|effective|full|kv|lora|low|matrix|max|min|network|proj|projection|reduced|svd|target|tensor)_rank"
)


@dataclass(frozen=True, slots=True)
class DiffersBy:
    """The values of a process by which two printed values differ.

    Attributes
    ----------
    kinds : tuple of str
        ``rank``, ``host``, ``path``, ``port``, ``time``, ``address``, ``pid``, ``random number``.
    is_certain : bool
        Whether the logs say so of both processes, or nothing else has this form; otherwise the texts only look like it.
    is_all : bool
        Whether they differ in nothing else.
    """

    kinds: tuple[Kind, ...]
    is_certain: bool
    is_all: bool

    @property
    def words(self) -> str:
        """The same in words: ``apparently differs by rank``."""
        certainly = "" if self.is_certain else "apparently "
        *others, last = self.kinds
        kinds = f"{', '.join(others)} and {last}" if others else last
        return f"{certainly}differs by {kinds}{'' if self.is_all else ', and otherwise'}"


def differs_by(field: str, before: str, after: str, sides: Sides = (None, None)) -> DiffersBy | None:
    """The process-specific values in which two printed values of a field differ; None if none is recognised.

    Examples
    --------
    >>> differs_by("inductor_config[aot_inductor.metadata]", "{'rank': '3'}", "{'rank': '1'}").words
    'apparently differs by rank'
    >>> differs_by("inductor_config[max_fusion_size]", "64", "32")
    """
    if max(len(before), len(after)) > _LONGEST or field.startswith(_OF_THE_MACHINE):
        return None
    each = list(islice(_by_place(field, before, after, sides), _MOST_PLACES + 1))
    if len(each) > _MOST_PLACES:
        return None
    found = [one for kinds in each for one in kinds]
    if not found:
        return None
    names = tuple(dict.fromkeys(one.kind for one in found))
    return DiffersBy(names, all(one.is_certain for one in found), all(each))


def _by_place(field: str, before: str, after: str, sides: Sides) -> Iterator[Sequence[RecognizedKind]]:
    """What each differing token is; nothing where the texts have not the same form."""
    old, new = (list(_TOKEN.finditer(text)) for text in (before, after))
    if len(old) != len(new) or _TOKEN.sub("", before) != _TOKEN.sub("", after):
        return
    # The same in another order, as of a set: only what has a name is then known to be in its place.
    is_reordered = sorted(one[0] for one in old) == sorted(one[0] for one in new)
    for a, b in zip(old, new, strict=True):
        if a[0] != b[0]:
            pair = _differing(field, a, b, sides)
            is_judged = max(map(len, pair.texts)) <= _LONGEST_PLACE and (pair.name or not is_reordered)
            yield _kinds(pair) if is_judged else ()


def _differing(field: str, old: re.Match[str], new: re.Match[str], sides: Sides) -> Differing:
    lead = _before_both(old, new)
    named = _NAME_BEFORE.search(lead)
    name = ""
    if named is not None:
        name = named["first"] or named["name"] or named["option"]
    elif old[0] == old.string.strip() and new[0] == new.string.strip():
        last = _LAST_NAME.search(field[-_NAME_WITHIN:])
        name = last[0] if last is not None else ""
    is_behind_at = lead.endswith(" at ") and all(
        one.string[one.end() : one.end() + 1] == ">" for one in (old, new)
    )
    return Differing(_plain(name), old[0].strip(":"), new[0].strip(":"), sides, is_behind_at)


def _before_both(old: re.Match[str], new: re.Match[str]) -> str:
    """The end of the text in front of both. If it is cut, a digit is put in front, so that half a name is not taken for a name."""
    one, other = (match.string[max(match.start() - _NAME_WITHIN, 0) : match.start()] for match in (old, new))
    end = 0
    while end < min(len(one), len(other)) and one[-1 - end] == other[-1 - end]:
        end += 1
    is_whole = end == old.start() == new.start()
    return ("" if is_whole else "0") + one[len(one) - end :]


def _kinds(pair: Differing) -> Sequence[RecognizedKind]:
    """What a pair of tokens differs by: the whole of it, or each of its pieces that differ."""
    if found := endpoint_kinds(pair):
        return found
    whole = kind_of(pair)
    if whole is not None and whole.kind != "path":
        return (whole,)
    pieces = list(_of_pieces(pair))
    known = [piece for piece in pieces if piece is not None]
    if known and len(known) == len(pieces):
        return known
    return () if whole is None else (whole,)


def _of_pieces(pair: Differing) -> Iterator[RecognizedKind | None]:
    """What each differing piece is, such as the number in ``rank_3``."""
    old, new = map(_PIECE.findall, pair.texts)
    if len(old) != len(new) or pair.are(_DEVICE):
        return
    at = 0
    for one, other in zip(old, new, strict=True):
        if one != other:
            lead = _WORD_BEFORE.search(pair.before[max(at - _NAME_WITHIN, 0) : at])
            yield _of_piece(
                Differing(_plain(lead["name"]) if lead is not None else "", one, other, pair.sides)
            )
        at += len(one)


def _of_piece(piece: Differing) -> RecognizedKind | None:
    """What a number is that a word ends with: the last parts of the word name it, or it is the rank of either process."""
    words = piece.name.split("_")
    if not _OF_MATRICES.fullmatch(piece.name):
        for first in range(len(words)):
            if (found := kind_of(replace(piece, name="_".join(words[first:])))) is not None:
                return found
    return equal_to_ranks(piece) if piece.name else None


def _plain(name: str) -> str:
    return name.rpartition(".")[2].replace("-", "_").strip("_").lower()
