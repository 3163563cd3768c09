"""``cachescope devices``: of sources, of this machine, measured, redacted."""

import json
from pathlib import Path

import pytest

from cachescope.capture import devices as capture_devices
from cachescope.devices import live
from cachescope.devices.mention import of_properties
from cachescope.devices.merged import device_rows
from cachescope.report.devices import device_lines
from tests.cli.conftest import Run, command, in_pipe
from tests.conftest import Directory
from tests.devices.test_live import UUID, FakeNvml, fake_torch
from tests.keys.test_isolation import FABRICATED, H100


@pytest.fixture
def h100(tmp_path: Path) -> Path:
    """A context with an H100, made by hand."""
    path = tmp_path / "context.json"
    path.write_text(json.dumps(FABRICATED["cuda"]))
    return path


def test_a_context_shows_its_device_and_the_datasheet(run: Run, h100: Path) -> None:
    done = run("devices", h100)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("1 device\n\n0  NVIDIA H100 80GB HBM3")
    assert "cuda, sm_90" in done.out and "132 SMs" in done.out
    assert "tf32 494.5" in done.out and "3350 GB/s" in done.out
    assert "by the datasheet of NVIDIA H100 SXM" in done.out
    assert "halved here" in done.out and "https://www.nvidia.com/en-us/data-center/h100/" in done.out


def test_json_has_the_rows_of_the_frame(run: Run, h100: Path) -> None:
    answer = run("devices", h100, "--json").json
    assert answer.keys() == {"cachescope", "devices", "problems", "notes"}
    (device,) = answer["devices"]
    assert device["peak_bf16_tflops"] == 989.5 and device["uuid"] == UUID


def test_a_datasheet_is_shown_once_for_boards_of_one_model() -> None:
    # Made by hand: two boards, and a device that no datasheet is of.
    other = H100.replace("NVIDIA", "Acme").replace("uuid=5f", "uuid=7f")
    boards = [H100, H100.replace("uuid=5f", "uuid=6f"), other]
    rows = device_rows(mention for text in boards if (mention := of_properties(text, "snapshot")))
    texts = [line.text for line in device_lines(rows)]
    assert sum("494.5" in text for text in texts) == 1
    assert "peak rates as of 0: NVIDIA H100 SXM" in texts
    assert "no peak rates: no datasheet of that name" in texts


def test_targets_of_triton_are_devices_of_their_own(run: Run, directory: Directory) -> None:
    done = run("devices", directory("triton_cross"))
    assert "cuda sm_80" in done.out and "cuda sm_90" in done.out
    assert "TFLOPS" not in done.out


@pytest.mark.slow
def test_in_a_pipe_it_is_plain() -> None:
    done = in_pipe(command("devices", "cachescope/samples/tour"), cwd=Path(__file__).parents[2])
    assert done.returncode == 0 and done.stdout.startswith("1 device\n\n0  cpu")
    assert "\x1b" not in done.stdout and all(len(line) <= 100 for line in done.stdout.splitlines())


def test_without_a_path_it_tells_of_this_machine(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_devices, "torch_module", lambda name, why: fake_torch())
    done = run("devices")
    assert done.status == 0
    assert "cpu" in done.out and "torch sees no GPU" in done.out


@pytest.mark.slow
def test_a_gpu_is_measured_beside_its_datasheet(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_devices, "torch_module", lambda name, why: fake_torch(H100))
    monkeypatch.setattr(capture_devices, "_benchmark_gpu", lambda: lambda run: 1.0)
    monkeypatch.setattr(live, "nvml_mentions", lambda nvml, asked=live.nvml_mentions: asked(FakeNvml()))
    done = run("devices", "--measure", "--redact")
    assert done.status == 0 and UUID not in done.out
    assert "copy: 2147 GB/s" in done.out and "64 % of 3350" in done.out
    measured = run("devices", "--measure", "--json").json["device_measurements"]
    assert [row["what"] for row in measured] == ["copy", "matmul fp16", "matmul bf16", "matmul fp32"]


def test_without_a_gpu_measuring_says_so_in_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_devices, "torch_module", lambda name, why: fake_torch())
    done = run("devices", "--measure")
    assert (done.status, done.out) == (1, "")
    assert done.err == "cachescope: --measure needs a GPU that torch can use, and there is none here\n"


def test_measuring_a_source_is_wrong_usage(run: Run, h100: Path) -> None:
    done = run("devices", h100, "--measure")
    assert (done.status, done.out) == (2, "") and done.err.count("\n") == 1
