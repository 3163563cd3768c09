"""Scores what tools say of the recordings beside what is true of them: ``python tests/score.py ANSWERS.json [MORE.json]``.

``--answers-of cachescope`` and ``--answers-of tlparse`` print what these say of the traces, by the program at ``--program``; ``--truth`` prints what is true.
`tests/data/README.md` describes both forms. Nothing but the standard library is needed.
"""

import argparse
import json
import lzma
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

from tests.truth import CACHES, MADE, Counts, Process, made, of_each, processes  # noqa: E402 - found by the line above

RECORDINGS = Path(__file__).parent / "data" / "recordings"
RELEASES = Path(__file__).parent / "data" / "releases"
Lookup = dict[str, Any]
Answer = dict[str, Any]
"""What a tool says of a recording: its processes, and the entries of its directories."""


class Score(Counter[str]):
    """Lookups that torch counted; found, with the right and with a wrong outcome; reasons that are true, named right, named false."""

    def __init__(self, *parts: "Score") -> None:
        super().__init__()
        self.wrong: list[str] = []
        for part in parts:
            self.update(part)
            self.wrong += part.wrong


def scored(answer: Answer, true: Sequence[Process]) -> Score:
    """What a tool says of one recording, or of its logs alone."""
    told, score = answer["processes"], Score()
    score["counted"] = sum(one["counted"].total() for one in true if one["counted"] is not None)
    matched = list(of_each(((one["files"], one["pid"]) for one in told), true))
    if None in matched or len({one["step"] for one in matched if one}) < len(matched):
        # Processes that nothing tells apart are taken together.
        pairs = [(_together(told), _together(true))]
    else:
        pairs = [(one, other) for one, other in zip(told, matched, strict=True) if other]
        pairs += [({"lookups": []}, other) for other in true if other not in matched]
    for one, other in pairs:
        if other["counted"] is not None:
            _score_outcomes(one["lookups"], other["counted"], score)
        score["reasons"] += sum(bool(lookup["reasons"]) for lookup in other["lookups"])
        for lookup, is_so in _paired(one["lookups"], other["lookups"]):
            if is_so["reasons"]:
                _score_reason(lookup, is_so, score)
    return score


def _together(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    counts = sum((one.get("counted") or Counter() for one in parts), Counter())
    return {"lookups": [lookup for one in parts for lookup in one["lookups"]], "counted": counts}


def _score_outcomes(told: Iterable[Lookup], true: Counts, score: Score) -> None:
    """torch counts what it could not save as a bypass too; a cache that is off it does not count."""
    said: Counts = Counter(f"{one['cache']} {one['outcome']}" for one in told if one["outcome"] != "disabled")
    said.update(f"{one['cache']} bypass" for one in told if one.get("not_saved"))
    score["right"] += (said & true).total()
    for cache in CACHES:
        score["found"] += min(
            sum(n for what, n in counts.items() if what.startswith(cache)) for counts in (said, true)
        )
    wrong = {what: n for what, n in (said - true).items() if not what.endswith("None")}
    score["wrong"] += sum(wrong.values())
    score.wrong += [f"says {n} {what} that torch did not count" for what, n in wrong.items()]


def _score_reason(one: Lookup, other: Lookup, score: Score) -> None:
    if one.get("reason") is None:
        return
    if _is_right(one, other):
        score["named"] += 1
        return
    score["false"] += 1
    said = " ".join([one["reason"], *sorted(one["changed"])])
    wanted = " or ".join(sorted({" ".join([reason, *fields]) for reason, fields in other["reasons"]}))
    kinds = f" ({' or '.join(other['kinds'])})" if "kinds" in other else ""
    score.wrong.append(f"{one['cache']}: says {said}, true is {wanted}{kinds}")


def _is_right(one: Lookup, other: Lookup) -> bool:
    is_reason = [one["reason"], sorted(one["changed"])] in other["reasons"]
    return is_reason and ("kinds" not in other or one.get("kind") in (None, *other["kinds"]))


def _paired(told: Sequence[Lookup], true: Sequence[Lookup]) -> Iterator[tuple[Lookup, Lookup]]:
    """Those of one cache and outcome, in order; where some are lacking, first those that agree."""
    groups: dict[Any, tuple[list[Lookup], list[Lookup]]] = defaultdict(lambda: ([], []))
    for which, lookups in enumerate((told, true)):
        for one in lookups:
            groups[one["cache"], one["outcome"]][which].append(one)
    for mine, theirs in groups.values():
        if len(mine) != len(theirs):
            for one in [one for one in mine if one.get("reason")]:
                found = next((other for other in theirs if other["reasons"] and _is_right(one, other)), None)
                if found is not None:
                    yield one, found
                    mine.remove(one)
                    theirs.remove(found)
        yield from zip(mine, theirs, strict=False)


def scored_directory(answer: Answer, true: Sequence[Process], stored: Mapping[str, str]) -> Score:
    """What a tool says of the entries of directories alone, by their paths: that they are there, and why a graph has one more."""
    score = Score()
    told = {one["path"]: one for one in answer["entries"]}
    score["counted"] = len(stored)
    score["found"] = score["right"] = sum(told.get(at, {}).get("key") == key for at, key in stored.items())
    reasons: dict[str, list[Any]] = defaultdict(list)
    for lookup in (lookup for one in true for lookup in one["lookups"]):
        if lookup["cache"] == "fxgraph" and lookup["outcome"] == "miss" and lookup.get("key"):
            reasons[lookup["key"]] += lookup["reasons"]
    known = {
        key for key in reasons.keys() & set(stored.values()) if any(_is_of_key(*one) for one in reasons[key])
    }
    score["reasons"] = len(known)
    named = {one["key"]: one for one in answer["entries"] if one.get("reason") and reasons.get(one["key"])}
    for key, one in named.items():
        if not _is_right(one, {"reasons": reasons[key]}):
            _score_reason({"cache": "fxgraph", **one}, {"reasons": reasons[key]}, score)
        elif key in known:
            score["named"] += 1
    return score


def _is_of_key(reason: str, fields: Sequence[str]) -> bool:
    """Whether entries can show it: another key of one graph, or another file under one key."""
    return reason in ("key_changed", "guard_failed")


def of_cachescope(explained: Mapping[str, Any]) -> Answer:
    """What `cachescope explain --json` prints, in the form; of what it says not to know no reason is claimed."""
    lookups: dict[int, list[Lookup]] = defaultdict(list)
    for one in explained["lookups"]:
        outcomes = {"full_miss": "miss", "guard_miss": "miss", "unknown": None}
        outcome = outcomes.get(one["outcome"], one["outcome"])
        is_known = one["evidence"] != "not_known" and one["verdict"] != "details_not_recorded"
        lookups[one["run"]].append(
            {
                "cache": one["cache"],
                "outcome": outcome,
                "not_saved": one["save_bypass"] is not None,
                "reason": one["verdict"] if is_known else None,
                "changed": one["changed"],
                "kind": one["kind"] or None,
            }
        )
    return {
        "processes": [
            {
                "files": [Path(source).name for source in run["sources"]],
                "pid": run["pid"],
                "lookups": lookups[run["run"]],
            }
            for run in explained["runs"]
        ]
    }


def _answer_of_cachescope(program: str, folder: Path) -> Answer:
    command = [program, "explain", "--json", "--no-index", folder / "trace"]
    return of_cachescope(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))


def _answer_of_tlparse(program: str, folder: Path) -> Answer:
    """Of each trace the artifacts of the two caches that it lists: how they ended is in their names, of 2.6's AOTAutograd in their text."""
    told = []
    for trace in sorted((folder / "trace").iterdir()):
        with tempfile.TemporaryDirectory() as place:
            out = Path(place, "out")
            subprocess.run([program, "--no-browser", "-o", out, trace], check=True, capture_output=True)
            listed = json.loads((out / "compile_directory.json").read_text()).values()
            paths = [out / artifact["url"] for one in listed for artifact in one["artifacts"]]
            lookups = [one for path in paths for one in _artifact_of_tlparse(path)]
        told.append({"files": [trace.name], "pid": None, "lookups": lookups})
    return {"processes": told}


def _artifact_of_tlparse(path: Path) -> Iterator[Lookup]:
    if found := re.match(r"(fx_graph|aotautograd)_cache_(hit|miss|bypass|hash)_\d+\.json$", path.name):
        outcome = json.loads(path.read_text())["cache_state"] if found[2] == "hash" else found[2]
        yield {"cache": found[1].replace("fx_graph", "fxgraph"), "outcome": outcome}


TOOLS: dict[str, Callable[[str, Path], Answer]] = {
    "cachescope": _answer_of_cachescope,
    "tlparse": _answer_of_tlparse,
}


def recordings() -> Iterator[tuple[str, str, Path]]:
    """Every recording, unpacked for as long as it is looked at: release, name, folder."""
    for archive in sorted(RECORDINGS.glob("*/*.tar.xz")):
        with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
            yield archive.parent.name, archive.name.removesuffix(".tar.xz"), Path(folder)


def few_recordings(archive: Path) -> Iterator[tuple[str, str, Path]]:
    """Those of a release of which a few are recorded, as `recordings` gives them."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
        for one in sorted(Path(folder).iterdir()):
            yield archive.name.removesuffix(".tar.xz"), one.name, one


def read_answers(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    answers: dict[str, Any] = json.loads(lzma.decompress(data) if path.suffix == ".xz" else data)
    return answers


_ROWS = {
    "lookups that torch counted": "counted",
    "found": "found",
    "with torch's outcome": "right",
    "with another outcome": "wrong",
    "misses and bypasses whose reason is known": "reasons",
    "named right": "named",
    "named false": "false",
}


def side_by_side(scores: Mapping[str, Score]) -> str:
    """The scores of tools as a table; a tool that claims no reasons has dashes."""
    lines = [["", *scores], ["---", *["---:"] * len(scores)]]
    for words, name in _ROWS.items():
        is_claimed = [
            name in ("counted", "found", "right", "wrong") or "reasons" in one for one in scores.values()
        ]
        both = zip(scores.values(), is_claimed, strict=True)
        lines.append([words, *(str(one[name]) if is_so else "–" for one, is_so in both)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def of_all(tools: Sequence[Mapping[str, Any]], true: Mapping[str, Sequence[Process]]) -> dict[str, Score]:
    """The scores of tools over the recordings that all of them answered."""
    names = [name for name in true if all(name in tool["recordings"] for tool in tools)]
    found = {}
    for tool in tools:
        score = found[tool["tool"]] = Score(*(scored(tool["recordings"][name], true[name]) for name in names))
        if "reasons" not in tool["claims"]:
            del score["reasons"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("answers", nargs="*", type=Path)
    parser.add_argument("--truth", action="store_true")
    parser.add_argument("--answers-of", choices=TOOLS)
    parser.add_argument("--program", help="where the tool is, if it is not on the path")
    asked = parser.parse_args()
    if asked.answers_of:
        program = asked.program or asked.answers_of
        version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
        answer = TOOLS[asked.answers_of]
        told = {f"{release}/{name}": answer(program, folder) for release, name, folder in recordings()}
        claims = ["outcomes"] if asked.answers_of == "tlparse" else ["outcomes", "reasons"]
        print(json.dumps({"tool": version.strip(), "claims": claims, "recordings": told}))
        return
    true = {f"{release}/{name}": processes(folder, release, name) for release, name, folder in recordings()}
    true |= {f"field_cases/{name}": made(name) for name in MADE}
    if asked.truth:
        print(json.dumps(true, indent=1))
    else:
        print(side_by_side(of_all([read_answers(path) for path in asked.answers], true)))


if __name__ == "__main__":
    main()
