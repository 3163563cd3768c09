"""What to do about a cause, where the kind of its verdict alone does not say it: only what is true of torch, in its own names.

tests/wild/test_advice.py follows every sentence, here and in cachescope/verdict_kinds.py, that gives an instruction with a real torch, and sees the hit (of values of a
process: tests/capture/test_fix.py); a sentence on what may help or explain contains "may".
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cachescope.analysis.differences import FieldChange
from cachescope.analysis.fields import field_advice, is_input, left_out_advice
from cachescope.analysis.verdicts.bypass_advice import bypass_advice
from cachescope.analysis.verdicts.graph_advice import NAMES_ONLY, graph_advice
from cachescope.analysis.verdicts.process_advice import process_advice
from cachescope.analysis.verdicts.set_order import SET_ORDER, is_reordered_set
from cachescope.analysis.verdicts.tensor_advice import are_inputs_moved, dynamism_advice, tensor_advice
from cachescope.verdict_kinds import Verdict, kind_of

_MOST_SENTENCES: Final = 4
_OPTION: Final = re.compile(r"inductor_config(?:_comms)?\[.*\]", re.DOTALL)
_MOST_OPTIONS: Final = 3
_GRAPHS_FOUND: Final = "The FX graphs below were found, so little was compiled again."
_OF_AUTOGRAD_ALONE: Final = "What changed in the graph is what AOTAutograd alone hashes, such as names of arguments, attributes and locals."
# A directory that Python made for temporary use: torch's fresh_cache() calls `tempfile.mkdtemp()`.
_TEMPORARY: Final = re.compile(r"tmp[a-z0-9_]{8}")
_DEFAULT: Final = re.compile(r"torchinductor_.*")


@dataclass(frozen=True, slots=True)
class AdviceFacts:
    """The facts that advice depends on."""

    verdict: Verdict  # of the root miss
    kind: str = ""
    reason: str = ""
    cache: str = ""  # the cache that was asked
    # Why torch would not look it up or, if the entry was never stored, why it would not store it.
    bypass_reason: str | None = None
    bypass_exception: str | None = None  # the class of the exception by which it was bypassed
    changes: tuple[FieldChange, ...] = ()  # what changed in the key
    were_graphs_found: bool = False  # whether the FX lookups of the same compile hit
    are_lines_missing: bool = False  # whether hash details were recorded, but some of their lines are lost
    cache_dir: str | None = None  # the directory that was searched


def cause_advice(facts: AdviceFacts) -> str | None:
    """Advice for a cause, from what is known of its root miss; None if nothing is certain."""
    kind, found = kind_of(facts), None
    match kind.advice_from:
        case "changes":
            found = _key_advice(facts)
        case "bypass":
            found = bypass_advice(facts.bypass_reason, facts.cache, facts.bypass_exception)
        case "save":
            found = _never_stored_advice(facts)
        case "directory":
            found = _fresh_advice(facts.cache_dir) or _default_advice(facts.cache_dir)
        case "fresh directory":
            found = _fresh_advice(facts.cache_dir)
        case "lines" if facts.are_lines_missing:
            found = "Lines of the log are lost. A trace may have them: TORCH_TRACE=DIR."
    return found or kind.advice


def _key_advice(facts: AdviceFacts) -> str | None:
    if kind_of(facts).is_upgrade:
        return field_advice("torch_version")
    found = tuple(dict.fromkeys(sentence for _, sentence in _change_sentences(facts, _MOST_OPTIONS)))
    if len(found) > _MOST_SENTENCES:
        rest = len(found) - _MOST_SENTENCES
        found = (
            *found[:_MOST_SENTENCES],
            f"Of the other fields there {'is' if rest == 1 else 'are'} {rest} more to say.",
        )
    return " ".join(found) or None


def field_sentences(facts: AdviceFacts) -> list[tuple[str, str]]:
    """Advice for a changed key, sentence by sentence, each with the field that it is on; empty where it is on several."""
    if kind_of(facts).is_upgrade:
        return []
    return list(dict.fromkeys(_change_sentences(facts, len(facts.changes))))


def _change_sentences(facts: AdviceFacts, most_options: int) -> Iterator[tuple[str, str]]:
    changes = facts.changes
    if facts.were_graphs_found:
        yield "", _GRAPHS_FOUND
    for change in changes:
        yield from ((change.field, sentence) for sentence in process_advice(change))
    dynamism = dynamism_advice(changes)
    if dynamism is not None:
        yield "", dynamism
        changes = tuple(change for change in changes if not _is_of_sizes(change))
    options = [change for change in changes if _OPTION.fullmatch(change.field)]
    if len(options) > most_options:
        yield (
            "",
            f"{len(options)} options of torch._inductor.config differ; keep them equal in every process.",
        )
        changes = tuple(change for change in changes if change not in options)
    inputs = [change for change in changes if is_input(change.field)]
    are_moved = are_inputs_moved(changes)
    if are_moved:
        changes = tuple(change for change in changes if change not in inputs)
    # A graph compiled for other inputs has other code: the code is not what was changed.
    is_by_inputs = bool(inputs) and not are_moved
    for change in changes:
        for sentence in _own_sentences(change, facts.were_graphs_found, is_by_inputs):
            yield change.field, sentence


def _own_sentences(change: FieldChange, were_graphs_found: bool, is_by_inputs: bool) -> Iterator[str]:
    if is_input(change.field):
        yield from tensor_advice(change)
    elif change.field == "gm":
        text = graph_advice(change)
        if were_graphs_found:
            yield text if text == NAMES_ONLY else _OF_AUTOGRAD_ALONE
        elif not is_by_inputs:
            yield text
    elif is_reordered_set(change):
        yield SET_ORDER
    elif (advice := _of_field(change)) is not None:
        yield advice


def _of_field(change: FieldChange) -> str | None:
    is_left_out = change.kind in ("new", "gone")
    return (left_out_advice(change.field) if is_left_out else None) or field_advice(change.field)


def _is_of_sizes(change: FieldChange) -> bool:
    """Whether a field follows from which sizes are symbolic."""
    return is_input(change.field) or change.field in ("gm", "aot_config")


def _never_stored_advice(facts: AdviceFacts) -> str | None:
    if facts.bypass_reason is not None:
        return bypass_advice(facts.bypass_reason, facts.cache)
    if "backward" in facts.reason:
        return (
            "Call backward() once: the entry of a training graph is stored together with that of its backward "
            "graph. Without need of gradients call it under torch.no_grad()."
        )
    return None


def _fresh_advice(cache_dir: str | None) -> str | None:
    if _TEMPORARY.fullmatch(_name(cache_dir)):
        return (
            "The directory may be one of torch._inductor.utils.fresh_cache(), which begins empty and is deleted at its "
            "end, whatever TORCHINDUCTOR_CACHE_DIR says: compile outside of it."
        )
    return None


def _default_advice(cache_dir: str | None) -> str | None:
    if _DEFAULT.fullmatch(_name(cache_dir)):
        return (
            "The default directory lies where temporary files do, which may be wiped or private to a job; "
            "TORCHINDUCTOR_CACHE_DIR names another place."
        )
    return None


def _name(cache_dir: str | None) -> str:
    return os.path.basename((cache_dir or "").rstrip("/\\"))
