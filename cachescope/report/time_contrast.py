"""Where the difference between processes lies, and who waited for whom: in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from cachescope.answers.rank_collectives import CollectivesApart
from cachescope.answers.run_time import RunTime
from cachescope.answers.time_contrast import Contrast, Member, RanksWaited
from cachescope.answers.time_spent import TimeSpent
from cachescope.report.ranks import rank_names
from cachescope.wording import and_more, duration, harmless, listed

_PHASES: Final = 3
_RANKS: Final = 4
_LEAST_SHARE: Final = 0.05
_APART: Final = 3
_COLLECTIVES: Final = 6


def contrast_text(contrast: Contrast) -> str:
    """``run 0 took 9.3 s longer than run 1: 8.7 s in C++ compiler, 1.4 s in code generation; 1.3 s less in loading``."""
    slower, other = _member(contrast.slower), _member(contrast.other)
    if contrast.of > 2:
        slower, other = f"the slowest of {contrast.of:,}, {slower},", f"the quickest, {other}"
    if duration(contrast.longer_ns) == duration(0):
        return f"{slower} took as long as {other}, to the millisecond"
    return f"{slower} took {duration(contrast.longer_ns)} longer than {other}{_where(contrast.phases)}"


def said_texts(spent: TimeSpent) -> list[str]:
    """All of it as sentences of a page."""
    texts = [contrast_text(spent.contrast)] if spent.contrast is not None else []
    texts += rank_texts(spent.ranks, spent.runs) if spent.ranks is not None else []
    texts += apart_texts(spent.apart)
    texts += [preflight_text(one) for one in spent.runs if one.is_preflight]
    return [f"{text[:1].upper()}{text[1:]}." for text in texts]


def preflight_text(one: RunTime) -> str:
    """What the times of a pre-flight are."""
    return (
        f"{one.name}: its own times; it compiled nothing, so they do not show what hits would save a real run"
    )


def path_texts(members: Sequence[Member]) -> Iterator[str]:
    """Which process each path is, or which one represents it."""
    for member in members:
        if member.path is not None:
            what = "is" if member.of == 1 else f"is represented by its slowest process of {member.of},"
            yield f"{harmless(member.path)} {what} {member.time.name}"


def rank_texts(ranks: RanksWaited, runs: Sequence[RunTime]) -> Iterator[str]:
    """How long ranks waited for each other, or that no event shows it."""
    waited = sorted(
        (one for one in runs if one.run in ranks.waited_ns), key=lambda one: -ranks.waited_ns[one.run]
    )
    if not waited:
        yield "no event shows whether a rank waited for another: torch has one only where ranks agree on sizes or guards"
        return
    times = [f"{one.name} {duration(ranks.waited_ns[one.run])}" for one in waited]
    yield f"waited for other ranks: {listed(times, _RANKS)}"
    if ranks.last is not None:
        yield f"{ranks.last.name} waited least: the others waited for it"


def apart_texts(apart: Sequence[CollectivesApart]) -> Iterator[str]:
    """Which functions ranks compiled with different collectives."""
    for one in apart[:_APART]:
        sides = [f"{_collectives(names)} in {_ranks(ranks)}" for names, ranks in one.of_ranks]
        what = f"{one.place}, {'backward of ' if one.is_backward else ''}compile {one.compile_id}"
        yield harmless(f"{what}, was compiled with different collectives: {listed(sides, _RANKS, '; ')}")
    if len(apart) > _APART:
        yield and_more(len(apart) - _APART, "compile with different collectives", "--json lists all")
    if apart:
        yield "ranks may differ there for a reason, as the stages of a pipeline do"


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {rank_names(ranks)}"


def _collectives(names: Sequence[str]) -> str:
    """``all_reduce ×2, all_gather_into_tensor``, in their order."""
    if not names:
        return "none"
    runs = [(name, len(list(same))) for name, same in groupby(map(_short, names))]
    return listed([name if count == 1 else f"{name} ×{count}" for name, count in runs], _COLLECTIVES)


def _short(name: str) -> str:
    """``all_reduce`` of ``torch.ops._c10d_functional.all_reduce_.default``."""
    return name.removesuffix(".default").rpartition(".")[2].rstrip("_")


def signed(ns: int) -> str:
    """A difference of times with its sign.

    Examples
    --------
    >>> signed(1_300_000_000), signed(-8_000_000), signed(-3)
    ('+1.3 s', '-8 ms', '0 ms')
    """
    text = duration(abs(ns))
    return text if text == duration(0) else f"{'+' if ns > 0 else '-'}{text}"


def _member(member: Member) -> str:
    return member.time.name if member.path is None else harmless(member.path)


def _where(phases: Mapping[str, int]) -> str:
    """The phases that make up most of a difference, and those that took less."""
    least = _LEAST_SHARE * max(map(abs, phases.values()), default=0)
    more = [f"{duration(ns)} in {harmless(name)}" for name, ns in phases.items() if ns > least]
    less = [
        f"{duration(-ns)} less in {harmless(name)}"
        for name, ns in reversed(list(phases.items()))
        if -ns > least
    ]
    parts = [listed(more, _PHASES)] if more else []
    parts += [listed(less, _PHASES)] if less else []
    return f": {'; '.join(parts)}" if parts else ""
