"""Peak rates from the vendors' datasheets, and the rule that matches a device name to a datasheet.

Every figure is dense. If a sheet prints a rate only with 2:4 sparsity, half of it is taken, as the
footnotes of these sheets state, and the row records that. A figure that could not be confirmed is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

SPARSITY: Final = 2.0
# Words that do not distinguish models. VF and HF: torch also takes them for the whole card
# (`_DEVICE_NAME_VARIANT_SUFFIXES`, torch/_inductor/analysis/device_info.py, 2.15).
_NOT_DISTINCTIVE: Final = re.compile(
    r"NVIDIA|TESLA|GEFORCE|AMD|INSTINCT|INTEL|DATA|CENTER|GPU|GRAPHICS|TENSOR|CORE|OAM|VF|HF|MI250"
)
_VARIANTS: Final = frozenset({"VF", "HF"})
_TRADE_MARK: Final = re.compile(r"\((?:R|TM)\)|[®™]", re.IGNORECASE)
_SIZE: Final = re.compile(r"(\d+)GB")
_MEMORY_KIND: Final = re.compile(r"HBM\d?E?|GDDR\dX?")
# How far a driver's report may differ from the sheet: ECC takes some memory, and a sheet's GB is often a GiB.
_MEMORY_RANGE: Final = (0.85, 1.2)


@dataclass(frozen=True, slots=True)
class Datasheet:
    """The figures of one model."""

    model: str
    words: tuple[frozenset[str], ...]  # the name must contain one word of each
    arch: str | None
    sm_count: int | None  # None is not known
    # dtype -> TFLOPS (int8: TOPS), as printed, or half the figure printed with sparsity.
    dense: Mapping[str, float]
    with_sparsity: Mapping[str, float]  # the figures printed with 2:4 sparsity
    halved: tuple[str, ...]  # dtypes that the sheet gives only with sparsity
    memory_gb: tuple[int, ...]
    bandwidth_gbs: float
    title: str
    url: str
    checked: str  # what the figures were checked against
    remark: str | None = None
    because: str | None = None  # why these words identify this board

    @property
    def source(self) -> str:
        """Title and address."""
        return f"{self.title}, {self.url}"

    @property
    def sparsity_factor(self) -> float | None:
        """The factor by which 2:4 sparsity raises its rates; None if it gives none."""
        return SPARSITY if self.with_sparsity else None

    @property
    def note(self) -> str | None:
        """Which rates were halved, and the remark."""
        halved = (
            f"printed with sparsity alone and halved here: {', '.join(self.halved)}" if self.halved else None
        )
        return "; ".join(filter(None, (halved, self.remark))) or None


class Match(NamedTuple):
    """The datasheet for a name, if any, and how it was found or why not."""

    datasheet: Datasheet | None
    matched_by: str


@cache
def datasheets() -> tuple[Datasheet, ...]:
    """Every datasheet that cachescope knows."""
    return tuple(map(_sheet, json.loads((files(__package__) / "datasheets.json").read_text("utf-8"))))


def _sheet(row: dict[str, Any]) -> Datasheet:
    """A datasheet from what the file has of it."""
    printed, sparse = row["dense"], row["with_sparsity"]
    halved = tuple(dtype for dtype in sparse if dtype not in printed)
    words = tuple(frozenset(words.split("|")) for words in row["words"])
    dense = {**printed, **{dtype: sparse[dtype] / SPARSITY for dtype in halved}}
    made = {"words": words, "dense": dense, "halved": halved, "memory_gb": tuple(row["memory_gb"])}
    same = {name: value for name, value in row.items() if name != "note"}
    return Datasheet(**same | made, remark=row.get("note"))


def match_datasheet(name: str, memory_bytes: int | None = None, sm_count: int | None = None) -> Match:
    """The datasheet of a device, by the words of its name.

    All words of the sheet must be in the name, and no other word that could mean another model: an
    ``NVIDIA H100 80GB HBM3`` is an H100 SXM, since only that board has HBM3 in its name; an
    ``NVIDIA GeForce RTX 4090 Laptop GPU`` is no RTX 4090. A size in the name, and `memory_bytes` if
    known, must match the sheet, and so must `sm_count`: a part of a board (MIG, a virtual function) does not get the rates of a
    whole one.

    ``lookup_device_info`` (torch/_inductor/analysis/device_info.py, 2.9 to 2.15) looks for the exact name
    "NVIDIA H100", which no device has.

    >>> match = match_datasheet("NVIDIA H100 80GB HBM3")
    >>> match.datasheet.model, match.matched_by
    ('NVIDIA H100 SXM', 'words H100, 80GB, HBM3 of the name; the PCIe and NVL boards say so in place of HBM3')
    >>> match_datasheet("NVIDIA H100").matched_by
    'the name fits several: NVIDIA H100 SXM, NVIDIA H100 PCIe, NVIDIA H100 NVL'
    """
    words = [word for word in re.split(r"[\s/_-]+", _TRADE_MARK.sub("", name).upper()) if word]
    found = [sheet for sheet in datasheets() if _fits(sheet, words)]
    if len(found) != 1:
        return Match(None, _why_none(words))
    (sheet,) = found
    low, high = _MEMORY_RANGE
    memory_gb = None if memory_bytes is None else memory_bytes / 1e9
    if memory_gb is not None and not any(low <= memory_gb / size <= high for size in sheet.memory_gb):
        sizes = " or ".join(map(str, sheet.memory_gb))
        told = f"named like the {sheet.model}, which has {sizes} GB; this reports {memory_gb:.0f} GB"
        return Match(None, told)
    if sm_count is not None and sheet.sm_count not in (None, sm_count):
        told = f"named like the {sheet.model}, which has {sheet.sm_count} SMs; this reports {sm_count}, as a part of a board does"
        return Match(None, told)
    distinctive = [word for word in words if not _NOT_DISTINCTIVE.fullmatch(word)]
    what = "word" if len(distinctive) == 1 else "words"
    how = [f"{what} {', '.join(distinctive)} of the name", sheet.because]
    if _VARIANTS & set(words):
        how.append("VF and HF are taken for the whole board, as torch does")
    return Match(sheet, "; ".join(filter(None, how)))


def match_shape(arch: str | None, sm_count: int | None) -> str | None:
    """What the SMs of a device without a name say of its model; None if no model of its architecture is known."""
    of_arch = [sheet for sheet in datasheets() if sheet.arch == arch and sheet.sm_count is not None and arch]
    alike = [sheet.model for sheet in of_arch if sheet.sm_count == sm_count]
    if sm_count is None or not of_arch:
        return None
    if alike:
        return f"nothing names it; with as many SMs: {', '.join(alike)}"
    largest = max(of_arch, key=lambda sheet: sheet.sm_count or 0)
    return f"nothing names it; the {largest.model} has {largest.sm_count} SMs: with {sm_count} it is a part of one, as MIG makes, or another model"


def _fits(sheet: Datasheet, words: list[str]) -> bool:
    if not all(alternatives & set(words) for alternatives in sheet.words):
        return False
    known = frozenset[str]().union(*sheet.words)
    return all(word in known or _is_no_other(sheet, word) for word in words)


def _is_no_other(sheet: Datasheet, word: str) -> bool:
    """Whether a word does not contradict the sheet."""
    if size := _SIZE.fullmatch(word):
        return int(size[1]) in sheet.memory_gb
    return bool(_NOT_DISTINCTIVE.fullmatch(word) or _MEMORY_KIND.fullmatch(word))


def _why_none(words: list[str]) -> str:
    # The first word of a sheet is its model, the others distinguish its boards.
    of_model = [sheet for sheet in datasheets() if sheet.words[0] & set(words)]
    distinctive = frozenset[str]().union(*(part for sheet in of_model for part in sheet.words))
    rest = (word for word in words if word not in distinctive)
    others = [word for word in rest if not any(_is_no_other(sheet, word) for sheet in of_model)]
    if of_model and not others:
        return f"the name fits several: {', '.join(sheet.model for sheet in of_model)}"
    return "no datasheet of that name"
