"""Whether one lookup would find an entry: the steps that torch takes, on what is known instead of on a directory.

Mirrors `GuardedCache.find_guarded_entry` and `FxGraphCacheLoadable.load` (torch/_inductor/codecache.py and
torch/_functorch/_aot_autograd/aot_autograd_result.py, 2.10 to 2.15).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from cachescope.analysis.preflight.candidates import Candidate
from cachescope.readers.logs.preflight_notes import LookupNote
from cachescope.terms import FXGRAPH
from cachescope.wording import plural

Outcome = Literal["hit", "full_miss", "guard_miss", "bypass", "disabled", "unknown"]
GRAPH_GONE: Final = "hit"
"""torch's finer word for an AOTAutograd miss whose entry was found, and whose graph was not."""

Under = Callable[[str, str], Iterable[Candidate]]
"""The candidates under a key of a cache."""


@dataclass(frozen=True, slots=True)
class Found:
    """How a lookup would end, and what that rests on.

    Attributes
    ----------
    outcome : str
    why : str
    status : str or None
        torch's finer word.
    candidate : Candidate or None
        What would be loaded; of an AOTAutograd entry also one whose graph is gone.
    guards : str or None
        The guards that hold, or the last ones that do not.
    graphs : tuple of (key, bool)
        The FX graphs that would be looked up through the AOTAutograd entry, and whether each would be found.
    """

    outcome: Outcome
    why: str
    status: str | None = None
    candidate: Candidate | None = None
    guards: str | None = None
    graphs: tuple[tuple[str, bool], ...] = ()


def found_under(
    candidates: Iterable[Candidate], note: LookupNote, where: str, graphs_under: Under | None = None
) -> Found:
    """How a lookup under a key would end.

    Parameters
    ----------
    candidates : iterable of Candidate
        What lies under the key.
    note : LookupNote
    where : str
        Where that is, for people: "in /tmp/cache".
    graphs_under : callable, optional
        The FX candidates under a key; of an AOTAutograd lookup, whose entry is of no use without its graphs.
    """
    refused: list[Candidate] = []
    open_: list[str] = []
    failed: list[Candidate] = []
    fitting: list[Found] = []
    for candidate in candidates:
        fits = candidate.fits(note.sizes, skips_guards=note.skips_guards)
        if candidate.is_there == "no":
            refused.append(candidate)
        elif fits == "no":
            failed.append(candidate)
        elif candidate.is_there == "maybe":
            open_.append(f"{candidate.what}: {candidate.why_not}")
        elif fits == "maybe":
            guards = candidate.guards or "they are not recorded"
            open_.append(f"{candidate.what}: whether its guards hold for these sizes is not known: {guards}")
        else:
            hit = _hit(candidate, note)
            fitting.append(hit if graphs_under is None else _with_graphs(hit, candidate, graphs_under))
    if fitting:
        if len({found.outcome for found in fitting}) == 1:
            return fitting[0]
        return Found("unknown", "several entries fit, and which of them torch takes is not known")
    if open_:
        return Found("unknown", open_[0])
    if failed:
        last = failed[-1]
        why = (
            f"{plural(len(failed), 'entry', 'entries')} under this key {where}, and no guards hold for "
            f"{_sizes_text(note)}: {last.guards}"
        )
        return Found("guard_miss", why, "guard_miss", guards=last.guards)
    if refused:
        return Found(
            "full_miss", f"{refused[0].what} is under this key, but {refused[0].why_not}", "full_miss"
        )
    return Found("full_miss", f"no entry under this key {where}", "full_miss")


def _with_graphs(hit: Found, candidate: Candidate, under: Under) -> Found:
    """The same once the graphs are looked up that an AOTAutograd entry points to."""
    graphs: list[tuple[str, bool]] = []
    for key, guards in candidate.graphs:
        # Its guards are a second key: they are compared, not evaluated.
        fitting = [one for one in under(FXGRAPH, key) if guards is None or (one.guards or "") == guards]
        if any(one.is_there == "yes" for one in fitting):
            graphs.append((key, True))
            continue
        if any(one.is_there == "maybe" for one in fitting):
            return Found(
                "unknown", f"{candidate.what} points to the FX entry {key[:8]}…, which may not be there"
            )
        gone = "cannot be loaded" if fitting else "is not there"
        why = f"{candidate.what} fits, but the FX entry {key[:8]}… that it points to {gone}"
        return Found("full_miss", why, GRAPH_GONE, candidate, hit.guards, (*graphs, (key, False)))
    return replace(hit, graphs=tuple(graphs))


def _hit(candidate: Candidate, note: LookupNote) -> Found:
    why = candidate.what
    if candidate.guards:
        why += f"; its guards hold for {_sizes_text(note)}: {candidate.guards}"
    return Found("hit", why, "hit", candidate, candidate.guards)


def _sizes_text(note: LookupNote) -> str:
    sizes = (f"t{number} = {'?' if size is None else size}" for number, size in enumerate(note.sizes))
    return ", ".join(sizes) or "no sizes"
