"""Holds what cachescope tells of one recorded session against what was done and what torch counted.

Nothing here asks cachescope what is right: which program made a lookup follows from torch's counters, what may have
changed from sessions.py.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from models.sessions import CHANGES, GRAPH, SESSIONS, WAYS_OF_USING

import cachescope

WAYS = {"trace": ("trace",), "text": ("text",), "all": ("trace", "text", "cache")}
GROUPS = {"fxgraph": ("inductor", "fxgraph_cache"), "aotautograd": ("aot_autograd", "autograd_cache")}
OUTCOMES = {"hit": "hit", "full_miss": "miss", "guard_miss": "miss", "bypass": "bypass"}
# A verdict that says nothing of a cause is not wrong, and not what is wanted.
SILENT = frozenset({"details_not_recorded", "no_detail_differs"})


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is told and does not fit what was done."""

    kind: str
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind} ({self.where}): {self.text}"


@dataclass(slots=True)
class Held:
    """One session, read one way."""

    session: str
    way: str
    lookups: int = 0
    told: Counter[str] = field(default_factory=Counter)
    """Of the lookups: hit, right, weaker, unexplained, and what they are at fault of."""
    replayed: Counter[str] = field(default_factory=Counter)
    """What the misses by one known field became without that field."""
    faults: list[Fault] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Program:
    """One program of one process: what torch counted while it ran."""

    step: str
    change: str | None
    program: str
    is_new: bool
    """Whether no process before ran it."""
    counted: dict[tuple[str, str], int]
    is_unsaved: bool
    """Whether torch missed more AOTAutograd keys than it saved, when the program first ran."""


def difference(row: dict[str, Any], cache: str, outcome: str) -> int:
    group, prefix = GROUPS[cache]
    counts = [row[when].get(group, {}).get(f"{prefix}_{outcome}", 0) for when in ("before", "after")]
    return int(counts[1] - counts[0])


def programs_of(folder: Path) -> dict[int, list[Program]]:
    """By process id, in the order in which they ran."""
    steps = json.loads((folder / "session.json").read_text())["steps"]
    unsaved: dict[str, bool] = {}
    found: dict[int, list[Program]] = {}
    for step in steps:
        report = json.loads((folder / "steps" / f"{step['step']}.json").read_text())
        known = set(unsaved)
        for row in report["programs"]:
            missed, saved = (difference(row, "aotautograd", outcome) for outcome in ("miss", "saved"))
            unsaved.setdefault(row["program"], missed > saved)
        found[report["pid"]] = [
            Program(
                step["step"],
                step["change"],
                row["program"],
                row["program"] not in known,
                {(c, o): difference(row, c, o) for c in GROUPS for o in ("hit", "miss", "bypass")},
                unsaved[row["program"]],
            )
            for row in report["programs"]
        ]
    return found


def assigned(lookups: pd.DataFrame, programs: list[Program]) -> dict[int, Program]:
    """Which program made which lookup: torch counts how many of each cache there were."""
    found: dict[int, Program] = {}
    for cache in GROUPS:
        mine = iter(lookups[lookups["cache"] == cache].sort_values("order")["lookup"])
        for program in programs:
            count = sum(n for (of_cache, _), n in program.counted.items() if of_cache == cache)
            found |= {int(lookup): program for _, lookup in zip(range(count), mine, strict=False)}
    return found


def counted(lookups: pd.DataFrame) -> Counter[tuple[str, str]]:
    return Counter((row.cache, OUTCOMES.get(row.outcome, row.outcome)) for row in lookups.itertuples())


def plain(name: str, allowed: frozenset[str]) -> str:
    """A field without its brackets, unless it is listed with them."""
    return name if name in allowed else name.partition("[")[0]


def allowed_fields(mine: Program, other: Program) -> tuple[frozenset[str], bool]:
    """What two programs can differ in, and whether they differ in all of it."""
    changes = [CHANGES[one] for one in (mine.change, other.change) if one and mine.change != other.change]
    fields = frozenset().union(*(change.fields for change in changes))
    if mine.program == other.program and mine.step != other.step:
        return fields, len(changes) == 1 and changes[0].is_exact
    # Two graphs of one program, or of one model that is used in two ways.
    return fields | GRAPH | WAYS_OF_USING, False


def judge_miss(row: Any, mine: Program, program_of: dict[int, Program]) -> tuple[str, str]:
    """What is to be said of one miss that is explained: a word, and what is wrong about it."""
    if row.outcome == "bypass":
        return ("right", "") if row.verdict == "bypassed" else ("wrong_verdict", row.verdict)
    if row.verdict in SILENT:
        return "unexplained", ""
    if row.verdict == "first_lookup":
        exact = mine.change is not None and CHANGES[mine.change].is_exact
        if mine.is_new:
            return "right", ""
        return ("wrong_verdict", "the graph was looked up before") if exact else ("weaker", "")
    if row.verdict == "guard_failed":
        return ("right", "") if row.outcome == "guard_miss" else ("wrong_verdict", row.verdict)
    if row.verdict == "entry_unavailable" and mine.is_unsaved and "had been stored" not in row.reason:
        # Nothing is deleted in any session, but not all that is compiled is stored.
        return "right", ""
    if row.verdict != "key_changed":
        return "wrong_verdict", f"{row.verdict}: {row.reason}"
    if pd.isna(row.baseline_lookup):
        return ("right", "") if mine.change else ("false_blame", f"{sorted(row.changed)} of {row.baseline}")
    return judge_change(row, mine, program_of[int(row.baseline_lookup)])


def are_alike(mine: Program, other: Program, changed: Collection[str]) -> bool:
    """Whether one may be compared with the other: the same model, or what all programs with a graph break share."""
    (model, _, way), (other_model, _, other_way) = mine.program.partition(":"), other.program.partition(":")
    shares_code = way == other_way == "graph_break" and "gm" not in changed
    return model == other_model or shares_code


def judge_change(row: Any, mine: Program, other: Program) -> tuple[str, str]:
    against = f"{sorted(row.changed)} against {row.baseline}, {other.program} in {other.step}"
    if not are_alike(mine, other, row.changed):
        return "other_program", against
    allowed, is_exact = allowed_fields(mine, other)
    changed = {plain(name, allowed) for name in row.changed}
    if not changed <= allowed:
        return "false_blame", f"{sorted(changed - allowed)} of {against}"
    if is_exact and changed != allowed:
        return "incomplete", against
    return "right", ""


def surfaces(scope: cachescope.Scope) -> Iterator[tuple[str, Any]]:
    """Everything that shows a scope, by name."""
    from cachescope.report.as_json import entries_object, explain_object

    yield "print", lambda: str(scope)
    yield "html", scope._repr_html_
    yield "explain --json", lambda: json.dumps(explain_object(scope), allow_nan=False)
    yield "entries --json", lambda: json.dumps(entries_object(scope), allow_nan=False)
    yield "hit_rates", lambda: scope.hit_rates(["run", "cache"])
    yield "what_if", lambda: str(scope.what_if())
    yield "sensitivity", scope.sensitivity
    yield "nearest", lambda: str(scope.with_baseline("nearest"))
    for lookup in scope.misses["lookup"]:
        yield f"explain {lookup}", lambda lookup=int(lookup): str(scope.explain(lookup))


def hold_surfaces(scope: cachescope.Scope, held: Held) -> None:
    for name, show in surfaces(scope):
        try:
            show()
        except Exception as error:  # a crash of one surface is a fault, and the others are still tried
            held.faults.append(Fault("crash", name, f"{type(error).__name__}: {error}"))


def hold_what_if(scope: cachescope.Scope, held: Held, program_of: dict[int, Program]) -> None:
    """Without the one field that was changed, what missed because of it would have hit.

    But for what is never stored: torch began the compile anew, and the next attempt looks up a key of its own.
    """
    lookups = scope.lookups
    compiled = {(row.run, row.compile_id) for row in lookups.itertuples()}
    for name in sorted({p.change for p in program_of.values() if p.change and CHANGES[p.change].is_exact}):
        fields = sorted(CHANGES[name].fields)
        try:
            after = scope.what_if(without=fields).frame
        except cachescope.NotFoundError:
            held.faults.append(Fault("what_if", name, f"no lookup has {fields}"))
            continue
        for row in after.itertuples():
            program = program_of.get(int(row.lookup))
            if program is None or program.change != name or row.outcome != "full_miss":
                continue
            known = isinstance(row.outcome_after, str)
            ran = lookups.loc[lookups["lookup"] == row.lookup].iloc[0]
            if row.outcome_after == "full_miss" and (ran["run"], f"{ran['compile_id']}_1") in compiled:
                held.replayed["never stored"] += 1
                continue
            held.replayed[row.outcome_after if known else "not known"] += 1
            if known and row.outcome_after != "hit":
                text = f"{row.cache}, {program.program}: {row.outcome_after} without {fields}"
                held.faults.append(Fault("what_if", f"lookup {row.lookup}", text))


def hold_guard_misses(scope: cachescope.Scope, folder: Path, held: Held) -> None:
    """torch counts the guard misses of AOTAutograd apart, from 2.13."""
    for path in sorted((folder / "steps").glob("*.json")):
        report = json.loads(path.read_text())
        expected = report["counters"].get("aot_autograd", {}).get("autograd_cache_guard_miss", 0)
        runs = scope.runs.loc[scope.runs["pid"] == report["pid"], "run"]
        mine = scope.lookups[scope.lookups["run"].isin(runs) & (scope.lookups["cache"] == "aotautograd")]
        found = int((mine["outcome"] == "guard_miss").sum())
        if found != expected:
            held.faults.append(Fault("guard_misses", path.stem, f"told {found}, torch {expected}"))


def hold(folder: Path, way: str) -> Held:
    """Read one session one way and hold all of it."""
    assert folder.name in {session.name for session in SESSIONS}
    held = Held(folder.name, way)
    scope = cachescope.read(*(folder / source for source in WAYS[way]))
    held.faults += [Fault("problem", p.source, f"{p.kind}: {p.message}") for p in scope.problems.itertuples()]
    programs = programs_of(folder)
    counting = {pid for pid, rows in programs.items() if any(sum(r.counted.values()) for r in rows)}
    wrong_runs = set(scope.runs["pid"]) ^ counting
    if wrong_runs:
        held.faults.append(Fault("runs", way, f"processes {sorted(wrong_runs)}"))
    told = scope.lookups.merge(scope.misses, on="lookup", how="left")
    program_of: dict[int, Program] = {}
    for run in scope.runs.itertuples():
        mine = told[told["run"] == run.run]
        expected = sum((Counter(p.counted) for p in programs.get(run.pid, [])), Counter())
        if counted(mine) != +expected:
            step = programs[run.pid][0].step if run.pid in programs else str(run.pid)
            held.faults.append(Fault("count", step, f"told {dict(counted(mine))}, torch {dict(+expected)}"))
        program_of |= assigned(mine, programs.get(run.pid, []))
    held.lookups = len(told)
    for row in told.itertuples():
        mine = program_of.get(int(row.lookup))
        if row.outcome == "hit" or mine is None:
            word, wrong = row.outcome if row.outcome == "hit" else "not_assigned", ""
        else:
            word, wrong = judge_miss(row, mine, program_of)
        held.told[word] += 1
        where = f"lookup {row.lookup}, {row.cache}, {f'{mine.program} in {mine.step}' if mine else '?'}"
        if wrong:
            held.faults.append(Fault(word, where, wrong))
        if row.cache == "aotautograd" and row.outcome != "hit" and not row.root:
            # It comes first in its compile, and here no entry is ever gone.
            held.faults.append(Fault("consequence", where, "an AOTAutograd miss follows from no other miss"))
    hold_guard_misses(scope, folder, held)
    if not scope.false_hits.empty:
        held.faults.append(Fault("false_hit", way, "; ".join(map(str, scope.false_hits.iloc[0].tolist()))))
    hold_surfaces(scope, held)
    if way == "all":
        hold_what_if(scope, held, program_of)
    return held
