"""The card of one device: only what was seen and what a datasheet says. Texts of GPUs are made by hand (formats.md, 7.1)."""

import pytest

import cachescope
from cachescope.devices.mention import Mention, of_name, of_properties
from cachescope.devices.merged import device_named, device_rows
from cachescope.errors import NotFoundError
from cachescope.report.devices import DeviceCard
from tests.keys.test_isolation import H100, MI300X

OTHER = H100.replace("uuid=5f", "uuid=6f").replace("pci_bus_id=25", "pci_bus_id=26")


def cards(*mentions: Mention | None) -> list[DeviceCard]:
    rows = device_rows(mention for mention in mentions if mention is not None)
    return [DeviceCard(row) for row in rows]


def test_what_was_seen_stands_beside_the_datasheet() -> None:
    (card,) = cards(of_properties(H100, "snapshot", index=0))
    page = card._repr_html_()
    # By NVIDIA's datasheet of the H100 SXM: 989 dense TFLOPS of bf16, 3.35 TB/s.
    seen = ("NVIDIA H100 80GB HBM3", "79.2 GiB", "SMs", "sm_90", "snapshot")
    for text in (*seen, "H100 SXM", "3350 GB/s, 80 GB"):
        assert text in page, text
    assert "bf16 989" in page and "https://" in page
    assert "H100 SXM" in repr(card) and "https://" in repr(card)


def test_the_text_is_short_and_stable() -> None:
    card = cachescope.read(cachescope.sample("tour")).device_card(0)
    assert repr(card) == "0  cpu\n   seen in keys of lookups; runs 0-5"
    assert "TFLOPS" not in card._repr_html_() and card.frame["device"].tolist() == [0]


def test_an_unknown_device_gets_no_figure() -> None:
    (card,) = cards(of_name("NVIDIA Z9000", "timings"))
    for shown in (repr(card), card._repr_html_()):
        assert "TFLOPS" not in shown and "GB/s" not in shown
    assert "no peak rates" in card._repr_html_() and "NVIDIA Z9000" in card._repr_html_()


def test_rates_of_a_device_of_rocm() -> None:
    (card,) = cards(of_properties(MI300X, "snapshot"))
    assert "compute units" in card._repr_html_() and "MI300X" in card._repr_html_()


def test_by_name_by_uuid_or_by_number() -> None:
    boards = (of_properties(H100, "a"), of_properties(OTHER, "a"))
    devices = device_rows(one for one in boards if one is not None)
    assert device_named(devices, devices[1].uuid or "").device == 1
    said = "several devices are called 'NVIDIA H100 80GB HBM3'; by number: 0 "
    with pytest.raises(NotFoundError, match=said):
        device_named(devices, "NVIDIA H100 80GB HBM3")
    with pytest.raises(NotFoundError, match="no device 7; by number: 0 NVIDIA"):
        device_named(devices, 7)
