"""What is true of each recording: what torch counted in each process, and what was done before it. Nothing else reads either.

It comes from torch's counters and from what was written down as it was done (`scenarios.py`, `wild/unsaved.py`, `wild/likeness.py`), never
from an answer of cachescope. `tests/data/README.md` describes the form; nothing but the standard library is needed.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from scenarios import COLD, FUSION, HIT, RELEASES, VERSIONS, Run, changed
from wild import likeness, unsaved

Counts = Counter[str]
"""How many lookups of a cache ended in one way, as ``fxgraph miss``: hit, miss or bypass."""
Process = dict[str, Any]
# What torch's counters are called.
COUNTERS = {"fxgraph": ("inductor", "fxgraph_cache"), "aotautograd": ("aot_autograd", "autograd_cache")}
OUTCOMES = {"full_miss": "miss", "guard_miss": "miss"}
# By the name of the step: two services in one stream, a restarted container.
SERVICES: dict[str, Run] = {
    "serve": COLD * 2, "score": COLD * 2, "serve_fusion_off": changed(FUSION) * 2, "score_again": HIT * 2,
    "serve_back": HIT * 2, "score_once_more": HIT * 2,
}  # fmt: skip
# By the name of a case that was made by hand (`data/field_cases`): its lookups.
MADE: dict[str, list[str]] = {
    "vllm-0.9-two-starts.log": ["vllm miss", "vllm hit"],
    "vllm-0.7-head.log": ["vllm hit"],
    "vllm-windows.log": ["vllm miss"],
    "vllm-tagged.log": ["vllm hit", "vllm miss"],
    "vllm-unsaved.log": ["vllm miss", "vllm hit"],
    "esc-lost.log": ["vllm hit", "vllm miss"],
    "framed.log": ["fxgraph hit"] * 5,
    "damaged-at-default-level.log": [],
    "unpicklable-at-default-level.log": [],
    "glued-progress.log": ["fxgraph hit", "fxgraph miss"],
}
_OF_STEPS = {
    "two_services": SERVICES,
    "two_services_pods": SERVICES,
    "restarted_container": {"cold": COLD, "restarted": changed(FUSION), "restarted_again": HIT},
}


# torch/_inductor/compile_fx.py and torch/_functorch/_aot_autograd/autograd_cache.py.
_ARTIFACT = re.compile(
    r'"artifact": \{"name": "(fx_graph|aotautograd)_cache_(hit|miss|bypass)".*\n((?:\t.*\n?)+)', re.MULTILINE
)
CACHES = ("fxgraph", "aotautograd", "vllm")
_CACHES = {"fx_graph": "fxgraph", "aotautograd": "aotautograd"}


def artifacts(trace: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The lookups that torch itself wrote into a trace: cache, outcome, and what it says of it."""
    for cache, outcome, payload in _ARTIFACT.findall(trace):
        yield _CACHES[cache], outcome, json.loads(payload)


def counted(counters: Mapping[str, Mapping[str, int]]) -> Counts:
    """What torch's counters of one process say of its lookups."""
    return +Counter(
        {
            f"{cache} {outcome}": counters.get(group, {}).get(f"{name}_{outcome}", 0)
            for cache, (group, name) in COUNTERS.items()
            for outcome in ("hit", "miss", "bypass")
        }
    )


def processes(folder: Path, version: str, name: str) -> list[Process]:
    """The processes of an unpacked recording, in the order in which they were started."""
    steps = json.loads((folder / "scenario.json").read_text(encoding="utf-8"))["steps"]
    lines = _lines(version, name, [step["step"] for step in steps])
    return [_process(folder, step, mine, _of_ranks(name)) for step, mine in zip(steps, lines, strict=True)]


def made(name: str) -> list[Process]:
    """All that a log of `MADE` tells of, as one process: which there are, no file beside it says."""
    ended = [what.split() for what in MADE[name]]
    lookups = [{"cache": cache, "outcome": outcome, "reasons": []} for cache, outcome in ended]
    return [{"step": name, "files": [name], "pid": None, "counted": Counter(MADE[name]), "lookups": lookups}]


def _process(folder: Path, step: Mapping[str, Any], lines: Run | None, of_ranks: list[Any]) -> Process:
    report = folder / "steps" / f"{step['step']}.json"
    # A process that was ended by a signal may have left no report.
    told = json.loads(report.read_text(encoding="utf-8")) if report.exists() else None
    counts = counted(told["counters"]) if told else Counter()
    if lines is not None:
        lookups = [_lookup(line) for line in lines]
    else:
        reasons = {"miss": of_ranks, "bypass": [], "hit": []}
        ended = [what.split() for what in counts.elements()]
        lookups = [{"cache": cache, "outcome": way, "reasons": reasons[way]} for cache, way in ended]
    _add_keys(folder, step, lookups)
    return {
        "step": step["step"],
        "command": step.get("command", ()),
        "differs": step["differs"],
        "files": [*step.get("trace", ()), *([Path(step["log"]).name] if step.get("log") else [])],
        "pid": told["pid"] if told else step.get("pid"),
        "counted": None if told is None else counts,
        "lookups": lookups,
    }


def _add_keys(folder: Path, step: Mapping[str, Any], lookups: Sequence[dict[str, Any]]) -> None:
    """The keys that its trace names, unless it lacks some of the lookups."""
    traces = [folder / "trace" / name for name in step.get("trace", ())]
    told = [one for path in traces for one in artifacts(path.read_text(encoding="utf-8", errors="replace"))]
    for kind in {(one["cache"], one["outcome"]) for one in lookups}:
        mine = [one for one in lookups if (one["cache"], one["outcome"]) == kind]
        keys = [payload.get("key") for cache, outcome, payload in told if (cache, outcome) == kind]
        for one, key in zip(mine, keys if len(keys) == len(mine) else (), strict=False):
            one["key"] = key


def _lines(version: str, name: str, steps: Sequence[str]) -> Sequence[Run | None]:
    """What was done to the lookups of each step, in the notation of `scenarios.py`; None where nothing is written down."""
    runs: Sequence[Run] | None = (
        (VERSIONS | RELEASES).get(version, {}).get(name)
        or likeness.EXPECTED.get(name)
        or unsaved.expectation(version, name)
    )
    if name in _OF_STEPS:
        return [_OF_STEPS[name][step] for step in steps]
    if not runs:
        return [None] * len(steps)
    # What compiles nothing comes last.
    return [*runs, *[[] for _ in steps[len(runs) :]]]


def _of_ranks(name: str) -> list[Any]:
    """What may be said of a miss of ranks that start together: which of them comes first is chance."""
    return [[reason, sorted(fields)] for reason, fields in sorted(likeness.RANKS.get(name, ()))]


def _lookup(line: str) -> dict[str, Any]:
    what, _, kinds = line.partition(":")
    letter, outcome, *rest = what.split()
    reason, *fields = rest or [""]
    reasons = [[reason, sorted(field for field in fields if field != "<")]] if reason else []
    return {
        "cache": "aotautograd" if letter == "A" else "fxgraph",
        "outcome": OUTCOMES.get(outcome, outcome),
        "reasons": reasons,
        **({"kinds": kinds.strip().split("|")} if kinds else {}),
    }


def of_each(
    told: Iterable[tuple[Iterable[str], int | None]], true: Sequence[Process]
) -> Iterator[Process | None]:
    """Of each process that is told of by the names of its files and its pid the true one, where these say which it is."""
    pids = Counter(one["pid"] for one in true)
    files = Counter(name for one in true for name in one["files"])
    of_pid = {one["pid"]: one for one in true if pids[one["pid"]] == 1}
    of_file = {name: one for one in true for name in one["files"] if files[name] == 1}
    for names, pid in told:
        named = next((of_file[name] for name in names if name in of_file), None)
        yield named or of_pid.get(pid)
