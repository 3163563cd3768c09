"""Why vLLM compiled again, as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from cachescope.analysis.differences import short
from cachescope.answers.vllm import Again, Apart, Started, VllmFolders
from cachescope.answers.vllm_start import VllmStart
from cachescope.frames.vllm import FragmentRow, StartRow
from cachescope.grouping import by_key
from cachescope.report.layout import Line, parted, rest, titled
from cachescope.wording import duration, listed, plural

_STARTS_SHOWN: Final = 4
_OUTCOMES: Final = {
    "loaded": "loaded",
    "compiled": "compiled",
    "not_known": "loaded or compiled, which is not known",
}
_RANKS_SHOWN: Final = 4
_REASONS_SHOWN: Final = 10
_FACTORS_NAMED: Final = 3
_FRAGMENTS_SHOWN: Final = 8
_UNKNOWN_SHOWN: Final = 3
_APART_SHOWN: Final = 4
_FOLDERS_SHOWN: Final = 3
_PROSPECTS_SHOWN: Final = 4
_BEFORE_A_START: Final = (
    "Not known before a start: the configuration (the model, its arguments, vLLM's version), the files that are traced, and torch with "
    "the machine. vLLM keeps only their hashes."
)
_LONGEST_REASON: Final = 400
_ROWS: Final = 5
_BY_DESIGN: Final = (
    "each rank has a value of its own, as ranks do; where vLLM counts it, each needs a folder of its own"
)
_NOT_BY_DESIGN: Final = (
    "nothing that each rank has of its own. Either these ranks alone had it, or the others wrote no such folder here: they keep it "
    "on another machine, loaded a whole compiled model, or stopped before"
)


def vllm_lines(found: VllmFolders) -> list[Line]:
    """The folders of vLLM: why there are several, and which factors make them many; then its starts."""
    return list(parted((_folder_lines(found), _sglang_lines(found), start_lines(found.starts))))[1:]


def start_lines(starts: Sequence[Started]) -> list[Line]:
    """How each part of a model started, with its times, as vLLM's own log says."""
    lines = []
    for one in starts[:_STARTS_SHOWN]:
        row = one.row
        what = " of ".join(filter(None, (row.prefix, row.folder))) or "a model"
        name = f"{what}, {'' if row.rank is None else f'rank {row.rank}, '}run {one.run}"
        lines.append(Line(short(f"{name}: {'; '.join(_how(row))}", _LONGEST_REASON), 3, hang=3))
        if one.unsaved_by is not None:
            why = f"no load of the whole model is logged; inferred: because run {one.unsaved_by} could not save it"
            lines.append(Line(why, 6, "dim"))
    lines += rest(len(starts) - _STARTS_SHOWN, "start", "see scope.vllm_starts")
    return titled("starts of vLLM, as its own log says:", lines)


def _how(row: StartRow) -> Iterator[str]:
    times = (("Dynamo", row.dynamo_time_ns), ("in all", row.total_time_ns))
    if row.is_disabled:
        yield "vLLM's cache was off"
    elif row.compile_time_ns is not None:
        yield f"compiled in {duration(row.compile_time_ns)}" + (", the rest loaded" if row.is_partial else "")
    else:
        loaded = "" if row.load_time_ns is None else f" in {duration(row.load_time_ns)}"
        yield _OUTCOMES[row.outcome] + loaded
    yield from (f"{name} {duration(ns)}" for name, ns in times if ns is not None)
    if row.load_error is not None:
        yield f"the whole model could not be loaded: {row.load_error}"
    if row.save_error is not None:
        yield f"could not be saved: {row.save_error}"


def _folder_lines(found: VllmFolders) -> list[Line]:
    if not (found.named or found.unknown or found.packages):
        return []
    again = sum(len(one.folders) for one in found.again)
    title = f"vLLM: {plural(found.named, 'folder')} whose names follow from their factors"
    if found.unknown and not found.named:
        title = f"vLLM: {plural(len(found.unknown), 'folder')}"
    if again:
        title += f"; {again} of them made although another was there before:"
    lines = [Line(title, style="bold")]
    lines += parted(_again_lines(number, one) for number, one in enumerate(found.again[:_REASONS_SHOWN], 1))
    lines += rest(len(found.again) - _REASONS_SHOWN, "reason", "see scope.vllm_folders", 0, "")
    fragments = titled("what makes the folders many:", _fragment_lines(found.fragments))
    apart = titled("ranks of one configuration in folders of their own:", _apart_lines(found.apart))
    return [*lines, *parted((fragments, apart)), *_left(found)]


def _sglang_lines(found: VllmFolders) -> Iterator[Line]:
    if found.sglang:
        yield Line(f"SGLang: {plural(len(found.sglang), 'folder')}", style="bold")
    for row in found.sglang[:_UNKNOWN_SHOWN]:
        yield Line(f"{row.folder}: {row.name_text}", 3, "dim", rows=_ROWS)
    yield from rest(len(found.sglang) - _UNKNOWN_SHOWN, "folder", "see scope.vllm_folders")


def _again_lines(number: int, one: Again) -> Iterator[Line]:
    first = one.folders[0]
    factors = _names(one.factors) or "no recorded factor differs"
    yield Line(f"{number}  {factors}", style="bold", right=plural(len(one.folders), "folder"))
    yield Line(f"{first.folder} beside {first.baseline or ''}:", 3)
    yield Line(short(first.reason, _LONGEST_REASON), 5, rows=_ROWS)
    if not all(row.is_order_known for row in one.folders):
        yield Line("which was made first is not known: their modification times do not show it", 3, "dim")


def _fragment_lines(rows: tuple[FragmentRow, ...]) -> Iterator[Line]:
    for row in rows[:_FRAGMENTS_SHOWN]:
        kinds = f" (apparently {listed(row.differs_by, 3)})" if row.differs_by else ""
        it = "it" if len(row.factors) == 1 else "them"
        text = f"{_names(row.factors)}: {plural(row.values, 'value')}{kinds}; without {it} {row.folders_without} of {row.folders} folders would be enough"
        if row.ignored_by is not None:
            text += f"; vLLM {row.ignored_by} does not count {it}"
        yield Line(text, 3)
    yield from rest(len(rows) - _FRAGMENTS_SHOWN, "factor", "see scope.vllm_fragments", style="")


def _apart_lines(found: tuple[Apart, ...]) -> Iterator[Line]:
    for one in found[:_APART_SHOWN]:
        yield Line(_names(one.factors), 3, style="bold", right=plural(len(one.folders), "folder"))
        for rows in one.folders[:_FOLDERS_SHOWN]:
            sides = f"{listed(rows[0].ranks, 4)} in {rows[0].folder} beside {listed(rows[0].baseline_ranks, 4)} in {rows[0].baseline}: "
            differing = listed((row.text for row in rows), _FACTORS_NAMED, "; ")
            yield Line(short(sides + differing, _LONGEST_REASON), 5, rows=_ROWS)
        yield from rest(len(one.folders) - _FOLDERS_SHOWN, "folder", "see scope.vllm_ranks", 5, "")
        yield Line(_BY_DESIGN if one.is_of_a_rank else _NOT_BY_DESIGN, 5, "dim", rows=_ROWS)
    yield from rest(len(found) - _APART_SHOWN, "difference", "see scope.vllm_ranks", style="")


def _names(factors: tuple[str, ...]) -> str:
    return listed((short(name) for name in factors), _FACTORS_NAMED)


def _ranks(names: Sequence[str]) -> str:
    """Where ranks share a folder, what theirs in it are called."""
    several = dict.fromkeys(names)
    return f" ({listed(several, _RANKS_SHOWN)})" if len(several) > 1 else ""


def _left(found: VllmFolders) -> Iterator[Line]:
    alike = by_key((row.name_text, row.folder + _ranks(found.ranks[row.folder])) for row in found.unknown)
    for text, folders in islice(alike.items(), _UNKNOWN_SHOWN):
        yield Line(f"{listed(folders, _UNKNOWN_SHOWN)}: {text}", 0, "dim", rows=_ROWS)
    yield from rest(len(alike) - _UNKNOWN_SHOWN, "reason", "see scope.vllm_folders", 0)
    if found.packages:
        what = plural(found.packages, "whole compiled model")
        yield Line(f"{what} (torch_aot_compile): vLLM keeps nothing from which it made their names", 0, "dim")


def prospect_lines(found: VllmStart) -> Iterator[Line]:
    """Whether a start would use a folder, and what keeps it from each."""
    count = plural(len(found.prospects), "folder")
    if not found.prospects:
        yield Line(
            "not known whether a start of vLLM would use one: no folder here keeps its factors", style="bold"
        )
    elif found.may_hit:
        free = listed((one.folder for one in found.prospects if not one.differing), _PROSPECTS_SHOWN)
        text = f"nothing that is known keeps a start with this environment from {free}"
        yield Line(text, style="bold")
    else:
        yield Line(f"a start with this environment would use none of {count}", style="bold")
    for one in found.prospects[:_PROSPECTS_SHOWN]:
        yield Line()
        yield Line(one.folder, style="bold", right=f"{plural(one.equal, 'variable')} equal")
        for other in one.differing[:_PROSPECTS_SHOWN]:
            set_to = "is not set" if other.here is None else f"is {other.here}"
            kinds = (
                f", apparently {' and '.join(other.kinds)}: each start makes a folder of its own"
                if other.kinds
                else ""
            )
            text = f"{other.name} {set_to}, which is {other.reads_as} to vLLM; the folder has {other.folder}{kinds}"
            yield Line(text, 3, hang=3)
        yield from rest(len(one.differing) - _PROSPECTS_SHOWN, "variable", "--json lists all")
        if one.not_known:
            yield Line(f"not known of {listed(one.not_known, _PROSPECTS_SHOWN)}", 3, "dim", hang=3)
    yield from rest(len(found.prospects) - _PROSPECTS_SHOWN, "folder", "--json lists all", indent=0)
    if found.prospects:
        yield Line()
        yield Line(_BEFORE_A_START, style="dim")
    if found.without_factors:
        yield Line(
            f"not known of {plural(found.without_factors, 'further folder')}: their factors are not there",
            style="dim",
        )
