"""Where the difference between processes lies, and who waited for whom: in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from cachescope.answers.run_time import RunTime
from cachescope.answers.time_contrast import Contrast, Member, RanksWaited
from cachescope.wording import duration, harmless, listed

_PHASES: Final = 3
_RANKS: Final = 4
_LEAST_SHARE: Final = 0.05


def contrast_text(contrast: Contrast) -> str:
    """``run 0 took 9.3 s longer than run 1: 8.7 s in C++ compiler, 1.4 s in code generation; 1.3 s less in loading``."""
    slower, other = _member(contrast.slower), _member(contrast.other)
    if contrast.of > 2:
        slower, other = f"the slowest of {contrast.of}, {slower},", f"the quickest, {other}"
    return f"{slower} took {duration(contrast.longer_ns)} longer than {other}{_where(contrast.phases)}"


def said_texts(contrast: Contrast | None, ranks: RanksWaited | None, runs: Sequence[RunTime]) -> list[str]:
    """Both as sentences of a page."""
    texts = [contrast_text(contrast)] if contrast is not None else []
    texts += rank_texts(ranks, runs) if ranks is not None else []
    return [f"{text[:1].upper()}{text[1:]}." for text in texts]


def path_texts(members: Sequence[Member]) -> Iterator[str]:
    """Which process each path is, or which one stands for it."""
    for member in members:
        if member.path is not None:
            what = "is" if member.of == 1 else f"stands for its slowest process of {member.of},"
            yield f"{harmless(member.path)} {what} {member.time.name}"


def rank_texts(ranks: RanksWaited, runs: Sequence[RunTime]) -> Iterator[str]:
    """How long ranks waited for each other; or that no event tells."""
    waited = sorted(
        (one for one in runs if one.run in ranks.waited_ns), key=lambda one: -ranks.waited_ns[one.run]
    )
    if not waited:
        yield "no event tells whether a rank waited for another: torch has one only where ranks agree on sizes or guards"
        return
    times = [f"{one.name} {duration(ranks.waited_ns[one.run])}" for one in waited]
    yield f"waited for other ranks: {listed(times, _RANKS)}"
    if ranks.last is not None:
        yield f"{ranks.last.name} waited least: the others waited for it"


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
