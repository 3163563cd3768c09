"""Whether a start of vLLM would use a folder, told from its environment: beside what vLLM itself did in each recorded step."""

import json
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.analysis.vllm.factors import Named
from cachescope.answers.vllm_start import VllmStart, prospect_of
from cachescope.cli import main
from tests.vllm_recordings import CHANGED, VERSIONS, Recorded, recorded

# What every step has (`environment` of tests/data/record_vllm.py), as far as vLLM counts it.
ALL = {"VLLM_TARGET_DEVICE": "cpu"}


@pytest.fixture(scope="module", params=VERSIONS)
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(request.param, tmp_path_factory.mktemp("vllm"))


def differing(found: VllmStart) -> dict[str, set[str]]:
    return {one.folder: {other.name for other in one.differing} for one in found.prospects}


def test_a_step_may_use_its_own_folder_and_not_those_of_another_environment(recording: Recorded) -> None:
    read = cachescope.read(recording.cache)
    folders = {step: recording.folder(step) for step in recording.factors}
    named = {row.name for row in read.named_of_vllm}
    said = 0
    for step, folder in folders.items():
        found = VllmStart.of(read, ALL | recording.steps[step]["environment"])
        prospects = differing(found)
        if folder in named:
            # vLLM used it, so nothing may be said to keep it from that.
            assert prospects[folder] == set() and found.may_hit
        variables = {name for name in CHANGED[recording.version].get(step, ()) if name.startswith("env[")}
        # Paths below HOME follow from a function of vLLM's own.
        told = {name[4:-1] for name in variables} - {"VLLM_CONFIG_ROOT", "VLLM_XLA_CACHE_PATH"}
        if step in CHANGED[recording.version]:
            assert prospects[folders["first"]] == told, step
            said += bool(told)
    assert said == 2


def test_every_variable_that_the_folder_has_is_equal_differs_or_is_not_known(recording: Recorded) -> None:
    read = cachescope.read(recording.cache)
    counts = {row.name: sum(name.startswith("env[") for name in row.values) for row in read.named_of_vllm}
    for one in VllmStart.of(read, {"VLLM_TARGET_DEVICE": "tpu"}).prospects:
        assert one.equal + len(one.differing) + len(one.not_known) == counts[one.folder]
        (other,) = (other for other in one.differing if other.name == "VLLM_TARGET_DEVICE")
        assert (other.here, other.reads_as, other.folder) == ("tpu", '"tpu"', '"cpu"')
        # Most can be read: those that cannot are few.
        assert len(one.not_known) < 0.2 * counts[one.folder]


def test_what_vllm_sets_itself_and_what_it_refuses_is_not_known(recording: Recorded) -> None:
    read = cachescope.read(recording.cache)
    for environment in ({}, {"VLLM_DISABLE_SHARED_EXPERTS_STREAM": "x"}):
        for one in VllmStart.of(read, ALL | environment).prospects:
            # vLLM's CPU platform sets it: 0.13.0 and 0.33.0, vllm/platforms/cpu.py.
            assert "VLLM_DISABLE_SHARED_EXPERTS_STREAM" in one.not_known


def test_the_command(recording: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pod.env"
    file.write_text("# of a pod\nexport VLLM_TARGET_DEVICE=cpu\nVLLM_API_KEY=hunter2-is-my-key\nnonsense\n")
    assert main(["vllm", str(recording.cache), "--env", str(file), "--json"]) in (0, 3)
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert main(["vllm", str(recording.cache), "--env", str(file)]) == (0 if answer["may_hit"] else 3)
    text = capsys.readouterr().out
    assert "hunter2" not in text + json.dumps(answer)
    # 0.13.0 counts the key of the server.
    assert ("VLLM_API_KEY is (secret)" in text) == (recording.version == "0.13.0")
    assert "Not known before a start" in text
    file.write_bytes(b"\xff\x00=\xff\nVLLM_TARGET_DEVICE=tpu\n")
    assert main(["vllm", str(recording.cache), "--env", str(file)]) == 3
    assert 'VLLM_TARGET_DEVICE is tpu, which is "tpu" to vLLM; the folder has "cpu"' in " ".join(
        capsys.readouterr().out.split()
    )
    assert main(["vllm", str(recording.cache), "--env", str(tmp_path / "none")]) == 1


def test_without_factors_nothing_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "torch_compile_cache" / "0123456789" / "rank_0_0").mkdir(parents=True)
    (tmp_path / "torch_compile_cache" / "0123456789" / "rank_0_0" / "vllm_compile_cache.py").write_text("{}")
    assert main(["vllm", str(tmp_path)]) == 3
    text = " ".join(capsys.readouterr().out.split())
    assert "no folder here keeps its factors" in text and "not known of 1 further folder" in text


def test_of_another_release_what_is_not_set_is_not_known() -> None:
    """Defaults change from release to release; a folder of none that is known has another set of variables."""
    values = {"env[VLLM_TARGET_DEVICE]": '"cpu"', "env[VLLM_USE_TRITON_AWQ]": "true"}
    one = prospect_of(Named("f", values, 0), {"VLLM_TARGET_DEVICE": "tpu"})
    assert [other.name for other in one.differing] == ["VLLM_TARGET_DEVICE"]
    assert one.not_known == ("VLLM_USE_TRITON_AWQ",)
