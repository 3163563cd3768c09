"""Asking this machine. There is no GPU here: torch and NVML are fakes, and say so; real GPUs are tested where there is one."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from cachescope.capture.devices import torch_devices
from cachescope.devices.live import measurements, nvml_mentions, this_machine
from cachescope.errors import CachescopeError
from tests.keys.test_isolation import H100

UUID = "5f1b8c9e-0c1d-4d3a-9b7e-2f8f4a6d0c11"


class FakeProperties:
    warp_size = 32
    clock_rate = 1980000

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def fake_torch(*texts: str) -> Any:
    """A stand-in for torch with these devices; tensors are nothing but a place."""
    cuda = SimpleNamespace(
        is_available=lambda: bool(texts),
        device_count=lambda: len(texts),
        get_device_properties=lambda index: FakeProperties(texts[index]),
        set_device=lambda index: None,
    )
    made = SimpleNamespace(copy_=lambda other: None)
    return SimpleNamespace(
        cuda=cuda, device=lambda kind, index: (kind, index), empty=lambda *size, **how: made,
        empty_like=lambda other: made, randn=lambda *size, **how: made, mm=lambda left, right: None,
        uint8=None, float16=None, bfloat16=None, float32=None,
    )  # fmt: skip


class FakeNvmlError(Exception):
    pass


class FakeNvml:
    """A stand-in for pynvml with one H100 whose clocks cannot be read."""

    NVMLError = FakeNvmlError

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails
        self.is_shut = False

    def nvmlInit(self) -> None:  # noqa: N802
        if self.fails:
            raise FakeNvmlError("Driver Not Loaded")

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.is_shut = True

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 1

    def nvmlDeviceGetMaxClockInfo(self, handle: int, clock: int) -> int:  # noqa: N802
        raise FakeNvmlError("Not Supported")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        answers: dict[str, Any] = {
            "nvmlDeviceGetHandleByIndex": 0,
            "nvmlDeviceGetCudaComputeCapability": (9, 0),
            "nvmlDeviceGetName": b"NVIDIA H100 80GB HBM3",
            "nvmlDeviceGetUUID": f"GPU-{UUID}",
            "nvmlDeviceGetPciInfo": SimpleNamespace(busId="00000000:19:00.0"),
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=81559 << 20),
        }
        return lambda *_: answers[name]


def test_torch_and_nvml_tell_of_one_board() -> None:
    nvml = FakeNvml()
    (gpu, cpu), notes = this_machine(fake_torch(H100), nvml)
    assert gpu.uuid == UUID
    assert gpu.seen_in == ("torch on this machine", "NVML on this machine")
    assert (gpu.pci, gpu.warp_size, gpu.memory_bytes) == ("0000:19:00", 32, 81090 << 20)
    assert (gpu.runs, gpu.indices) == ((), (0,))
    assert '"clock_rate": "1980000"' in gpu.properties
    assert (cpu.name, cpu.type) == ("cpu", "cpu") and (cpu.sm_count or 0) >= 1
    assert notes == [] and nvml.is_shut


def test_a_torch_without_uuids_means_the_board_of_nvml() -> None:
    text = "_CudaDeviceProperties(name='NVIDIA H100 80GB HBM3', major=9, minor=0, multi_processor_count=132)"
    (gpu, _), _ = this_machine(fake_torch(text), FakeNvml())
    assert (gpu.uuid, gpu.sm_count) == (UUID, 132)


def test_where_nothing_answers_each_way_says_so() -> None:
    devices, notes = this_machine(fake_torch(), FakeNvml(fails=True))
    assert [row.name for row in devices] == ["cpu"]
    assert notes == ["torch sees no GPU", "NVML reports no device: Driver Not Loaded"]


def test_without_the_package_nvml_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    assert nvml_mentions() == ([], "NVML was not asked: pip install 'cachescope[gpu]'")


def test_measured_rates_stand_beside_the_datasheets() -> None:
    rows = measurements(fake_torch(H100), lambda run: 1.0 if run() is None else 0.0)
    assert [row.what for row in rows] == ["copy", "matmul fp16", "matmul bf16", "matmul fp32"]
    copy, fp16, *_ = rows
    assert copy.measured == pytest.approx(2 * 2**30 / 1e6)
    assert copy.share == pytest.approx(copy.measured / 3350)
    assert fp16.measured == pytest.approx(2 * 8192**3 / 1e9)
    assert fp16.datasheet == 989.5


def test_an_unknown_device_is_measured_without_a_share() -> None:
    rows = measurements(fake_torch(H100.replace("NVIDIA H100 80GB HBM3", "Acme X9000")), lambda run: 1.0)
    assert {row.share for row in rows} == {None} and all(row.measured for row in rows)


def test_without_a_gpu_there_is_nothing_to_measure() -> None:
    with pytest.raises(CachescopeError, match="needs a GPU"):
        measurements(fake_torch())


@pytest.mark.gpu
def test_on_a_real_gpu_live_values_equal_those_in_torchs_text() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU on this machine: the texts are tested by hand-made ones alone")
    for device, row in zip(torch_devices(), this_machine()[0], strict=False):
        properties = torch.cuda.get_device_properties(device.index)
        assert row.name == properties.name
        assert row.memory_bytes == properties.total_memory >> 20 << 20
        assert row.sm_count == properties.multi_processor_count
        assert row.uuid == str(properties.uuid)
        if torch.version.hip is None:
            assert row.compute_capability == f"{properties.major}.{properties.minor}"


@pytest.mark.gpu
def test_on_a_real_gpu_no_rate_is_above_its_datasheet() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU on this machine: nothing to measure")
    rows = measurements()
    assert all(row.measured > 0 for row in rows)
    assert all(row.share < 1.05 for row in rows if row.share is not None)
