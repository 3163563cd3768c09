"""Why vLLM compiled again, as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from cachescope.analysis.vllm.folders import fragments, ranks_apart
from cachescope.answers.recording import Recording
from cachescope.answers.vllm import Started, VllmStart, starts_of_vllm
from cachescope.frames.vllm import FolderRow, StartRow
from cachescope.grouping import by_key
from cachescope.report.layout import Line, firsts, parted, rest, titled
from cachescope.wording import duration, listed, plural, short

_OUTCOMES: Final = {
    "loaded": "loaded", "compiled": "compiled", "not_known": "loaded or compiled, which is not known",
}  # fmt: skip
_SHOWN: Final = 4
_FEW: Final = 3
_REASONS_SHOWN: Final = 10
_FRAGMENTS_SHOWN: Final = 8
_BEFORE_A_START: Final = "Not known before a start: the configuration (the model, its arguments, vLLM's version), the files that are traced, and torch with the machine. vLLM keeps only their hashes."
_LONGEST_REASON: Final = 400
_ROWS: Final = 5
_BY_DESIGN: Final = (
    "each rank has a value of its own, as ranks do; where vLLM counts it, each needs a folder of its own"
)
_NOT_BY_DESIGN: Final = "nothing that each rank has of its own. Either these ranks alone had it, or the others wrote no such folder here: they keep it on another machine, loaded a whole compiled model, or stopped before"


def vllm_lines(read: Recording) -> list[Line]:
    """The folders of vLLM: why there are several, and which factors make so many; then its starts. No line if none was read."""
    rows = read.folders_of_vllm
    sglang = [row for row in rows if row.name_is == "of_torch"]
    own = _folder_lines(read, [row for row in rows if row.name_is != "of_torch"])
    return list(parted((own, _sglang_lines(sglang), start_lines(starts_of_vllm(read)))))[1:]


def start_lines(starts: Sequence[Started]) -> list[Line]:
    """How each part of a model started, with its times, as vLLM's own log says."""
    lines = []
    for one in starts[:_SHOWN]:
        row = one.row
        what = " of ".join(filter(None, (row.prefix, row.folder))) or "a model"
        name = f"{what}, {'' if row.rank is None else f'rank {row.rank}, '}run {one.run}"
        lines.append(Line(short(f"{name}: {'; '.join(_how(row))}", _LONGEST_REASON), 3, hang=3))
        if one.unsaved_by is not None:
            why = f"no load of the whole model is logged; inferred: because run {one.unsaved_by} could not save it"
            lines.append(Line(why, 6, "dim"))
    lines += rest(len(starts) - _SHOWN, "start", "see scope.vllm_starts")
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


def _folder_lines(read: Recording, rows: Sequence[FolderRow]) -> Iterator[Line]:
    """The folders whose names follow from their factors, then those whose names cannot be explained."""
    if not rows:
        return
    named = _by_folder([row for row in rows if row.name_is == "recomputed"])
    others = [row for folder, row in _by_folder(rows).items() if folder not in named]
    unknown = [row for row in others if row.prefix is not None]
    # The folders with an earlier one, by what differs; the most frequent reason comes first.
    later = (row for row in rows if named.get(row.folder) is row and row.baseline is not None)
    again = sorted(by_key((row.changed, row) for row in later).items(), key=lambda one: -len(one[1]))
    title = f"vLLM: {plural(len(named), 'folder')} whose names follow from their factors"
    if unknown and not named:
        title = f"vLLM: {plural(len(unknown), 'folder')}"
    if again:
        title += f"; {sum(len(rows) for _, rows in again)} of them made although another was there before:"
    yield Line(title, style="bold")
    yield from parted(_again_lines(number, *one) for number, one in enumerate(again[:_REASONS_SHOWN], 1))
    yield from rest(len(again) - _REASONS_SHOWN, "reason", "see scope.vllm_folders", 0, "")
    many = titled("what makes the folders many:", _fragment_lines(read))
    apart = titled("ranks of one configuration in folders of their own:", _apart_lines(read))
    yield from parted((many, apart))
    yield from _left(rows, unknown)
    if packages := len(others) - len(unknown):
        what = plural(packages, "whole compiled model")
        yield Line(f"{what} (torch_aot_compile): vLLM keeps nothing from which it made their names", 0, "dim")


def _by_folder(rows: Sequence[FolderRow]) -> dict[str, FolderRow]:
    """The first row of each folder; the last folder first."""
    return {row.folder: row for row in reversed(rows)}


def _sglang_lines(rows: Sequence[FolderRow]) -> Iterator[Line]:
    folders = list(_by_folder(rows).values())
    if folders:
        yield Line(f"SGLang: {plural(len(folders), 'folder')}", style="bold")
    lines = (Line(f"{row.folder}: {row.name_text}", 3, "dim", rows=_ROWS) for row in folders)
    yield from firsts(lines, _FEW, "folder", "see scope.vllm_folders")


def _again_lines(number: int, changed: tuple[str, ...], folders: Sequence[FolderRow]) -> Iterator[Line]:
    first = folders[0]
    factors = _names(changed) or "no recorded factor differs"
    yield Line(f"{number}  {factors}", style="bold", right=plural(len(folders), "folder"))
    yield Line(f"{first.folder} beside {first.baseline or ''}:", 3)
    yield Line(short(first.reason, _LONGEST_REASON), 5, rows=_ROWS)
    if not all(row.is_order_known for row in folders):
        yield Line("which was made first is not known: their modification times do not show it", 3, "dim")


def _fragment_lines(read: Recording) -> Iterator[Line]:
    """Factors without which there would be fewer folders; the one that would leave the fewest comes first."""
    rows = [row for row in fragments(read.named_of_vllm) if row.folders_without < row.folders]
    for row in rows[:_FRAGMENTS_SHOWN]:
        kinds = f" (apparently {listed(row.differs_by, 3)})" if row.differs_by else ""
        it = "it" if len(row.factors) == 1 else "them"
        text = f"{_names(row.factors)}: {plural(row.values, 'value')}{kinds}; without {it} {row.folders_without} of {row.folders} folders would be enough"
        if row.ignored_by is not None:
            text += f"; vLLM {row.ignored_by} does not count {it}"
        yield Line(text, 3)
    yield from rest(len(rows) - _FRAGMENTS_SHOWN, "factor", "see scope.vllm_fragments", style="")


def _apart_lines(read: Recording) -> Iterator[Line]:
    """Ranks with folders of their own, by the factors that differ. Factors that are not specific to ranks come first."""
    rows = ranks_apart(read.tables.vllm_factors.rows, read.named_of_vllm)
    of_folder = by_key((row.folder, row) for row in rows).values()
    # Whether it differs only in what is specific to each rank, and in which factors.
    alike = by_key(
        ((all(row.is_of_a_rank for row in some), tuple(row.factor for row in some)), some)
        for some in of_folder
    )
    for (is_of_a_rank, factors), folders in sorted(alike.items(), key=lambda one: one[0][0])[:_SHOWN]:
        yield Line(_names(factors), 3, style="bold", right=plural(len(folders), "folder"))
        for some in folders[:_FEW]:
            first, there = some[0], [row.text for row in some]
            sides = f"{listed(first.ranks, 4)} in {first.folder} beside {listed(first.baseline_ranks, 4)} in {first.baseline}: "
            differing = listed(there, _FEW, "; ")
            yield Line(short(sides + differing, _LONGEST_REASON), 5, rows=_ROWS)
        yield from rest(len(folders) - _FEW, "folder", "see scope.vllm_ranks", 5, "")
        yield Line(_BY_DESIGN if is_of_a_rank else _NOT_BY_DESIGN, 5, "dim", rows=_ROWS)
    yield from rest(len(alike) - _SHOWN, "difference", "see scope.vllm_ranks", style="")


def _names(factors: tuple[str, ...]) -> str:
    return listed((short(name) for name in factors), _FEW)


def _ranks(names: Sequence[str]) -> str:
    """The names of the ranks' own folders within a shared one."""
    several = dict.fromkeys(names)
    return f" ({listed(several, _SHOWN)})" if len(several) > 1 else ""


def _left(rows: Sequence[FolderRow], unknown: Sequence[FolderRow]) -> Iterator[Line]:
    # The ranks' folders in each folder: ``rank_0_0``, in a fork also with a device.
    ranks = by_key((row.folder, row.path.rpartition(f"{row.folder}/")[2].partition("/")[0]) for row in rows)
    alike = by_key((row.name_text, row.folder + _ranks(ranks[row.folder])) for row in unknown)
    texts = (f"{listed(folders, _FEW)}: {text}" for text, folders in alike.items())
    lines = (Line(text, 0, "dim", rows=_ROWS) for text in texts)
    yield from firsts(lines, _FEW, "reason", "see scope.vllm_folders", 0)


def prospect_lines(found: VllmStart) -> Iterator[Line]:
    """Whether a start would use a folder, and what keeps it from using each."""
    said = f"a start with this environment would use none of {plural(len(found.prospects), 'folder')}"
    if not found.prospects:
        said = "not known whether a start of vLLM would use one: no folder here keeps its factors"
    elif found.may_hit:
        free = listed((one.folder for one in found.prospects if not one.differing), _SHOWN)
        said = f"nothing that is known keeps a start with this environment from {free}"
    yield Line(said, style="bold")
    for one in found.prospects[:_SHOWN]:
        yield from (Line(), Line(one.folder, style="bold", right=f"{plural(one.equal, 'variable')} equal"))
        for other in one.differing[:_SHOWN]:
            set_to = "is not set" if other.here is None else f"is {other.here}"
            text = f"{other.name} {set_to}, which is {other.reads_as} to vLLM; the folder has {other.folder}"
            if other.kinds:
                text += f", apparently {' and '.join(other.kinds)}: each start makes a folder of its own"
            yield Line(text, 3, hang=3)
        yield from rest(len(one.differing) - _SHOWN, "variable", "--json lists all")
        if one.not_known:
            yield Line(f"not known of {listed(one.not_known, _SHOWN)}", 3, "dim", hang=3)
    yield from rest(len(found.prospects) - _SHOWN, "folder", "--json lists all", indent=0)
    if found.prospects:
        yield from (Line(), Line(_BEFORE_A_START, style="dim"))
    if found.without_factors:
        others = plural(found.without_factors, "further folder")
        yield Line(f"not known of {others}: no factors are there", style="dim")
