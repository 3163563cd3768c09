"""Entries made for one CPU, in a process limited to another: what is predicted, and what torch then does."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import cachescope
from tests.capture.preflights import environment
from tests.programs import ran

pytestmark = [pytest.mark.torch, pytest.mark.sweep]
ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "capture" / "cpu_program.py"
# What the same machine can be limited to.
OTHER = {"AVX512": "avx2", "AVX2": "default"}
FUNCTIONS = ("product", "waves", "total")
COLD = {"is_right": True, "fxgraph": 0, "aotautograd": 0}
FOUND = {"is_right": True, "fxgraph": 1, "aotautograd": 1}


def run(folder: Path, cache: Path, *arguments: str, capability: str | None = None) -> dict[str, Any]:
    """What torch counted, and whether its numbers were right, by function."""
    variables = environment(cache, OMP_NUM_THREADS="1")
    variables.pop("ATEN_CPU_CAPABILITY", None)
    own = {} if capability is None else {"ATEN_CPU_CAPABILITY": capability}
    # Another CPU's code may end the process; that own code does not is seen from its results.
    ran([sys.executable, PROGRAM, folder, *arguments], variables | own, status=None)
    results: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return results


@pytest.fixture(scope="module")
def other() -> str:
    """What this CPU can be limited to. Without vectors of its own there is nothing to be taken for another CPU's."""
    own = pytest.importorskip("torch").backends.cpu.get_cpu_capability()
    if own not in OTHER:
        pytest.skip("this CPU has no vectors that it could be limited to do without")
    return OTHER[own]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cache and a mega-cache of the same entries, made with all that this CPU can do."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("made")
    results = run(folder / "own", folder / "cache", "--save", str(folder / "mega.bin"))
    assert results == dict.fromkeys(FUNCTIONS, COLD)
    return folder


@pytest.mark.parametrize("source", ["cache", "mega.bin"])
def test_its_own_process_finds_everything_and_it_is_safe(made: Path, source: str) -> None:
    predicted = cachescope.will_hit(made / source, made / "own" / "host.json")
    assert sorted(predicted["cache"]) == ["aotautograd"] * 3 + ["fxgraph"] * 3
    assert set(predicted["will_hit"]) == {"yes"}
    assert predicted["is_unsafe"].tolist() == [False] * 6
    assert predicted["unsafe_reason"].isna().all()


@pytest.mark.parametrize("source", ["cache", "mega.bin"])
def test_what_is_wrong_on_another_cpu_is_unsafe(made: Path, other: str, tmp_path: Path, source: str) -> None:
    if source == "cache":
        results = run(tmp_path / "other", made / "cache", capability=other)
    else:
        # Into an empty directory: what is found comes out of the file.
        loaded = ("--load", str(made / source))
        results = run(tmp_path / "other", tmp_path / "empty", *loaded, capability=other)
    # Torch finds all of it, and only what a library computes is right.
    assert {name for name, result in results.items() if result["is_right"]} == {"product"}
    assert results["product"]["fxgraph"] == 1

    predicted = cachescope.will_hit(made / source, tmp_path / "other" / "host.json")
    assert set(predicted["will_hit"]) == {"yes"}
    unsafe = predicted[predicted["is_unsafe"]]
    assert sorted(unsafe["cache"]) == ["aotautograd"] * 2 + ["fxgraph"] * 2
    assert all("built for another CPU" in reason for reason in unsafe["unsafe_reason"])
    assert predicted.loc[~predicted["is_unsafe"], "cache"].tolist().count("fxgraph") == 1

    told = repr(cachescope.compare(made / source, tmp_path / "other" / "host.json"))
    assert told.startswith("4 entries unsafe: torch would load code that was built for another CPU")


def test_what_a_mega_cache_holds_is_found_once_it_is_loaded(made: Path, tmp_path: Path) -> None:
    results = run(tmp_path / "other", tmp_path / "empty", "--load", str(made / "mega.bin"))
    assert results == dict.fromkeys(FUNCTIONS, FOUND)
    predicted = cachescope.will_hit(made / "mega.bin", tmp_path / "other" / "host.json")
    assert predicted["will_hit"].tolist() == ["yes"] * 6
    assert set(predicted["entry"]) <= set(cachescope.read(made / "mega.bin").entries["entry"])
    of_directory = cachescope.will_hit(made / "cache", tmp_path / "other" / "host.json")
    assert set(predicted["cache_key"]) == set(of_directory["cache_key"])


def test_of_a_snapshot_without_the_cpu_it_is_not_known(made: Path) -> None:
    snapshot = json.loads((made / "own" / "host.json").read_text())
    del snapshot["settings"]["torch.backends.cpu.get_cpu_capability()"]
    predicted = cachescope.will_hit(made / "cache", snapshot)
    assert set(predicted["will_hit"]) == {"yes"}
    assert predicted["is_unsafe"].isna().sum() == 4
    not_known = predicted.loc[predicted["is_unsafe"].isna(), "unsafe_reason"]
    assert all("is not known" in reason for reason in not_known)
