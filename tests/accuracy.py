"""Makes docs/explanation/accuracy.md, how right cachescope is: ``python tests/accuracy.py``, or ``make accuracy``.

What is said of each recording, by source, is counted beside `tests/truth.py` into `tests/data/accuracy.csv`; of this file the page is made.
Pre-flights and isolation keys are held against the torch that is installed: that takes ten minutes.
"""

import csv
import json
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

sys.path[:0] = [
    str(Path(__file__).parents[1]),
    str(Path(__file__).parent),
    str(Path(__file__).parents[1] / "docs"),
    str(Path(__file__).parent / "data"),
]

from markup import page, table  # noqa: E402 - found by the line above

import cachescope  # noqa: E402
from cachescope.report.as_json import explain_object  # noqa: E402
from tests import score, vllm_recordings  # noqa: E402
from tests.readings import read_once  # noqa: E402
from tests.truth import MADE, Process, made, processes  # noqa: E402

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "accuracy.md"
ROWS = ROOT / "tests" / "data" / "accuracy.csv"
TLPARSE = ROOT / "tests" / "data" / "tlparse.json.xz"
SOURCES = ("trace", "text log", "trace, text log, directory", "directory")


@dataclass(frozen=True)
class Row:
    """What was counted of one recording read one way: ``score.Score``."""

    release: str
    source: str
    recording: str
    counted: int = 0
    found: int = 0
    right: int = 0
    wrong: int = 0
    reasons: int = 0
    named: int = 0
    false: int = 0
    what: str = ""
    """What was false, one after the other."""


def rows_of(release: str, name: str, folder: Path) -> Iterator[Row]:
    """What is said of a recording by each source that it has."""
    true = processes(folder, release, name)
    caches = [path for path in sorted(folder.glob("cache*")) if path.is_dir()]
    steps = json.loads((folder / "scenario.json").read_text())["steps"]
    sources = {"trace": [folder / "trace"], "directory": caches}
    if any("TORCH_LOGS" in step.get("environment", {"TORCH_LOGS": ""}) for step in steps):
        sources |= {"text log": [folder / "text"], SOURCES[2]: [folder / "trace", folder / "text", *caches]}
    for source in SOURCES:
        if source in sources:
            scope = read_once(*sources[source])
            found = _of_directory(scope, caches, true) if source == "directory" else _of_logs(scope, true)
            counts = (found[one.name] for one in fields(Row)[3:-1])
            yield Row(release, source, name, *counts, "; ".join(found.wrong))


def rows_of_release(archive: Path) -> list[Row]:
    """Those of the few recordings of a release."""
    return [row for one in score.few_recordings(archive) for row in rows_of(*one)]


def _of_logs(scope: cachescope.Scope, true: Sequence[Process]) -> score.Score:
    return score.scored(score.of_cachescope(explain_object(scope)), true)


def _of_directory(scope: cachescope.Scope, caches: Iterable[Path], true: Sequence[Process]) -> score.Score:
    stored = {
        str(path): path.parent.name
        for cache in caches
        for pattern in ("fxgraph/*/*/*", "aotautograd/*/*")
        for path in cache.glob(pattern)
    }
    # Equal guards under one key are said to be raced for or made again: that is not to know. Nor is it known whether ranks raced.
    past = {
        row.entry: {"reason": row.verdict, "changed": row.changed}
        for row in scope.past_misses.itertuples()
        if row.verdict != "entry_unavailable" and row.is_order_known
    }
    told = [
        {"path": row.path, "key": row.cache_key} | past.get(row.entry, {})
        for row in scope.entries.itertuples()
    ]
    return score.scored_directory({"entries": told}, true, stored)


def vllm_row(release: str, folder: Path) -> Row:
    """What is said of vLLM's logs and folders: how each start went, and in what alone the folder of each declared step differs."""
    told = vllm_recordings.recorded(release, folder)
    scope = read_once(told.cache, told.logs)
    starts = {Path(row.source).stem: row.outcome for row in scope.vllm_starts.itertuples()}
    loaded = vllm_recordings.LOADED[release]
    right = sum(starts.get(step) == ("loaded" if step in loaded else "compiled") for step in told.steps)
    folders = vllm_recordings.with_factors(scope).groupby("folder")["changed"].agg(set)
    changes = vllm_recordings.CHANGED[release] | dict.fromkeys(vllm_recordings.SAME_FOLDER[release], ())
    named = {step: folders[told.folder(step)] == {fields} for step, fields in changes.items()}
    false = [f"{step}: says {folders[told.folder(step)]}" for step, is_right in named.items() if not is_right]
    counted = len(told.steps), len(starts), right, len(starts) - right, len(changes), sum(named.values())
    return Row(release, "vLLM's logs and folders", "all steps", *counted, len(false), "; ".join(false))


def made_row() -> Row:
    """What is said of logs that were made by hand after the forms that people's logs have."""
    folder = ROOT / "tests" / "data" / "field_cases"
    answers = {name: score.of_cachescope(explain_object(read_once(folder / name))) for name in MADE}
    found = score.Score(*(score.scored(answer, made(name)) for name, answer in answers.items()))
    counts = (found[one] for one in ("counted", "found", "right", "wrong"))
    return Row("both", "logs made by hand", f"{len(MADE)} cases", *counts, what="; ".join(found.wrong))


def recorded_keys_row(folder: Path) -> Row:
    """The isolation keys that torch 2.10 said, of the context that it had."""
    import directory_programs

    truth = json.loads((folder / "provenance.json").read_text())["steps"][0]["truth"]
    equal = 0
    for name, schema in directory_programs.isolation_schemas().items():
        chosen = cachescope.IsolationSchema(schema["runtime_context"], schema["compile_context"])
        equal += cachescope.isolation_key(truth["isolation_context"], chosen) == truth["isolation_keys"][name]
    counted = len(truth["isolation_keys"])
    return Row("2.10.0", KEYS, "caching_2.10.0", counted, equal, equal, counted - equal)


KEYS = "isolation keys"


def live_keys_row() -> Row:
    """The isolation keys of the torch that is installed, one for each schema."""
    import torch
    from torch._inductor.runtime.caching import context

    from cachescope.capture.contexts import capture
    from cachescope.keys import all_schemas

    captured, schemas = capture()["context"], list(all_schemas())
    equal = sum(cachescope.isolation_key(captured, one) == context._isolation_key(one) for one in schemas)  # type: ignore[arg-type]
    release = torch.__version__.split("+")[0]
    return Row(release, KEYS, "every schema", len(schemas), equal, equal, len(schemas) - equal)


def preflight_rows() -> Iterator[Row]:
    """Each program predicted, then run for real, on a cold, a warm and a changed cache, by what torch's trace then says."""
    import torch

    from cachescope.scope.preflight import read_preflight
    from tests.capture import preflights
    from tests.capture.program_names import ALONE, PROGRAMS

    groups: dict[str, list[str]] = defaultdict(list)
    for name, module in PROGRAMS.items():
        if name not in ALONE and module != "models":
            groups[module].append(name)
    for module, names in groups.items():
        total: Counter[str] = Counter()
        program = preflights.program(",".join(names))
        with tempfile.TemporaryDirectory() as place:
            folder, cache = Path(place), Path(place, "cache")
            changed = {"PREFLIGHT_PROGRAM_CONFIG": "epilogue_fusion"}
            before = preflights.preflown(program, cache, folder / "preflight")
            for state, more in (("cold", {}), ("warm", {}), ("changed", changed)):
                traces = preflights.preflown(program, cache, folder / "again", **more) if more else before
                told = preflights.lookups_of(read_preflight(str(traces), None))
                went = preflights.really(program, cache, folder / state, **more).lookups
                keys = Counter(one[:2] for one in told) & Counter(one[:2] for one in went)
                right = (Counter(told) & Counter(went)).total()
                open_ = len(preflights.open_of(told))
                total.update(
                    counted=len(went), found=keys.total(), right=right, wrong=keys.total() - right - open_
                )
        numbers = (total[name] for name in ("counted", "found", "right", "wrong"))
        release = torch.__version__.split("+")[0]
        yield Row(release, PREFLIGHTS, f"{module}: {len(names)} programs", *numbers)


PREFLIGHTS = "pre-flights"

# What no number stands behind.
NEVER = (
    "a live GPU: NVIDIA, AMD, Intel or Apple",
    "macOS, Windows, Linux on ARM",
    "Python other than 3.11, 3.13 and 3.14 in what was recorded",
    "torch 2.4, but for outcomes and compiles of its traces",
    "vLLM with a model on a device; releases other than these two",
)


def page_of(rows: Sequence[Row]) -> str:
    """The page, of the rows and of what tlparse said."""
    read = {(row.release, row.recording) for row in rows if row.source in SOURCES}
    return page(
        "How right is it?",
        f"cachescope {cachescope.__version__} beside torch's own counters, and beside what is known to have been changed: {len(read)} recordings "
        "of real torch on a CPU, in which one thing at a time was changed, broken or killed on purpose. Nothing here was counted by hand: "
        "`make accuracy` writes this page, and `tests/test_accuracy.py` counts again.",
        table(_HEADS, _totals(rows)),
        _EXPLAINED,
        "## Each false one",
        *_false(rows),
        "## Beside tlparse",
        *_beside_tlparse(rows),
    )


_HEADS = (
    "torch, vLLM", "read from", "recordings", "lookups", "found", "outcome right", "wrong", "reason known", "named right", "not known", "false",
)  # fmt: skip
_EXPLAINED = """\
- **lookups**: the hits, misses and bypasses of the FX and the AOTAutograd cache that torch counted (`torch._dynamo.utils.counters`). Of a
  directory the entries that lie in it, of vLLM its starts, of pre-flights the lookups of the real run afterwards (their tests hold that all
  are equal), of isolation keys those that torch itself made.
- **found**, **outcome right**, **wrong**: how many of them cachescope tells of, tells of with torch's outcome, and with another one. What is not
  found is not in that source: torch writes of some lookups only after a compile, and that compile failed or was killed. Of a graph that an
  AOTAutograd hit loads, torch 2.5 writes nothing, and 2.6 and 2.7 not in every trace.
- **reason known**: misses and bypasses of which is known what was done before them: a field was changed, an entry deleted, a compile killed. It
  was written down as it was done (`tests/scenarios.py`, `tests/wild`), and is never taken from an answer.
- **named right**: that reason, with exactly these fields. **not known**: cachescope says that it does not know, or the lookup is not in that source.
  **false**: it says something else.

Caches that strangers made on GPUs are outside of these numbers: `tests/strangers.py` has what is true of them."""


def _totals(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if not row.source.startswith("tlparse"):
            groups[row.release, row.source].append(row)
    for (release, source), group in groups.items():
        counted = [sum(getattr(row, one.name) for row in group) for one in fields(Row)[3:-1]]
        *outcomes, reasons, named, false = counted
        known = (reasons, named, reasons - named - false, false) if reasons else ("",) * 4
        what = (
            len(group)
            if source in SOURCES
            else group[0].recording
            if len(group) == 1
            else f"{len(group)} groups"
        )
        yield tuple(str(one) for one in (release, source, what, *outcomes, *known))
    for what in NEVER:
        yield what, "never tried", *[""] * 9


def _false(rows: Sequence[Row]) -> Iterator[str]:
    """Each false answer once, with the recordings in which it is given."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        for what in row.what.split("; ") if row.what else ():
            found[row.source, what].append(f"{row.recording} ({row.release})")
    yield (
        f"False answers: {sum(map(len, found.values()))}. In a trace alone, a compile that failed or was killed has left no record of its "
        "lookup, and the next lookup of the graph is called the first: `first_lookup` means that nothing *that was read* is of this graph. With "
        "the text log and the directory beside the trace, none is false."
    )
    heads = ("read from", "cachescope", "in")
    rows = ((of, what, ", ".join(sorted(set(names)))) for (of, what), names in sorted(found.items()))
    yield table(heads, rows)


def _beside_tlparse(rows: Sequence[Row]) -> Iterator[str]:
    scores: dict[str, score.Score] = {}
    others = {path.name.removesuffix(".tar.xz") for path in score.RELEASES.iterdir()}
    for row in rows:
        if row.release in others:
            continue
        tool = {"trace": f"cachescope {cachescope.__version__}"}.get(row.source, row.source)
        if row.source == "trace" or tool.startswith("tlparse"):
            counts = {one.name: getattr(row, one.name) for one in fields(Row)[3:-1]}
            claimed = {name: n for name, n in counts.items() if n or tool[0] == "c"}
            scores.setdefault(tool, score.Score()).update(claimed)
    yield (
        "[tlparse](https://github.com/meta-pytorch/tlparse) makes pages of a trace. Both were given the traces of every recording and nothing else; "
        "`python tests/score.py --answers-of tlparse` ran it once for each trace and took what its `compile_directory.json` lists: the artifacts "
        "of the two caches, which it marks as hit, miss or bypass (of AOTAutograd in torch 2.6 the state that the listed file holds). It claims no "
        "reasons, so it is scored on none."
    )
    yield score.side_by_side(scores)
    yield (
        "Any tool can be scored: `tests/data/README.md` describes the recordings, what is true of them, and the form of the answers that "
        "`tests/score.py` takes."
    )


def tlparse_row(release: str, name: str, folder: Path) -> Row:
    """What tlparse lists of the traces of a recording."""
    answers = tlparse()
    found = score.scored(answers["recordings"][f"{release}/{name}"], processes(folder, release, name))
    counts = (found[one] for one in ("counted", "found", "right", "wrong"))
    return Row(release, answers["tool"], name, *counts)


@cache
def tlparse() -> dict[str, Any]:
    return score.read_answers(TLPARSE)


def read_rows() -> list[Row]:
    """What `make accuracy` counted."""
    with ROWS.open(newline="", encoding="utf-8") as file:
        return [
            Row(*(int(value) if fields(Row)[at].type is int else value for at, value in enumerate(line)))
            for line in list(csv.reader(file))[1:]
        ]


def place_of(row: Row) -> tuple[int, int, int]:
    """Recordings first, the newest release first."""
    if row.source not in SOURCES:
        return len(SOURCES), 0, 0
    return 0, -int(row.release.split(".")[1]), SOURCES.index(row.source)


def main() -> None:
    rows: list[Row] = []
    for release, name, folder in score.recordings():
        rows += [*rows_of(release, name, folder), tlparse_row(release, name, folder)]
    for archive in score.RELEASES.iterdir():
        rows += rows_of_release(archive)
    with tempfile.TemporaryDirectory() as place:
        rows += [vllm_row(release, Path(place, release)) for release in vllm_recordings.VERSIONS]
        with tarfile.open(ROOT / "tests" / "data" / "directories" / "caching_2.10.0.tar.xz") as packed:
            packed.extractall(Path(place, "caching"), filter="tar")
        rows.append(recorded_keys_row(Path(place, "caching")))
    rows += [made_row(), live_keys_row(), *preflight_rows()]
    rows.sort(key=place_of)
    with ROWS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(one.name for one in fields(Row))
        writer.writerows(map(astuple, rows))
    PAGE.write_text(page_of(read_rows()), encoding="utf-8")


if __name__ == "__main__":
    main()
