"""False hits: none in what torch really did, and one row with its evidence for each made-up case.

Nothing real is wrong in the recordings, so the wrong cases are real files with a few bytes changed, or made by hand.
"""

import json
import re
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.analysis.directory.equal_code import SourceOf
from cachescope.analysis.directory.false_hits import false_hits
from cachescope.columns import records
from cachescope.frames.context_rows import ContextRow
from cachescope.keys.hashing import entry_name
from cachescope.scope import Scope
from cachescope.table import Table
from tests import made
from tests.conftest import Recording
from tests.made import Stored, entry, fx, run, scope_of
from tests.readings import read_once
from tests.recordings import RECORDED, Recorded


def beside(source: Path, target: Path, find: bytes, put: bytes) -> Path:
    """Another entry under the key of a real one: the same bytes with one place changed, under the name they hash to."""
    (path,) = [path for path in source.iterdir() if path.is_file()]
    data = path.read_bytes()
    assert len(find) == len(put) and find in data
    changed = data.replace(find, put)
    target.mkdir(parents=True, exist_ok=True)
    new = target / entry_name(changed)
    new.write_bytes(changed)
    return new


@pytest.fixture
def cache(recording: Recording, tmp_path: Path) -> Path:
    return Path(shutil.copytree(recording("2.13.0", "cold_warm") / "cache", tmp_path / "cache"))


def folder_of(cache: Path, kind: str) -> Path:
    (folder,) = [path for path in (cache / kind).rglob("*") if path.is_dir() and len(path.name) == 52]
    return folder


def found_in(*sources: Path) -> list[dict[str, object]]:
    return records(cachescope.read(*sources).false_hits)


def check_there_is_no_false_hit(recorded: Recorded) -> None:
    # Among them guard variants, four ranks that raced for one key, and one key in two directories.
    assert records(read_once(recorded.folder).false_hits) == []


@pytest.mark.sweep
@pytest.mark.parametrize("version", sorted({version for version, _ in RECORDED}))
def test_all_recordings_of_a_version_together_have_none(version: str, recording: Recording) -> None:
    # In 2.6 every directory has code of its own under equal keys: it includes a header by its path.
    folders = [recording(*recorded) for recorded in RECORDED if recorded[0] == version]
    scope = cachescope.read(*folders)
    sound = scope.entries[(scope.entries["cache"] == "fxgraph") & (scope.entries["status"] == "ok")]
    codes = sound.fillna({"guards_expr": ""}).groupby(["cache_key", "guards_expr"])["code_key"].nunique()
    assert version not in ("2.6.0", "2.13.0") or codes.max() > 1
    assert records(scope.false_hits) == []


def test_other_code_under_one_key_and_equal_guards(cache: Path, recording: Recording) -> None:
    fx = folder_of(cache, "fxgraph")
    code = b"cp4in467hhfixymclapggc4kg2qdfn6yisdw23733uuxh6elxgnr"
    changed = beside(fx, fx, b"clamp_min", b"clamp_max")
    data = changed.read_bytes().replace(code, b"c" + b"x" * 51)
    changed.unlink()
    (fx / entry_name(data)).write_bytes(data)
    (row,) = found_in(cache, recording("2.13.0", "cold_warm") / "trace")
    assert (row["kind"], row["cache"], row["cache_key"]) == ("different_code", "fxgraph", fx.name)
    assert "clamp_min" in str(row["evidence"]) and "clamp_max" in str(row["evidence"])
    assert len(row["entries"]) == 2  # type: ignore[arg-type]
    # One lookup of the FX key in each run, of which two hit: a false one would be among these.
    assert (len(row["lookups"]), row["runs"], row["hits"]) == (3, (0, 1, 2), 2)  # type: ignore[arg-type]


def with_other_code_key(cache: Path, find: bytes, put: bytes) -> None:
    fx = folder_of(cache, "fxgraph")
    path = beside(fx, fx, find, put)
    data = re.sub(rb"\x8c\x34c[a-z2-7]{51}", b"\x8c\x34c" + b"x" * 51, path.read_bytes())
    path.unlink()
    (fx / entry_name(data)).write_bytes(data)


OF_A_BENCHMARK = (b"arg0_1 = rand_strided((8, 16)", b"arg0_1 = rand_strided((9, 16)")


@pytest.mark.parametrize(("version", "find", "put"), [
    # The number of the graph, and the sizes of the inputs of a benchmark.
    ("2.13.0", b"# AOT ID: ['0_inference']", b"# AOT ID: ['7_inference']"),
    *((version, *OF_A_BENCHMARK) for version in ("2.6.0", "2.10.0", "2.13.0", "2.15.0")),
])  # fmt: skip
def test_what_no_result_depends_on_is_no_difference(
    version: str, find: bytes, put: bytes, recording: Recording, tmp_path: Path
) -> None:
    cache = Path(shutil.copytree(recording(version, "cold_warm") / "cache", tmp_path / "cache"))
    with_other_code_key(cache, find, put)
    entries = cachescope.read(cache).entries
    assert entries[entries["cache"] == "fxgraph"]["code_key"].nunique() == 2
    assert found_in(cache) == []


def test_a_log_that_was_cut_is_no_evidence(recording: Recording, tmp_path: Path) -> None:
    text = (recording("2.13.0", "cold_warm_fx") / "text" / "00_cold.log").read_bytes()
    kept = [line for line in text.split(b"\n") if b"inductor_config[t" not in line]
    (tmp_path / "a.log").write_bytes(text)
    (tmp_path / "b.log").write_bytes(re.sub(rb"(\d\d:\d\d:\d\d\.\d+) \d+ ", rb"\1 99999 ", b"\n".join(kept)))
    scope = cachescope.read(tmp_path)
    # What is left of its hash details is not used: those of the equal key are.
    assert scope.lookups["detail_set"].nunique() == 1
    assert len(scope.false_hits) == 0


def snapshot(run: object, to: Path, properties: str | None = None, **settings: str) -> None:
    """What `cachescope.capture` writes, cut short, as if this run had taken it of itself."""
    context = {"runtime_context": None, "compile_context": {"accelerator_properties": properties}}
    about = {"pid": int(run.pid), "time": run.end_time.isoformat(), "settings": settings}  # type: ignore[attr-defined]
    to.write_text(json.dumps({"cachescope_snapshot": 1, "context": context, **about}))


def test_settings_of_the_processes_that_the_key_does_not_hold(recording: Recording, tmp_path: Path) -> None:
    folder = recording("2.10.0", "cold_warm")
    capability = "torch.backends.cpu.get_cpu_capability()"
    runs = list(cachescope.read(folder / "trace").runs.itertuples())
    for process, able in zip(runs, ("AVX512", "AVX512", "AVX2"), strict=True):
        settings = {capability: able, "torch.get_default_dtype()": "torch.float32"}
        snapshot(process, tmp_path / f"{process.run}.json", **settings)
    # Whether the code is for the CPU at all is not known without the directory.
    assert found_in(folder / "trace", tmp_path) == []
    (row,) = found_in(folder / "trace", folder / "cache", tmp_path)
    assert (row["kind"], row["cache"], row["fields"]) == ("different_settings", "fxgraph", (capability,))
    assert "AVX512 (runs 0, 1) and AVX2 (run 2)" in str(row["evidence"])


def test_lookups_of_which_nothing_is_recorded_are_no_evidence() -> None:
    """Made by hand, as are the two keys beside them."""
    untold = [made.fx("f1", "hit", at=at, compile_id=None) for at in range(3)]
    told = [made.fx(key, "hit", {"gm": "g", "x": "1"}, at=9, compile_id=None) for key in ("f2", "f3")]
    assert records(made.scope_of(made.run(*untold), made.run(*told)).false_hits) == []


def test_one_key_with_two_hashes_of_a_field_is_one_and_a_field_less_is_not() -> None:
    def found(*details: dict[str, str]) -> list[dict[str, object]]:
        lookups = [made.fx("f1", "hit", fields, at=at, compile_id=None) for at, fields in enumerate(details)]
        return records(made.scope_of(made.run(*lookups[:1]), made.run(*lookups[1:])).false_hits)

    assert found({"gm": "g", "x": "1"}, {"gm": "g"}) == []
    assert found({"gm": "g", "x": "1"}, {"gm": "g", "x": "1"}) == []
    (row,) = found({"gm": "g", "x": "1"}, {"gm": "g", "x": "2"}, {"gm": "g", "x": "1"})
    assert (row["kind"], row["fields"], row["cache_key"]) == ("different_details", ("x",), "f1")
    assert (row["lookups"], row["runs"], row["hits"], row["entries"]) == ((0, 1, 2), (0, 1), 3, ())
    fields = dict.fromkeys("abcdef", "1")
    (row,) = found({"gm": "g", **fields}, {"gm": "g", **dict.fromkeys(fields, "2")})
    assert "more" in str(row["evidence"]) and len(row["fields"]) == 6  # type: ignore[arg-type]


def test_a_field_that_older_keys_lack_and_newer_ones_differ_in() -> None:
    """Made by hand: a key of two runs, and one of a newer torch in each of them, with another default dtype."""

    def found(shared: dict[str, str] | None, *dtypes: str, key: str = "f1") -> list[dict[str, object]]:
        runs = []
        for number, dtype in enumerate(dtypes):
            newer = {"gm": "g", "x": str(number), "default_dtype": dtype}
            lookups = [(key.format(number), shared), (f"f2{number}", newer)]
            runs.append(made.run(*(made.fx(key, "hit", details, at=number) for key, details in lookups)))
        return [row for row in records(made.scope_of(*runs).false_hits) if row["kind"] == "missing_field"]

    (row,) = found({"gm": "g"}, "float32", "float64")
    wanted = (("default_dtype",), (0, 2), (0, 1), 2)
    assert (row["fields"], row["lookups"], row["runs"], row["hits"]) == wanted
    assert "1 key of torch before 2.13" in str(row["evidence"])
    # Of a key of which nothing is recorded nobody knows what it lacks.
    assert found(None, "float32", "float64") == []
    assert found({"gm": "g"}, "float32", "float32") == []
    assert found({"gm": "g", "default_dtype": "float32"}, "float32", "float64") == []
    assert found({"gm": "g"}, "float32") == []
    # Of keys that no two runs looked up, none was shared.
    assert found({"gm": "g"}, "float32", "float64", key="f1{}") == []


def stored(name: str, **told: Any) -> Stored:
    return entry(told.pop("cache", "fxgraph"), "f1", told.pop("details", None), name=name, **told)


def found(*entries: Stored, sources: dict[int, str] | None = None) -> list[dict[str, Any]]:
    return doubts_of(scope_of(entries=entries), lambda row: (sources or {}).get(row.entry))


def doubts_of(scope: Scope, source_of: SourceOf) -> list[dict[str, Any]]:
    tables = replace(scope.tables, contexts=Table(ContextRow, []))
    return [asdict(one) for one in false_hits(scope.shown.rows, tables, source_of)]


CODE = "entries of one key and equal guards hold different generated code: "
NOT_READ = "entries of one key and equal guards name different generated code (caaaaaaa… and cbbbbbbb…), and it could not be read"
A, B = ({"code_key": "c" + letter * 51} for letter in "ab")


@pytest.mark.parametrize(("told", "sources", "evidence"), [
    ([A, B], {0: "x\ny", 1: "x\nz"}, CODE + "line 2 is 'y' and 'z'"),
    ([A, B], {0: "  x", 1: "z"}, CODE + "line 1 is 'x' and 'z'"),
    ([A, B], {0: "x" * 60, 1: "y" * 61}, CODE + f"line 1 is {'x' * 60!r} and {'y' * 60 + '…'!r}"),
    ([A, B], {0: "x", 1: "x\ny"}, CODE + "1 and 2 lines"),
    # But for what identifies the process it is the same.
    ([A, B], {0: "x\n# of 1", 1: "x\n# of 2"}, None),
    ([A, A], {0: "x", 1: "y"}, None),
    ([A, B], {0: "x"}, NOT_READ),
    ([A, B], {}, NOT_READ),
    ([A, B, {"code_key": "c" + "d" * 51}], {}, NOT_READ),
    ([A, B, {"code_key": "c" + "d" * 51}], {0: "x", 2: "y"}, CODE + "line 1 is 'x' and 'y'"),
    # Of three, the first two are compared.
    ([A, B, {"code_key": "c" + "d" * 51}], {0: "x", 1: "y", 2: "z"}, CODE + "line 1 is 'x' and 'y'"),
    ([A, {}], {0: "x"}, None),
    ([{}, {}], {}, None),
    # Of other guards, keys, caches or damaged nothing is compared.
    ([A, {**B, "guards_expr": "s"}], {0: "x", 1: "y"}, None),
    ([A, {**B, "status": "damaged"}], {0: "x", 1: "y"}, None),
    ([A, {**B, "cache_key": "f2"}], {0: "x", 1: "y"}, None),
    ([A, {**B, "cache_key": None}], {0: "x", 1: "y"}, None),
    ([{**A, "cache": "triton"}, {**B, "cache": "triton"}], {0: "x", 1: "y"}, None),
    ([{**A, "guards_expr": "s"}, {**B, "guards_expr": "s"}], {0: "x", 1: "y"}, CODE + "line 1 is 'x' and 'y'"),
    # A process finds either: they may be in two directories.
    ([A, {**B, "root": "/other"}], {0: "x", 1: "y"}, CODE + "line 1 is 'x' and 'y'"),
], ids=range(20))  # fmt: skip
def test_the_code_of_one_key(told: list[dict[str, Any]], sources: dict[int, str], evidence: str | None) -> None:  # fmt: skip
    rows = found(*(stored(f"e{at}", **one) for at, one in enumerate(told)), sources=sources)
    assert [row["kind"] for row in rows] == ([] if evidence is None else ["different_code"])
    for row in rows:
        assert row["evidence"].startswith(evidence)
        assert row["entries"] == tuple(range(len(told)))
        assert (row["cache"], row["cache_key"], row["fields"]) == ("fxgraph", "f1", ("code_key",))
        assert (row["lookups"], row["runs"], row["hits"]) == ((), (), 0)


def test_code_is_read_where_keys_differ_and_once_for_each() -> None:
    asked: list[int] = []
    scope = scope_of(entries=[stored(f"e{at}", **told) for at, told in enumerate((A, B, A, B))])
    assert len(doubts_of(scope, lambda row: asked.append(row.entry))) == 1
    assert len(asked) == 2


@pytest.mark.parametrize(("name", "values", "kind", "said"), [
    ("fx_keys", (("fa",), ("fb",)), "different_graphs", "point to different FX graphs: fa and fb"),
    ("fx_keys", (("fa",), ()), "different_graphs", "point to different FX graphs: fa and none"),
    ("fx_keys", (("fa", "fb"), ("fc",)), "different_graphs", "point to different FX graphs: fa, fb and fc"),
    ("fx_keys", (("f" * 12,), ("g" * 13,)), "different_graphs", f"graphs: {'f' * 12} and {'g' * 12}…"),
    ("fx_keys", tuple((f"f{n}",) for n in range(4)), "different_graphs", "FX graphs: f0 and f1 and f2 and f3"),
    ("fx_keys", tuple((f"f{n}",) for n in range(5)), "different_graphs", "FX graphs: f0 and f1 and f2 and f3 and more"),
    ("fx_keys", (("fa",), ("fa",)), None, ""),
    ("device_types", (("cpu",), ("cuda",)), "different_devices", "run on different devices: cpu and cuda"),
    ("device_types", (("cpu",), ("cpu",)), None, ""),
])  # fmt: skip
def test_what_entries_of_one_key_point_to(
    name: str, values: tuple[tuple[str, ...], ...], kind: str | None, said: str
) -> None:
    rows = found(*(stored(f"e{at}", **{name: value}) for at, value in enumerate(values)))
    assert [(row["kind"], row["fields"]) for row in rows] == ([] if kind is None else [(kind, (name,))])
    for row in rows:
        sentence = f"entries of one key and equal guards {said}"
        assert row["evidence"] == sentence or row["evidence"].endswith(said)
        assert row["entries"] == tuple(range(len(values)))


def test_the_details_of_entries_count_as_well() -> None:
    one, other = {"gm": "g", "x": "1"}, {"gm": "g", "x": "2"}
    (row,) = found(stored("a", details=one), stored("b", details=other), stored("c"))
    assert (row["kind"], row["fields"], row["entries"]) == ("different_details", ("x",), (0, 1))
    scope = scope_of(run(fx("f1", "hit", one, at=1)), entries=[stored("a", details=other)])
    (row,) = scope.false_hits.to_dict("records")
    assert (row["fields"], row["entries"], row["lookups"], row["hits"]) == (("x",), (0,), (0,), 1)
    assert row["evidence"] == "one key was recorded with different hashes of x"
