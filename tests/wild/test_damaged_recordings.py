"""Recordings damaged as the world damages them say what they said before, or that it is not known; also those whose traces lost their heads.

Every recording is read whole and damaged, from its traces, its text logs, all of it, and either kind of log with the
cache directories; every lookup of the damaged reading is held against the same lookup of the whole one. The same lookup
is the one of the same process (pid, or the file where a log has none), cache, key and compile id; of several, those that
agree best in their order. What a whole recording must say is written by hand in `scenarios.py`, not here.

What may be said of a lookup
----------------------------
- The same: outcome, verdict, changed fields, kind, and the cause that it is put down to.
- That it is not known: the outcome ``unknown`` or, of a miss, ``details_not_recorded``, the evidence ``not_known``, or
  ``entry_unavailable`` of the kind ``not known``, each without a changed field. A guard miss may be called a full miss
  with one of these: torch's text logs call both a miss, and which it was follows from hash details or entries that may
  be gone.
- Nothing, where bytes of logs are gone. What became of a key is still said in every line or record that is whole, so
  there are at least as many lookups of the key of a known outcome.
- Something that is true of what is left, where the earlier lookup that the whole recording goes by is gone:
  ``first_lookup``, if none of the earlier lookups of the same key or the same graph is left, with details or without, for
  what nothing tells of nobody can know; ``key_changed`` against another lookup, if its fields are those in which the two
  keys really differ, and ``gm`` is not among them unless the whole recording has it. Nothing of the kind where the whole
  recording says ``first_lookup``: less evidence never makes a stranger a relative.
- Of two copies of a log in one stream ``compiled_concurrently`` (not known where lines have no time), for that is what the log tells of: two processes that
  look for the same keys at the same moments. They are two runs. Where a trace is read as well, one of them is its run.

What is never said: another verdict, field, kind or cause; a lookup, a run or a hit too many; anything by an exception, but
that there is no source, if no whole line or record is left that tells of a lookup.

What may not become unknown
---------------------------
What the sources say that the damage leaves alone. Damage that takes nothing away (prefixes, colours, line ends, packing,
another first line, links) changes nothing at all. Times of modification and the files of a cache add to what logs say: what the
logs say without them stays. What a trace says stays when the text log beside it is thinned, and the other way round. Only where
entries are there and cannot be read whole, they may cast doubt on what the logs say.
A file that was cut after the run, or is gone since, explains no miss: it was whole when torch looked for it, or nobody knows.
No file of a damaged directory can go that had to stay in the whole one, but for those that the damage made unloadable.

`CACHESCOPE_DAMAGES` says how many cases are tried of each recording, or ``all`` (an hour of two cores). The counts of
each damage stand in the summary of pytest.
"""

import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cachescope
from cachescope.readers.kinds import looks_like_trace_log
from cachescope.report.terminal import terminal_lines
from cachescope.report.why_missed import answer_blocks
from tests.conftest import Recording
from tests.recordings import RECORDED, Recorded
from tests.wild.answers import AnswerSet, read_answers
from tests.wild.damaged_files import caches
from tests.wild.damaged_logs import logs
from tests.wild.damages import CACHES, DAMAGES, EXPORTS, TEXT, TRACE, Damage, in_zone
from tests.wild.judging import GONE, Judge, Report

WAYS: dict[str, tuple[str, ...]] = {
    "trace": (TRACE,),
    "text": (TEXT,),
    "all": (TRACE, TEXT, CACHES),
    "trace and caches": (TRACE, CACHES),
    "text and caches": (TEXT, CACHES),
}
PAIRS = [(way, damage) for way, of_way in WAYS.items() for damage in DAMAGES if damage.touches & set(of_way)]
# Some 550 cases, most of a minute of two cores.
_OFTEN = 3


@dataclass(frozen=True, slots=True)
class Case:
    version: str
    name: str
    way: str
    damage: Damage
    number: int = 0  # of several that are alike

    @property
    def seed(self) -> str:
        return f"{self.version} {self.name} {self.way} {self.damage.name}" + self.number * "+"


class Whole:
    """A recording as it is, read as often as needed and no oftener."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._answers: dict[frozenset[str], AnswerSet] = {}
        self.kinds = frozenset(kind for kind in (TRACE, TEXT, CACHES) if self._has(kind))

    def _has(self, kind: str) -> bool:
        if kind == CACHES:
            return bool(caches(self.folder))
        if not logs(self.folder, kind):
            return False
        try:
            return bool(self.read(frozenset({kind})).answers)
        except cachescope.SourceError:
            # Warnings and tracebacks only.
            return False

    def read(self, kinds: frozenset[str]) -> AnswerSet:
        if kinds not in self._answers:
            with in_zone("UTC"):
                self._answers[kinds] = read_answers(*sources(self.folder, kinds))
        return self._answers[kinds]

    def floor(self, kinds: frozenset[str], damage: Damage) -> AnswerSet | None:
        """What the sources say by themselves that the damage does not spoil; a directory alone tells of no lookup."""
        rest = kinds - damage.spoils
        return self.read(rest) if rest & {TRACE, TEXT} else None


def sources(folder: Path, kinds: frozenset[str]) -> list[Path]:
    found = [folder / kind for kind in (TRACE, TEXT) if kind in kinds]
    return found + (caches(folder) if CACHES in kinds else [])


@contextlib.contextmanager
def damaged(whole: Whole, case: Case) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as room:
        # Whoever reads it may be somebody else.
        Path(room).chmod(0o755)
        folder = Path(room) / "recording"
        folder.mkdir()
        for source in sources(whole.folder, whole.kinds):
            shutil.copytree(source, folder / source.name, symlinks=True)
        case.damage.harm(folder, Random(case.seed))
        yield folder


def tried(whole: Whole, case: Case) -> Report:
    damage = case.damage
    kinds = frozenset(WAYS[case.way]) & whole.kinds
    true, floor = whole.read(kinds), whole.floor(kinds, damage)
    left: Counter[str] = Counter()
    with damaged(whole, case) as folder, in_zone("UTC"), damage.reading():
        if damage.loses_lines:
            left = outcomes_left(folder, [kind for kind in (TRACE, TEXT) if kind in kinds])
        try:
            observed = read_answers(*sources(folder, kinds), whole=true)
            can_go = _wrongly_removable(observed, true, damage)
        except cachescope.SourceError as error:
            wrong = [("refused", f"{error}; of {len(left)} keys the logs still tell")]
            is_right = not left and floor is None and damage.loses_lines
            return Report(Counter({GONE: len(true.answers)}), [] if is_right else wrong)
        except Exception as error:  # whatever it is, it is wrong
            return Report(Counter(), [("exception", f"{type(error).__name__}: {error}")])
    report = Judge(true, observed, damage, floor, left).report()
    report.wrong += [("a sound file can go", path) for path in can_go]
    return report


def _wrongly_removable(observed: AnswerSet, true: AnswerSet, damage: Damage) -> list[str]:
    """Files that can go after the damage and could not before: none, where every entry is as sound as it was."""
    if not damage.keeps_entries:
        return []
    could, can = ({Path(path).parts[-2:] for path in one.scope.removable["path"]} for one in (true, observed))
    return ["/".join(parts) for parts in sorted(can - could)]


def cases(version: str, name: str, kinds: frozenset[str]) -> list[Case]:
    """Every way that has a log, with every damage that touches what it reads; or some, others of each recording."""
    every = [Case(version, name, way, damage) for way, damage in PAIRS if kinds.issuperset(WAYS[way])]
    Random(f"{version} {name}").shuffle(every)
    often = os.environ.get("CACHESCOPE_DAMAGES", str(_OFTEN))
    return every if often == "all" else every[: int(often)]


def check_verdicts_stay_or_become_not_known(recorded: Recorded) -> None:
    whole = Whole(recorded.folder)
    counted: dict[str, Counter[str]] = {}
    wrong = []
    for case in cases(recorded.version, recorded.name, whole.kinds):
        report = tried(whole, case)
        of_class = counted.setdefault(case.damage.name, Counter())
        of_class.update(report.counts + Counter(wrong=len(report.wrong), cases=1))
        wrong += [f"{what} | {case.way} | {case.damage.name} | {text}" for what, text in report.wrong]
    recorded.count("counted: damaged recordings", {name: dict(counts) for name, counts in counted.items()})
    assert not wrong, "\n".join([f"{len(wrong)} wrong", *sorted(wrong)[:40]])


@pytest.mark.parametrize(("version", "name", "way", "damage", "number"), [
    # A hit is none of what a lookup before it, whose outcome is lost, found.
    ("2.10.0", "restarted_container", "text", "text: half of lines lost", 5),
    # A recompile is no cold start.
    ("2.13.0", "recompiles", "text", "text: half of lines lost", 0),
    # Where the graphs of the run before are lost, those of another run are not what changed.
    ("2.13.0", "tour", "text", "text: a line lost", 0),
    ("2.13.0", "tour", "text", "text: tail of one cut", 2),
    ("2.13.0", "training", "text", "text: tail of one cut", 2),
    # What a text log does not say may have been in the lines that it lost.
    ("2.13.0", "aot_entry_truncated", "all", "text: 1 % of lines lost", 0),
    ("2.13.0", "fxgraph_full", "all", "text: half of lines lost", 2),
    # A trace and the text log beside it stay one run, whatever the log lost.
    ("2.13.0", "config_flip", "all", "text: a line lost", 0),
    ("2.13.0", "config_flip", "all", "text: 10 % of lines lost", 0),
    ("2.13.0", "config_flip", "all", "text: half of lines lost", 0),
    ("2.13.0", "config_flip", "all", "text: stretches lost", 0),
    ("2.13.0", "config_flip", "all", "text: tail of each cut", 0),
    ("2.13.0", "config_flip", "all", "text: head of each cut", 0),
])  # fmt: skip
def test_lost_lines_blame_nothing_else(
    recording: Recording, version: str, name: str, way: str, damage: str, number: int
) -> None:
    one = next(one for one in DAMAGES if one.name == damage)
    assert not tried(Whole(recording(version, name)), Case(version, name, way, one, number)).wrong


def _with_short_lines(folder: Path, rng: Random) -> None:
    for path in logs(folder, TEXT):
        lines = path.read_bytes().split(b"\n")
        short = [line[: rng.randrange(60, 400)] if rng.random() < 0.01 else line for line in lines]
        path.write_bytes(b"\n".join(short))


def _without_the_key_behind_a_hit(folder: Path, rng: Random) -> None:
    """Three AOTAutograd lookups of one compile id: a miss, a hit, and a miss whose graph missed too."""
    log = min((folder / TEXT).iterdir())
    lines = log.read_bytes().split(b"\n")
    keys = [at for at, line in enumerate(lines) if b" hash details for key " in line]
    is_outcome = re.compile(rb" cache (?:hit|miss) for key ").search
    outcomes = [at for at, line in enumerate(lines) if is_outcome(line)]
    hit, behind, graph = keys[-3:]
    lost = {outcomes[-3], behind, outcomes[-2]}
    assert hit < outcomes[-3] < behind < outcomes[-2] < graph
    assert b"AOTAutograd cache hit" in lines[outcomes[-3]]
    log.write_bytes(b"\n".join(line for at, line in enumerate(lines) if at not in lost))


@pytest.mark.parametrize(("name", "way", "harm"), [
    ("config_flip", "all", _with_short_lines),
    # A hit is no miss where the next lookup lost its key.
    ("in_process", "text", _without_the_key_behind_a_hit),
], ids=["short lines", "a key"])  # fmt: skip
def test_what_else_is_lost_of_lines_invents_nothing(
    name: str, way: str, harm: Callable[[Path, Random], None], recording: Recording
) -> None:
    of_text = frozenset({TEXT})
    case = Case("2.13.0", name, way, Damage(harm.__name__, harm, of_text, of_text))
    assert not tried(Whole(recording("2.13.0", name)), case).wrong


@pytest.mark.parametrize("damage", EXPORTS, ids=lambda damage: damage.name)
@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("2.6.0", "recompiles"),
        ("2.10.0", "infer_then_train"),
        ("2.13.0", "two_services_pods"),
        ("2.15.0", "interrupted"),
    ],
)
def test_what_cloud_logging_exports_says_the_same(
    recording: Recording, version: str, name: str, damage: Damage
) -> None:
    assert not tried(Whole(recording(version, name)), Case(version, name, "text", damage)).wrong


def test_every_damage_is_tried() -> None:
    """The sample of one run has each damage, and most of them each way."""
    kinds = frozenset({TRACE, TEXT, CACHES})
    tried = (case for version, name in RECORDED for case in cases(version, name, kinds))
    tried_now = {(case.way, case.damage.name) for case in tried}
    assert {name for _, name in tried_now} == {damage.name for damage in DAMAGES}
    assert len(tried_now) > 0.85 * len(PAIRS)


@pytest.mark.sweep
def test_damage_is_done(recording: Recording) -> None:
    """Each changes what it says it touches, but for those whose reader is what differs."""
    whole = Whole(recording("2.13.0", "config_flip"))
    for damage in DAMAGES:
        if damage.name.startswith("read in "):
            continue
        with damaged(whole, Case("2.13.0", "config_flip", "all", damage)) as folder:
            assert _look(folder) != _look(whole.folder), damage.name


def _look(folder: Path) -> dict[str, tuple[object, ...]]:
    """What there is of everything in a recording that is a source: content, time, permission."""
    found: dict[str, tuple[object, ...]] = {}
    roots = [folder / kind for kind in (TRACE, TEXT, "cache")]
    for path in sorted(path for root in roots for path in [root, *root.rglob("*")]):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and os.access(path, os.R_OK) else b""
        time_ns = status.st_mtime_ns if path.is_file() else 0
        found[str(path.relative_to(folder))] = (status.st_mode, path.is_symlink(), time_ns, content)
    return found


_OUTCOME = re.compile(
    rb"^(?:[^\n]*?[VIWEC]\d{4} \S+ (?P<pid>\d+) [^\n]*\]|INFO:\S+) "
    rb"(?:fx graph|AOTAutograd) cache (?:hit|miss) for key (?P<key>[fa][a-z2-7]{51})\r?\n",
    re.MULTILINE,
)
_RECORD = re.compile(rb"^(?=[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d{6} )", re.MULTILINE)
_HEAD = re.compile(rb"[VIWEC]\d{4} \S+ (?P<pid>\d+) [^\n]*?\] (?P<json>\{[^\n]*\})\n")
_ARTIFACT = re.compile(r"(?:fx_graph|aotautograd)_cache_(?:hit|miss|hash)")
_Said = Counter[tuple[bytes, str]]


def outcomes_left(folder: Path, kinds: list[str]) -> Counter[str]:
    """How many lookups of each key the logs of these kinds still tell the outcome of, in whole lines or records."""
    said: _Said = Counter()
    for kind in kinds:
        of_kind: _Said = Counter()
        for path in logs(folder, kind):
            # What may not be read, and what is compressed, is asked for nothing.
            if os.access(path, os.R_OK, effective_ids=True):
                of_kind += (_in_text if kind == "text" else _in_trace)(path)
        # A trace and a text log tell of the same lookups.
        said |= of_kind
    found: Counter[str] = Counter()
    for (_, key), count in said.items():
        found[key] += count
    return found


def _in_text(path: Path) -> _Said:
    found = _OUTCOME.finditer(path.read_bytes())
    return Counter((match["pid"] or path.name.encode(), match["key"].decode()) for match in found)


def _in_trace(path: Path) -> _Said:
    """Of 2.5 to 2.15: one artifact is one lookup, and its payload is whole where its hash is right."""
    found: _Said = Counter()
    for record in _RECORD.split(path.read_bytes()):
        head = _HEAD.match(record)
        if head is None or b'"artifact"' not in head["json"]:
            continue
        told = json.loads(head["json"])
        payload = b"\n".join(line[1:] for line in record[head.end() :].removesuffix(b"\n").split(b"\n"))
        is_whole = hashlib.md5(payload, usedforsecurity=False).hexdigest() == told.get("has_payload")
        if is_whole and _ARTIFACT.fullmatch(told["artifact"]["name"]):
            key = json.loads(payload).get("key")
            if key:
                found[head["pid"], key] += 1
    return found


Found = Counter[tuple[str, str | None]]

# torch's own records, found without cachescope.
_TRACE_RECORD = re.compile(rb'(?m)^V\d{4} [^\n]*?\] \{"[a-z]')
_LOOKUP = re.compile(
    rb'(?m)^V[^\n]*?\] \{"artifact": \{"name": "(fx_graph_cache|aotautograd_cache)_(?:hit|miss|bypass|hash)"[^\n]*\n'
    rb"(\t[^\n]*\n)+"
)
_CACHES = {b"fx_graph_cache": "fxgraph", b"aotautograd_cache": "aotautograd"}
SOURCES = [
    ("2.13.0", "four_graphs"), ("2.13.0", "bypass_custom_pass"), ("2.13.0", "killed_before_save"),
    ("2.15.0", "training"), ("2.10.0", "dynamic_guards"), ("2.6.0", "training"),
]  # fmt: skip
MARK = b"\xef\xbb\xbf"


def lookups_in(data: bytes) -> Found:
    first = _TRACE_RECORD.search(data)
    found: Found = Counter()
    for match in _LOOKUP.finditer(data, first.start() if first else len(data)):
        key = json.loads(match[2][1:]).get("key") if match[2].endswith(b"}\n") else None
        found[_CACHES[match[1]], key] += 1
    return found


def read(path: Path) -> tuple[Found, cachescope.Scope]:
    scope = cachescope.read(path)
    rows = scope.lookups[["cache", "cache_key"]].itertuples(index=False)
    keys = ((row.cache, row.cache_key if isinstance(row.cache_key, str) else None) for row in rows)
    return Counter(keys), scope


@pytest.fixture(scope="module")
def traces(recording: Recording) -> list[bytes]:
    found = [sorted((recording(*source) / "trace").iterdir()) for source in SOURCES]
    return [path.read_bytes() for paths in found for path in paths]


def flipped(data: bytes, seed: int) -> bytes:
    size = len(b"V1122 13:52:27.716000")
    chance, head = random.Random(seed), bytearray(data[:size])
    for at in chance.sample(range(size), 4):
        head[at] ^= chance.randrange(1, 128)
        if head[at] == ord("\n"):
            head[at] = 11
    return bytes(head) + data[size:]


HEAD_DAMAGES: dict[str, Callable[[bytes, int], bytes]] = {
    "byte order mark": lambda data, seed: MARK + data,
    "blank line": lambda data, seed: b"\n" + data,
    "foreign line": lambda data, seed: b"=== log of rank 3, rotated at midnight ===\n" + data,
    "foreign line that begins as a record does": lambda data, seed: (
        b"Error: no space left on device\n" + data
    ),
    "flipped bytes": flipped,
    "cut": lambda data, seed: data[random.Random(seed).randrange(1, len(data) * 4 // 5) :],
}


@pytest.mark.slow
@settings(max_examples=60)
@given(place=st.integers(0, 1000), damage=st.sampled_from(sorted(HEAD_DAMAGES)), seed=st.integers(0, 10_000))
@example(place=4, damage="cut", seed=5)  # behind its lookups, before the end of their compile
def test_lookups_behind_a_damaged_head_are_all_read(
    place: int, damage: str, seed: int, traces: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = traces[place % len(traces)]
    data = HEAD_DAMAGES[damage](whole, seed)
    if damage != "cut":
        assert lookups_in(data.removeprefix(MARK)) == lookups_in(whole)
    path = tmp_path_factory.mktemp("damaged") / "dedicated_log_torch_trace.log"
    path.write_bytes(data)
    found, scope = read(path)
    assert found == lookups_in(data.removeprefix(MARK))
    # A cut between two records cannot be seen.
    assert len(scope.problems) or _TRACE_RECORD.match(data)
    assert scope.runs["looked_up"].all()


@pytest.mark.parametrize("source", [*SOURCES, ("2.13.0", "recompiles")], ids="/".join)
def test_what_was_compiled_has_its_own_name_or_none(
    source: tuple[str, str], recording: Recording, tmp_path: Path
) -> None:
    """Wherever the log begins: the metrics at the end of a compile name it."""
    trace = min((recording(*source) / "trace").iterdir())
    data, cut = trace.read_bytes(), tmp_path / "dedicated_log_torch_trace.log"

    def told(path: Path) -> dict[tuple[str, str], set[tuple[str, str, int]]]:
        found: dict[tuple[str, str], set[tuple[str, str, int]]] = {}
        scope = cachescope.read(path)
        for row in scope.lookups.itertuples():
            place = (row.function, row.file, row.line)
            found.setdefault((row.cache_key, row.compile_id), set()).add(place)
        for row in scope.compiles.itertuples():
            found.setdefault(("", row.compile_id), set()).add((row.function, row.file, row.line))
        return found

    whole, named = told(trace), 0
    starts = [match.start() for match in _TRACE_RECORD.finditer(data)]
    for at in starts[1 :: len(starts) // 6]:
        cut.write_bytes(data[at:])
        for lookup, places in told(cut).items():
            known = {place for place in places if isinstance(place[0], str)}
            assert known <= whole[lookup]
            named += len(known)
    # Where torch compiles a wrapper, the metrics name no more than that.
    assert named or source[1] == "training"


@pytest.mark.slow
@pytest.mark.parametrize("damage", sorted(HEAD_DAMAGES))
def test_a_rank_with_a_damaged_head_is_not_lost(damage: str, recording: Recording, tmp_path: Path) -> None:
    first, second = sorted((recording("2.13.0", "killed_before_save") / "trace").iterdir())[:2]
    shutil.copy(first, tmp_path / "dedicated_log_torch_trace_rank_0_a.log")
    damaged = tmp_path / "dedicated_log_torch_trace_rank_1_b.log"
    damaged.write_bytes(HEAD_DAMAGES[damage](second.read_bytes(), 7))
    scope = cachescope.read(tmp_path)
    assert sorted(scope.runs["rank"]) == [0, 1]
    assert str(damaged) in set(scope.problems["source"])
    assert not any("no lookup is recorded" in line.text for line in terminal_lines(answer_blocks(scope)))


def test_a_payload_that_is_longer_than_the_probe_hides_no_trace(recording: Recording, tmp_path: Path) -> None:
    trace = max((recording("2.13.0", "four_graphs") / "trace").iterdir(), key=lambda one: one.stat().st_size)
    data = trace.read_bytes()
    at = data.index(b"\n\t", data.index(b'{"artifact": {"name": "fx_graph_cache_miss"'))
    rest = data[at + 10 :]
    record = _TRACE_RECORD.search(rest)
    assert record.start() > 1 << 14
    path = tmp_path / "rotated.log"
    path.write_bytes(rest)
    found, scope = read(path)
    assert found == lookups_in(rest)
    assert found.total() > 0
    assert scope.problems["kind"].tolist() == ["not_a_record"]


def test_a_text_log_is_no_trace_whatever_it_quotes(recording: Recording, tmp_path: Path) -> None:
    folder = recording("2.13.0", "four_graphs")
    text = min((folder / "text").iterdir()).read_bytes()
    record = max((folder / "trace").iterdir()).read_bytes().split(b"\n", 1)[0]
    assert not looks_like_trace_log(text + b"\n" + record)
    assert looks_like_trace_log(b"nothing of torch's\n\n" + record)
