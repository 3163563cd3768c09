"""What is said against caches that vLLM wrote: no danger, and of each compiled model that its graphs are not looked at."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

import cachescope
from tests.hostile_pickles import hostile
from tests.vllm_recordings import VERSIONS, Recorded, recorded, recorded_ranks

MESSAGE = "loading it rebuilds graphs; what these call is not looked at"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("recording", [recorded, pytest.param(recorded_ranks, marks=pytest.mark.slow)])
def test_of_a_real_cache_only_models_are_not_known_to_be_safe(
    recording: Callable[[str, Path], Recorded], version: str, tmp_path: Path
) -> None:
    cache = recording(version, tmp_path).cache
    found = cachescope.audit(cache)
    assert not found["level"].isin(["danger", "warning"]).any()
    against = found[found["rule"] == "not-followed"]
    assert set(against["message"]) == {MESSAGE}
    assert sorted(against["path"]) == sorted(str(path) for path in cache.rglob("model") if path.is_file())


def model_at(tmp_path: Path, data: bytes, key: str = "a" * 64) -> Path:
    path = tmp_path / "torch_aot_compile" / key / "rank_0_0" / "model"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


def test_the_graphs_of_another_file_are_no_excuse(tmp_path: Path) -> None:
    """The same bytes elsewhere: torch's own packages need no graph pickler."""
    model = next(path for path in recorded(VERSIONS[-1], tmp_path).cache.rglob("model") if path.is_file())
    path = tmp_path / "function.pt"
    path.write_bytes(model.read_bytes())
    assert "danger" in set(cachescope.audit(path)["level"])


@pytest.mark.parametrize("made", ["os.system", "partial of a partial", "another function of a partial"])
def test_a_model_that_runs_a_program_is_a_danger(made: str, tmp_path: Path) -> None:
    parts = {"signature": 0, "original_code": 0, "guards_state": b""}
    start = b"\x80\x04cfunctools\npartial\n"
    inside = {
        "os.system": b"\x80\x04cos\nsystem\n\x8c\x04true\x85R.",
        "partial of a partial": start + b"(cfunctools\npartial\n(cbuiltins\nint\ntRtR)R.",
        # __setstate__ of a partial: the function is the result of a call.
        "another function of a partial": start + b"(cbuiltins\nint\ntR(cbuiltins\nint\n)R)}Ntb)R.",
    }[made]
    data = pickle.dumps(parts | {"compiled_fn": inside}, 4)
    assert "danger" in set(cachescope.audit(model_at(tmp_path, data))["level"])


@pytest.mark.sweep
def test_every_hostile_pickle_is_found_in_a_model_too(tmp_path: Path) -> None:
    for number, (name, data) in enumerate(hostile(str(tmp_path / "ran")).items()):
        whole = pickle.dumps({"signature": 0, "compiled_fn": data}, 4)
        path = model_at(tmp_path / str(number), whole)
        elsewhere = tmp_path / f"{number}.pt"
        elsewhere.write_bytes(whole)
        rules = [set(cachescope.audit(one)["rule"]) - {"not-followed"} for one in (path, elsewhere)]
        assert rules[0] == rules[1] or "persistent id" in name, name
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("path", ["/usr/lib", "../../../../x", "/dev/shm/0123456789/rank_0_0/x", 7])
def test_a_handle_that_leads_outside_is_a_danger(path: object, tmp_path: Path) -> None:
    """The folder may have been moved: what has its names, and is not there, is a note."""
    folder = tmp_path / "torch_compile_cache" / "0123456789" / "rank_0_0" / "backbone"
    folder.mkdir(parents=True)
    own = str(folder / "artifact_compile_range_1_8_subgraph_0")
    for leads, level in (
        (path, {"danger", "note"}),
        (own, set()),
        (own.replace(str(tmp_path), "/gone"), {"note"}),
    ):
        handles = {((1, 8), 0, "inductor_standalone"): ("artifact_compile_range_1_8_subgraph_0", leads)}
        (folder / "vllm_compile_cache.py").write_text(repr(handles))
        assert set(cachescope.audit(tmp_path / "torch_compile_cache")["level"]) == level


def test_a_compiled_function_under_the_name_of_handles_is_audited(tmp_path: Path) -> None:
    path = tmp_path / "vllm_compile_cache.py"
    path.write_bytes(b"PT2AOT\x01" + pickle.dumps({"signature": 0}, 4))
    assert set(cachescope.audit(path)["level"]) == {"unproven"}


def test_a_cut_bytearray_is_damage_and_nothing_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = model_at(tmp_path, pickle.dumps({"signature": 0, "compiled_fn": bytearray(9_000)}, 5)[:3_000])
    assert "danger" not in set(cachescope.audit(path)["level"])
    assert capfd.readouterr().err == ""
