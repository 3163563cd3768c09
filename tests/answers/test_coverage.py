"""What a bundle covers of a run, against what torch found when it began with that bundle.

``early.bin`` was saved before the last compiles, ``late.bin`` after them by the same process: torch loads only what the second
save added. ``load_early.bin`` was saved once, by a process that loaded the first and compiled the rest.
"""

import json
import pickle
from collections import Counter, defaultdict
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from cachescope.cli import main
from cachescope.readers.directory.bundles import entries_inside
from cachescope.readers.reading import Reading
from tests.conftest import Archive

# Many compare whole directories; `tests/analysis/directory/test_coverage_rows.py` is quick.
pytestmark = pytest.mark.slow

BUNDLES = ("early", "late")
CACHES = ["aotautograd", "fxgraph"]
# Of each cache and key, how its lookups end.
Outcomes = dict[tuple[str, str], list[str]]


@pytest.fixture(scope="module")
def covered(archive: Archive) -> Path:
    return archive("covered/2.13.0") / "2.13.0"


def coverage(bundle: Path, other: Path) -> pd.DataFrame:
    found = cachescope.compare(bundle, other).coverage
    assert list(found.columns) == cachescope.describe("coverage")["column"].tolist()
    return found


def outcomes(run: Path) -> Outcomes:
    ended = defaultdict(list)
    for row in cachescope.read(run / "trace").lookups.itertuples():
        ended[row.cache, row.cache_key].append("yes" if row.outcome == "hit" else "no")
    return dict(ended)


def answers(found: pd.DataFrame, run: Path) -> Outcomes:
    """What is said of each lookup of a run, in the same form."""
    said = {}
    for row in found[found["entry"].isna()].itertuples():
        said.setdefault((row.cache, row.cache_key), []).extend([row.held] * row.lookups)
    return said


def unknown_beside(said: Outcomes, truth: Outcomes) -> int:
    """Of how many lookups it is not known; of the others what torch found is said."""
    assert said.keys() == truth.keys()
    for key, found in truth.items():
        assert all(one in (other, "unknown") for one, other in zip(said[key], found, strict=True)), key
    return sum(found.count("unknown") for found in said.values())


@pytest.mark.parametrize("bundle", BUNDLES)
def test_of_the_run_that_began_with_it_is_said_what_torch_found(bundle: str, covered: Path) -> None:
    run = covered / f"load_{bundle}"
    said = answers(coverage(covered / f"{bundle}.bin", run / "trace"), run)
    assert unknown_beside(said, outcomes(run)) == 0


@pytest.mark.parametrize("bundle", BUNDLES)
def test_of_the_run_that_made_it_is_said_what_torch_found_in_the_next(bundle: str, covered: Path) -> None:
    """Where the guards of a compile are not recorded it is unknown."""
    run, truth = covered / "make", outcomes(covered / f"load_{bundle}")
    said = answers(coverage(covered / f"{bundle}.bin", run), run)
    assert unknown_beside(said, truth) == (2 if bundle == "early" else 4)


def test_what_was_compiled_after_it_was_saved_is_not_in_it(covered: Path) -> None:
    said = json.loads((covered / "make.json").read_text())
    later = {kind: Counter(said["late"][kind]) - Counter(said["early"][kind]) for kind in said["late"]}
    assert {kind: sum(found.values()) for kind, found in later.items()} == {
        "inductor": 2, "aot_autograd": 2, "pgo": 2,
    }  # fmt: skip
    found = coverage(covered / "early.bin", covered / "make" / "cache")
    missing = found[found["held"] == "no"]
    for kind, cache in (("aot_autograd", "aotautograd"), ("inductor", "fxgraph")):
        assert Counter(missing.loc[missing["cache"] == cache, "cache_key"]) == later[kind]
    wanted = ["the bundle holds another state of it"]
    assert missing.loc[missing["cache"] == "pgo", "reason"].tolist() == wanted


def test_of_two_saves_torch_loads_the_second(covered: Path) -> None:
    """By what ``load_cache_artifacts`` returned, and by what it is said to have lost."""
    loaded = json.loads((covered / "load_late.json").read_text())["loaded"]
    inside = entries_inside(str(covered / "late.bin"), Reading())
    assert sorted(one.cache_key or "" for one in inside if one.cache == "fxgraph") == loaded["inductor"]
    assert sorted(i.cache_key or "" for i in inside if i.cache == "aotautograd") == loaded["aot_autograd"]
    (entry,) = cachescope.read(covered / "late.bin").entries["detail"]
    assert entry.endswith("; torch loads only what was saved last, 6 of 16")
    (once,) = cachescope.read(covered / "load_early.bin").entries["detail"]
    assert once == "pgo 4, aot_autograd 5, inductor 6"
    found = coverage(covered / "late.bin", covered / "make" / "cache")
    lost = found["reason"].str.contains("of several saves")
    assert set(found.loc[lost, "held"]) == {"no"}
    assert Counter(found.loc[lost, "cache"]) == {"fxgraph": 4, "aotautograd": 3}


def test_with_the_directory_beside_it_every_lookup_of_guarded_keys_is_known(covered: Path) -> None:
    """All entries that the run made are in the bundle, whichever of them a lookup needs."""
    run = covered / "make"
    found = coverage(covered / "load_early.bin", run)
    graphs = found[found["cache"].isin(CACHES)]
    assert set(graphs["held"]) == {"yes"} and int(graphs["lookups"].sum()) == 11
    assert Counter(graphs.loc[graphs["entry"].notna(), "cache"]) == {"fxgraph": 6, "aotautograd": 5}
    guarded = answers(coverage(covered / "load_early.bin", run / "trace"), run)
    assert Counter(one for said in guarded.values() for one in said) == {"yes": 7, "unknown": 4}


def test_a_link_to_a_bundle_covers_the_same(covered: Path, tmp_path: Path) -> None:
    link = tmp_path / "latest"
    link.symlink_to(covered / "early.bin")
    run = covered / "make" / "cache"
    assert coverage(link, run)["held"].tolist() == coverage(covered / "early.bin", run)["held"].tolist()


def test_a_bundle_that_torch_does_not_load_covers_nothing(covered: Path, tmp_path: Path) -> None:
    whole = (covered / "late.bin").read_bytes()
    for name, data in {"cut": whole[:-1000], "altered": whole[:-1] + bytes([whole[-1] ^ 1])}.items():
        path = tmp_path / name
        path.write_bytes(data)
        found = coverage(path, covered / "make")
        assert set(found["held"]) == {"no"}
        assert found["reason"].str.startswith("torch loads nothing of the bundle: ").all()


def test_the_command_counts_and_says_why(covered: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(covered / "early.bin"), str(covered / "make")]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "the bundle covers 5 of 11 lookups of the run; of 2 it is not known" in text
    assert "the bundle holds 7 of 12 entries of the cache directory" in text
    assert "no: it is not in the bundle 2 lookups aotautograd aiwf6oqc…, fxgraph fyash4hl…" in text
    assert main(["diff", "--json", str(covered / "early.bin"), str(covered / "make")]) == 0
    assert len(json.loads(capsys.readouterr().out)["coverage"]) == 23


def test_two_directories_have_no_coverage(covered: Path) -> None:
    assert cachescope.compare(covered / "make" / "cache", covered / "make" / "trace").coverage is None
    assert cachescope.compare(covered / "early.bin", covered / "late.bin").coverage is None


def test_others_compare_by_content(covered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's own functions, called directly, write the bundle and the files: a best configuration needs a GPU."""
    pytest.importorskip("torch")
    from torch._dynamo.package import PrecompileCacheEntry
    from torch.compiler._cache import CacheArtifactManager

    made, bundle = tmp_path / "made", tmp_path / "bundle.bin"
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(made))
    CacheArtifactManager._ensure_cache_artifacts_registered()
    best = {"XBLOCK": 64, "num_warps": 4, "num_stages": 1, "configs_hash": "0" * 64}
    package = pickle.dumps(PrecompileCacheEntry(dynamo=None, backends={}))
    (state,) = (path.read_bytes() for path in (covered / "make" / "cache" / "dynamo").glob("*.pkl"))
    name = f"ab/{'1' * 64}.best_config"
    with CacheArtifactManager.with_fresh_cache():
        CacheArtifactManager.record_artifact("autotune", name, best)
        CacheArtifactManager.record_artifact("precompile", "program_0", package)
        CacheArtifactManager.record_artifact("pgo", "job:0", state)
        saved = CacheArtifactManager.serialize()
    bundle.write_bytes(saved[0])
    artifacts = CacheArtifactManager.deserialize(saved[0])
    assert artifacts is not None
    CacheArtifactManager.populate_caches(artifacts)

    def held() -> dict[str, str]:
        found = coverage(bundle, made)
        return dict(zip(found["cache"], found["held"], strict=True))

    assert held() == {"best_config": "yes", "precompile": "yes", "pgo": "yes"}
    (made / name).write_text(json.dumps(best | {"XBLOCK": 128}))
    (made / "dynamo" / "program_0" / "entry").unlink()
    (made / "dynamo" / "code_state_job_0.pkl").rename(made / "dynamo" / "code_state_job_1.pkl")
    assert held() == {"best_config": "no", "pgo": "no"}
