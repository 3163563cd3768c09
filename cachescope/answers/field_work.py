"""What to do about each changed field of a cause: what sets it, the line that brings its earlier value back, and whether a key needs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cachescope.analysis.fixes import ways_to_set
from cachescope.analysis.verdicts.advice import AdviceFacts, field_sentences
from cachescope.analysis.vllm.advice import factor_advice
from cachescope.analysis.what_if.evidence import left_out_text
from cachescope.answers.causes import Struck
from cachescope.answers.explanation import Explanation
from cachescope.answers.recording import Recording
from cachescope.terms import FXGRAPH


@dataclass(frozen=True, slots=True)
class FieldWork:
    """One changed field."""

    field: str  # its path
    change: str  # before and after
    # What sets it and how to keep it equal, a sentence each; empty where nothing is certain.
    advice: tuple[str, ...]
    # The lines of a program or a shell that give it the value of the baseline; empty where none is known, or
    # where the value is of one process.
    lines: tuple[str, ...]
    where: str  # where those lines belong
    # Whether a key may do without it; empty where it is of vLLM's key, which torch does not make.
    left_out: str


def field_works(read: Recording, struck: Struck, most: int) -> tuple[list[FieldWork], list[str]]:
    """The first so many changed fields of a cause, and the sentences that are on several of them."""
    if struck.is_of_vllm:
        shown = struck.changes[:most]
        return [
            FieldWork(one.field, one.summary, (factor_advice(one.field),), (), "", "") for one in shown
        ], []
    facts = AdviceFacts(
        "key_changed",
        struck.row.kind,
        changes=struck.changes,
        were_graphs_found=_were_graphs_found(read, struck.first.lookup),
    )
    sentences = field_sentences(facts)
    shown = struck.changes[:most]
    settings = _settings(read, struck, [change.field for change in shown if change.process_values is None])
    works = []
    for change in shown:
        lines, where = settings.get(change.field, ((), ""))
        advice = tuple(sentence for field, sentence in sentences if field == change.field)
        works.append(
            FieldWork(change.field, change.summary, advice, lines, where, left_out_text(change.field))
        )
    return works, [sentence for field, sentence in sentences if not field]


def advice_by_field(read: Recording, explained: Explanation) -> list[tuple[tuple[str, ...], str]]:
    """The advice on a changed key taken apart: each sentence with its fields, none where it is on all; empty where it cannot be."""
    miss = read.facts.misses.get(explained.lookup)
    if miss is None or not miss.changed:
        return []
    facts = AdviceFacts(
        "key_changed",
        read.facts.causes[miss.cause].kind,
        changes=explained.changes,
        were_graphs_found=_were_graphs_found(read, explained.lookup),
    )
    fields: dict[str, list[str]] = {}
    for field, sentence in field_sentences(facts):
        fields.setdefault(sentence, []).append(field)
    if " ".join(fields) != explained.advice:
        # That of the cause is on other fields as well, or is shortened.
        return []
    return [(tuple(filter(None, of)), sentence) for sentence, of in fields.items()]


def _settings(
    read: Recording, struck: Struck, fields: Sequence[str]
) -> dict[str, tuple[tuple[str, ...], str]]:
    """The smallest change that gives each field the value of the baseline, and where it belongs."""
    found = {}
    for before, after in read.changed_details(struck.first.lookup):
        if before is None or after is None or before.field not in fields:
            continue
        # Which variables were set is in no log.
        for way in ways_to_set(before, after, {})[:1]:
            found[before.field] = tuple(setting.code for setting in way), way[0].where
    return found


def _were_graphs_found(read: Recording, lookup: int) -> bool:
    """Whether the FX lookups below an AOTAutograd lookup hit."""
    outcomes = [below.outcome for below in read.facts.below(lookup) if below.cache == FXGRAPH]
    return len(outcomes) > 0 and all(outcome == "hit" for outcome in outcomes)
